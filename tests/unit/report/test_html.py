"""The page: what is on it, and that no text on it is more than text."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from io_harness.report.html import duration, page

from . import scene
from .hostile import ATTACK, MARK, hostile

TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer", "nav",
    "h1", "h2", "h3", "p", "a", "code", "pre", "span", "b", "small", "time", "div", "details",
    "summary", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "dl", "dt", "dd", "svg",
    "rect",
}  # fmt: skip
VOID = {"meta"}


class Reader(HTMLParser):
    """Tags, attributes and text, as a browser without scripts reads them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.style = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += "" if tag in ("code", "b", "span") else " "

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.text += data


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("ended", [True, False])
def test_no_text_of_a_run_is_markup(ended: bool) -> None:
    friendly = scene.report(ended=ended, children=(scene.child(),))
    text = page(hostile(friendly))
    read = Reader(text)
    assert set(read.tags) <= TAGS
    assert read.open == []
    assert read.text.count(f"<script>document.title='{MARK}'</script>") > 60
    assert "{{7*7}}" in read.text
    assert not set("\u202e\x1b") & set(text)
    for tag, name, value in read.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("style", "src", "action"), (tag, name)
        if name in ("href", "xlink:href"):
            assert value.startswith("#"), value
        if name == "class":
            assert ATTACK[:8] not in value
    # The attack adds no element but where it adds a thing that was not there.
    assert read.tags.count("script") == 0


def test_the_policy_permits_its_own_style_alone() -> None:
    read = Reader(page(scene.report()))
    (policy,) = [v for _, name, v in read.attributes if name == "content" and "default-src" in v]
    digest = base64.b64encode(hashlib.sha256(read.style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in read.style
    assert "@import" not in read.style
    assert not re.findall(r"https?://", page(scene.report()))


def test_what_a_reviewer_looks_for_is_there() -> None:
    read = flat(Reader(page(scene.report(children=(scene.child(),)))).text)
    for wanted in (
        "success", "Make add right.", "It subtracts.", "verified and landed",
        "add adds", "On the branch fix/add",
        "Looking.", "Then mending.", "it subtracts", "verification failed", "refused",
        "deny read .env", "secrets",
        "approve exec make test", "ann, 2026-03-01 09:30:16 UTC, from 4@host", "go on",
        "bob decided deny after that; it had no effect", "Remembered for the run: allow exec make *",
        "Which table?", "the staging table", "1 h",
        "evil.example:80 commands 0 1 was refused", "linux-bubblewrap", "fs write enforced",
        "memory partial", "Keep the name.", "Write the docs.", "history (2 parts)", "$0.0369",
        "2 != 5", "RateLimited", "You carry out one task.", "Change a file.",
        "Make add right. It subtracts. Keep to this: - Keep the name.",
        "All that step 1 was sent, its reply, and the results of edit_file, run_command, read_file",
    ):  # fmt: skip
        assert wanted in read, wanted


def test_a_run_under_way_is_told_up_to_now() -> None:
    read = flat(Reader(page(scene.report(ended=False))).text)
    assert "Still under way when this page was made, 2026-03-01 10:36:40 UTC" in read
    assert "To be landed; not landed yet." in read
    assert "step 4: a model" in read
    assert "waiting land main" in read
    assert "$0.0369" in read  # three calls, summed up


def test_a_run_that_never_began_has_a_page() -> None:
    from io_harness import trace
    from io_harness.report.gather import Report

    failed = trace.EndedStep(
        at=scene.at(1), status="failed", result=None, code="MissingCredential", message="no key"
    )
    read = flat(Reader(page(Report((scene.began(), failed), (), scene.at(2)))).text)
    assert "no key MissingCredential" in read
    assert "Nothing was verified." in read


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.04 s"), (0.96, "1.0 s"), (9.96, "10 s"), (59.7, "1 min"), (200, "3 min 20 s"),
     (7_500, "2 h 5 min"), (90_000, "1 d 1 h"), (None, "")],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
