"""`io-harness inbox` as a process of its own."""

import re
import signal

import httpx

from ..inbox.conftest import hidden
from .conftest import Recorded, Shell, wait_for_line
from .test_commands import WRITE


def test_a_run_is_approved_in_the_inbox_and_goes_on(shared: Shell, recorded: Recorded) -> None:
    left = shared.run(
        "run", "--goal", "greet", "--id", "inboxed", "--verify", "test -f new.txt",
        "--model", recorded(WRITE),
    )  # fmt: skip
    assert left.code == 5, left.err
    inbox = shared.start("inbox", "--port", "0", "--as", "anna")
    assert inbox.stdout is not None
    address = inbox.stdout.readline().split()[-1]
    assert address.startswith("http://127.0.0.1:")
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=60) as person:
        listed = person.get(address)
        assert "the run goes on when" in listed.text  # nobody works here
        path = re.search(r'href="(/requests/[^"]+/inboxed)"', listed.text)
        assert path, listed.text
        page = httpx.URL(address).join(path[1])
        csrf = hidden(person.get(page).text, "csrf")
        done = person.post(page, data={"csrf": csrf, "verdict": "approve"})
        assert "Approved by anna" in done.text
    ended = shared.end(inbox, signal.SIGTERM)
    assert ended.code == 0, ended.err
    assert "token=" not in ended.err
    assert shared.run("watch", "inboxed").code == 0
    assert (shared.cwd / "new.txt").read_text() == "hello\n"


def test_a_port_that_is_taken_is_named(shared: Shell) -> None:
    first = shared.start("inbox", "--port", "0")
    assert first.stdout is not None
    taken = str(httpx.URL(first.stdout.readline().split()[-1]).port)
    second = shared.run("inbox", "--port", taken)
    assert (second.code, f"--port {taken}" in second.err) == (1, True)
    wait_for_line(first, "Whoever has this address", stderr=True)
    assert shared.end(first, signal.SIGINT).code == 0
