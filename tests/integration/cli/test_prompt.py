"""What a person at a terminal is asked, and what their answers do."""

import os
import re
import select
from collections.abc import Sequence

from .conftest import TIMEOUT, Recorded, Shell

ASKS = """\
expect:
- {role: user, contains: [greet]}
reply:
  parts:
  - {kind: tool_call, id: c1, name: write_file, arguments: {path: new.txt, content: "hello\\n"}}
  finish: tool_use
---
expect:
- {role: tool, call_id: c1, is_error: ERROR, contains: [CONTAINS]}
reply:
  parts:
  - {kind: tool_call, id: c2, name: finish, arguments: {summary: done}}
  finish: tool_use
"""


def conversation(expected: str, *, is_error: bool = False) -> str:
    return ASKS.replace("ERROR", str(is_error).lower()).replace("CONTAINS", expected)


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def typed(shell: Shell, answers: Sequence[tuple[str, str]], *arguments: str) -> tuple[int, str]:
    """Run the command on a terminal; type each answer when its question is shown."""
    terminal, inner = os.openpty()
    process = shell.start(*arguments, streams=inner, TERM="xterm-256color")
    os.close(inner)
    shown, unseen, waiting = "", "", list(answers)
    while select.select([terminal], [], [], TIMEOUT)[0]:
        try:
            data = os.read(terminal, 65_536).decode(errors="replace")
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
        unseen = ESCAPES.sub("", unseen + data)
        if waiting and waiting[0][0] in unseen:
            os.write(terminal, waiting.pop(0)[1].encode() + b"\n")
            unseen = ""
    code = process.wait(TIMEOUT)
    os.close(terminal)
    assert not waiting, shown
    return code, shown


def test_yes_lets_it_happen(shared: Shell, recorded: Recorded) -> None:
    code, shown = typed(
        shared,
        [("[y] approve", "what?"), ("[y] approve", "y")],
        "run", "--goal", "greet", "--verify", "grep -q hello new.txt",
        "--model", recorded(conversation("new.txt")),
    )  # fmt: skip
    assert code == 0, shown
    assert "\x1b[32m+hello" in shown  # the diff, in colours
    assert "asked by rule" in shown
    assert "[r] remembers for this run: allow write /new.txt" in ESCAPES.sub("", shown)
    assert (shared.cwd / "new.txt").read_text() == "hello\n"


def test_no_is_told_to_the_agent_with_the_person_s_words(shared: Shell, recorded: Recorded) -> None:
    code, shown = typed(
        shared,
        [("[y] approve", "n"), ("why", "use the other file")],
        "run", "--goal", "greet", "--verify", "test ! -e new.txt",
        "--model", recorded(conversation("use the other file", is_error=True)),
    )  # fmt: skip
    assert code == 0, shown
    assert not (shared.cwd / "new.txt").exists()


def test_leaving_it_waits(shared: Shell, recorded: Recorded) -> None:
    code, shown = typed(
        shared,
        [("[y] approve", "q")],
        "run", "--goal", "greet", "--id", "left-waiting", "--verify", "true",
        "--model", recorded(conversation("new.txt")),
    )  # fmt: skip
    assert code == 5, shown
    assert "io-harness approve left-waiting" in ESCAPES.sub("", shown)
    assert shared.run("cancel", "left-waiting").code == 0


EDITOR = """\
#!/bin/sh
# The first time it leaves what is no JSON, the second time other arguments.
if test -e "$0.ran"; then
    printf '{"path": "new.txt", "content": "edited\\\\n"}' > "$1"
else
    echo '{"path": ' > "$1"
    touch "$0.ran"
fi
"""


def test_the_call_is_edited_in_the_person_s_editor(shared: Shell, recorded: Recorded) -> None:
    editor = shared.cwd.parent / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    shared.variables["EDITOR"] = str(editor)
    code, shown = typed(
        shared,
        [("[e] edit", "e")],
        "run", "--goal", "greet", "--verify", "grep -q edited new.txt",
        "--model", recorded(conversation("A human changed")),
    )  # fmt: skip
    assert code == 0, shown
    assert (shared.cwd / "new.txt").read_text() == "edited\n"


def test_an_editor_that_changes_nothing_decides_nothing(shared: Shell, recorded: Recorded) -> None:
    shared.variables["EDITOR"] = "true"
    code, shown = typed(
        shared,
        [("[e] edit", "e"), ("nothing changed", "y")],
        "run", "--goal", "greet", "--verify", "grep -q hello new.txt",
        "--model", recorded(conversation("new.txt")),
    )  # fmt: skip
    assert code == 0, shown
