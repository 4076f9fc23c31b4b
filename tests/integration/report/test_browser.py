"""The page of a hostile run in a real browser: it runs nothing, fetches nothing, and has its style."""

import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from io_harness.report.html import page
from tests.unit.report import scene
from tests.unit.report.hostile import MARK, hostile

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@dataclass
class Site:
    """A server that remembers what it was asked for."""

    address: str = ""
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield site
        server.shutdown()
        thread.join()


@dataclass
class Seen:
    document: str
    complaints: str
    title: str


def browse(text: str, folder: Path) -> Seen:
    """The document as the browser has it after its scripts have run, and what its console says."""
    assert CHROMIUM
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions",
            "--disable-background-networking", "--no-first-run", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    found = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    title = found[1] if found else ""
    lines = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(done.stdout, "\n".join(lines), title)


def attack(site: Site) -> str:
    return (
        f"</pre></style></title></summary></details>\"'><script>document.title='{MARK}'</script>"
        f"<img src='{site.address}/i' onerror=\"document.title='{MARK}'\">"
        f"<link rel=stylesheet href='{site.address}/s'><iframe src='{site.address}/f'></iframe>"
    )


def test_a_hostile_run_does_nothing(site: Site, tmp_path: Path) -> None:
    run = hostile(scene.report(children=(scene.child(),)), attack(site))
    seen = browse(page(run), tmp_path)
    assert "Make add right." in seen.title
    assert "<script" not in seen.document.replace("&lt;script", "")
    assert "<iframe" not in seen.document
    assert site.asked == []
    assert seen.complaints == ""  # not even the style was refused


def test_the_policy_holds_where_escaping_would_not(site: Site, tmp_path: Path) -> None:
    """The same attack put in raw: the second line of defence."""
    broken = page(scene.report()).replace("<main>", f"<main>{attack(site)}", 1)
    seen = browse(broken, tmp_path)
    assert seen.title != MARK
    assert site.asked == []
    assert "Content Security Policy" in seen.complaints


def test_without_either_the_attack_works(site: Site, tmp_path: Path) -> None:
    """The control: this browser runs scripts, and asks the server."""
    text = re.sub("<meta http-equiv[^>]*>", "", page(scene.report()))
    seen = browse(text.replace("<main>", f"<main>{attack(site)}", 1), tmp_path)
    assert seen.title == MARK
    assert {"/i", "/s", "/f"} <= set(site.asked)
