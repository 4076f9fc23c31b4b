"""What `up` says while runs go on: to people, and to a collector of JSON."""

import json
import signal

from .conftest import Recorded, Shell, wait_for_line

TURNS = """
expect: [{role: user, contains: []}]
reply:
  parts: [{kind: tool_call, id: a, name: read_file, arguments: {path: story.txt}}]
  finish: tool_use
  usage: {input: 100, output: 20}
---
expect: [{role: tool, call_id: a, is_error: false, contains: []}]
reply:
  parts: [{kind: tool_call, id: b, name: finish, arguments: {summary: read}}]
  finish: tool_use
  usage: {input: 100, output: 20}
"""


def test_lines_tell_the_run_and_never_its_contents(shell: Shell, recorded: Recorded) -> None:
    (shell.cwd / "story.txt").write_text("the-secret-story")
    up = shell.start("up", "--log-format", "json")
    wait_for_line(up, "working on the task queue", stderr=True)
    done = shell.run(
        "run", "--id", "tale", "--goal", "the-secret-goal", "-w", ".", "--model", recorded(TURNS),
        "--policy", "unattended",
    )  # fmt: skip
    assert done.code == 0, done.err + done.out
    failed = shell.run(
        "run", "--id", "lost", "--goal", "the-secret-goal", "-w", ".",
        "--model", "openai-compatible/none",
        "--set", "model.base_url=http://127.0.0.1:9/v1", "--set", "budget.wall_seconds=5",
    )  # fmt: skip
    assert failed.code == 3, failed.err + failed.out
    said = shell.end(up, signal.SIGINT).err
    lines = [json.loads(line) for line in said.splitlines()]
    assert "secret" not in said
    assert "Traceback" not in said
    tale = [line for line in lines if line.get("run") == "tale"]
    told = {line["message"] for line in tale}
    # Two processes work on the run; what both do is logged by whoever did it.
    assert told <= {
        "run began", "admit done", "prepare done", "complete done", "use_tool done",
        "land done", "release done", "run ended",
    }  # fmt: skip
    for line in tale:
        if line["message"] in ("complete done", "use_tool done"):
            assert line["step"] in (1, 2)
            assert line["attempt"] == 1
