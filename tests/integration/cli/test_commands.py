"""The commands as a person meets them, on the embedded server."""

import signal
import subprocess
import sys
from pathlib import Path

from io_harness.server import running_server

from .conftest import Recorded, Shell, wait_for_line

DEMO = Path(__file__).parents[3] / "io_harness" / "demo" / "project"

SLOW = """\
expect:
- {role: user, contains: [wait]}
reply:
  parts:
  - {kind: tool_call, id: c1, name: write_file, arguments: {path: new.txt, content: "hello\\n"}}
  - {kind: tool_call, id: c2, name: run_command, arguments: {command: "sleep 98.76"}}
  finish: tool_use
"""
WRITE = """\
expect:
- {role: user, contains: [greet]}
reply:
  parts:
  - {kind: tool_call, id: c1, name: write_file, arguments: {path: new.txt, content: "hello\\n"}}
  - {kind: tool_call, id: c2, name: finish, arguments: {summary: written}}
  finish: tool_use
---
expect:
- {role: tool, call_id: c1, is_error: true, contains: [denied]}
- {role: tool, call_id: c2, is_error: true, contains: [Verification failed]}
reply:
  parts:
  - {kind: tool_call, id: c3, name: finish, arguments: {summary: not allowed}}
  finish: tool_use
"""


def commands_like(text: str) -> list[str]:
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in shown.stdout.splitlines() if line.strip() == text]


def test_the_demo_mends_the_project_and_leaves_no_server(shell: Shell) -> None:
    done = shell.run("demo", "--json", "--keep", "mended")
    assert done.code == 0, done.err
    assert done.json["outcome"] == "success"
    assert done.json["result"]["verification"]["verdict"] == "passed"
    assert [f["path"] for f in done.json["result"]["landing"]["files"]] == [
        "invoicing/money.py",
        "invoicing/tax.py",
    ]
    assert "verify      failed" in done.err
    assert "recording" in done.err
    tests = subprocess.run(
        [sys.executable, "-m", "unittest"],
        cwd=shell.cwd / "mended", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tests.returncode == 0, tests.stderr
    assert running_server(shell.home) is None


def test_the_packaged_project_fails_its_tests(tmp_path: Path) -> None:
    tests = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],
        cwd=DEMO, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "FAILED (failures=3)" in tests.stderr


def test_a_worker_killed_in_the_middle_loses_and_repeats_nothing(shared: Shell) -> None:
    project = shared.cwd / "project"
    subprocess.run(["cp", "-r", str(DEMO), str(project)], check=True)
    process = shared.start(
        "run", "--id", "killed", "--goal", "A credit note must cancel its invoice to the cent",
        "--verify", "python -m unittest", "-w", str(project), "--policy", "unattended",
        "--model", "replay/package:io_harness.demo/recording.yaml",
    )  # fmt: skip
    wait_for_line(process, "edit_file invoicing/money.py")
    process.kill()
    process.communicate()
    again = shared.run("watch", "killed", "--json")
    assert again.code == 0, again.err
    files = {
        f["path"]: (f["added"], f["removed"]) for f in again.json["result"]["landing"]["files"]
    }
    assert files == {"invoicing/money.py": (4, 3), "invoicing/tax.py": (3, 2)}
    assert again.json["result"]["spend"]["steps"] == 7


def test_ctrl_c_cancels_the_run_and_kills_its_command(shell: Shell, recorded: Recorded) -> None:
    process = shell.start(
        "run", "--goal", "wait", "--policy", "unattended", "--model", recorded(SLOW)
    )
    wait_for_line(process, "write_file new.txt")
    while not commands_like("sleep 98.76"):
        assert process.poll() is None
    done = shell.end(process, signal.SIGINT)
    assert done.code == 130
    assert not commands_like("sleep 98.76")
    assert "kept on refs/io-harness/" in done.out
    assert "cancelled" in done.out
    assert not (shell.cwd / "new.txt").exists()
    assert running_server(shell.home) is None


def test_a_second_ctrl_c_leaves_at_once(shell: Shell, recorded: Recorded) -> None:
    process = shell.start(
        "run", "--goal", "wait", "--id", "left", "--policy", "unattended", "--model", recorded(SLOW)
    )
    wait_for_line(process, "write_file new.txt")
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "cancelling left")
    done = shell.end(process, signal.SIGINT)
    assert done.code == 130
    assert running_server(shell.home) is None


def test_without_a_terminal_a_run_is_left_waiting_and_goes_on_when_approved(
    shared: Shell, recorded: Recorded
) -> None:
    left = shared.run(
        "run", "--goal", "greet", "--id", "asks", "--verify", "test -f new.txt",
        "--model", recorded(WRITE), "--json",
    )  # fmt: skip
    assert left.code == 5, left.err
    (pending,) = left.json["pending"]
    assert pending["request"]["act"] == "write"
    assert "+hello" in left.err
    assert "io-harness approve asks" in left.err

    listed = shared.run("approvals", "--json")
    assert listed.json["id"] == pending["id"]
    assert shared.run("list", "--state", "waiting", "--json").json["id"] == "asks"
    assert "hello" in shared.run("status", "asks").out

    assert shared.run("approve", "asks", "0.0-nonsense").code == 2
    approved = shared.run("approve", "asks", "--reason", "fine")
    assert approved.code == 0, approved.err
    assert "watch asks" in approved.err
    twice = shared.run("approve", "asks", pending["id"])
    assert (twice.code, "waits for no decision" in twice.err) == (2, True)

    ended = shared.run("watch", "asks", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["outcome"] == "success"
    assert (shared.cwd / "new.txt").read_text() == "hello\n"

    traced = shared.run("trace", "asks")
    assert "decided     approve" in traced.out
    assert traced.out.count("verify      passed") == 1
    assert shared.run("status", "asks", "--json").json["status"] == "completed"


def test_asks_are_denied_where_the_person_said_so(shared: Shell, recorded: Recorded) -> None:
    done = shared.run(
        "run", "--goal", "greet", "--verify", "test -f new.txt", "--model", recorded(WRITE),
        "--deny-asks", "--set", "budget.steps=2", "--json",
    )  # fmt: skip
    assert done.code == 3, done.err
    assert done.json["outcome"] == "step_cap_reached"


def test_approve_all_approves(shared: Shell, recorded: Recorded) -> None:
    done = shared.run(
        "run", "--goal", "greet", "--verify", "test -f new.txt", "--model", recorded(WRITE),
        "--approve-all", "--land", "patch:out.diff",
    )  # fmt: skip
    assert done.code == 0, done.out + done.err
    assert "+hello" in (shared.cwd / "out.diff").read_text()
    assert not (shared.cwd / "new.txt").exists()


def test_detach_needs_a_server_that_stays(shell: Shell, recorded: Recorded) -> None:
    refused = shell.run("run", "--goal", "greet", "--model", recorded(WRITE), "--detach")
    assert (refused.code, "io-harness up" in refused.err) == (2, True)

    up = shell.start("up")
    wait_for_line(up, "working on the task queue", stderr=True)
    detached = shell.run(
        "run", "--goal", "greet", "--id", "away", "--verify", "test -f new.txt",
        "--model", recorded(WRITE), "--policy", "unattended", "--detach",
    )  # fmt: skip
    assert (detached.code, detached.out) == (0, "away\n"), detached.err
    assert shell.run("watch", "away").code == 0
    ended = shell.end(up, signal.SIGTERM)
    assert ended.code == 0, ended.err
    assert running_server(shell.home) is None


def test_a_worker_needs_a_server(shell: Shell) -> None:
    done = shell.run("worker")
    assert (done.code, "TEMPORAL_ADDRESS" in done.err) == (8, True)


def test_a_server_that_does_not_answer_is_named(shared: Shell) -> None:
    done = shared.run("list", TEMPORAL_ADDRESS="127.0.0.1:1")
    assert done.code == 8
    assert "no Temporal server answers at 127.0.0.1:1" in done.err
    assert "Traceback" not in done.err


def test_a_profile_that_is_not_there_is_an_error_of_the_server(shared: Shell) -> None:
    done = shared.run("list", TEMPORAL_PROFILE="nowhere")
    assert (done.code, "nowhere" in done.err) == (8, True)
    assert "Traceback" not in done.err


def test_usage_errors_start_nothing(shell: Shell) -> None:
    (shell.cwd / "task.yaml").write_text("goal: x\nbudgets: {}\n")
    wrong = shell.run("run", "task.yaml")
    assert wrong.code == 2
    assert "line 2, budgets: unknown field; did you mean 'budget'?" in wrong.err
    assert shell.run("run").code == 2
    no_model = shell.run("run", "--goal", "x")
    assert (no_model.code, "--model provider/name" in no_model.err) == (2, True)
    assert not shell.home.exists()


def test_a_run_that_is_not_there(shared: Shell) -> None:
    for command in ("status", "trace", "approve"):
        done = shared.run(command, "nowhere")
        assert (done.code, "no run 'nowhere'" in done.err) == (2, True), (command, done.err)
        assert "Traceback" not in done.err


def test_an_error_in_the_contract_that_the_worker_finds_is_one_of_usage(shared: Shell) -> None:
    for code, more in (
        ("UnknownProvider", ("--model", "nobody/m")),
        ("MissingBaseUrl", ("--model", "openai-compatible/m")),
        ("BadRecording", ("--model", "replay/absent.yaml")),
    ):
        done = shared.run("run", "--goal", "x", "--id", code, "--json", *more)
        assert (done.code, done.json["error"]["code"]) == (2, code), done.err
    listed = shared.run("list", "--state", "failed")
    assert "failed: UnknownProvider" in listed.out
    assert "failed: BadRecording" in listed.out


def test_a_run_that_has_ended_takes_no_orders(shared: Shell, recorded: Recorded) -> None:
    ended = shared.run(
        "run", "--goal", "greet", "--id", "over", "--policy", "unattended",
        "--model", recorded(WRITE),
    )  # fmt: skip
    assert ended.code == 0, ended.out + ended.err
    for command, told in (("cancel", "'over' has ended"), ("approve", "waits for no decision")):
        done = shared.run(command, "over")
        assert (done.code, told in done.err) == (2, True), (command, done.err)


def test_a_missing_key_fails_before_the_first_model_call(shared: Shell) -> None:
    done = shared.run("run", "--goal", "x", "--model", "anthropic/claude-sonnet-4-5", "--json")
    assert done.code == 6, done.err
    assert done.json["error"]["code"] == "MissingCredential"
    assert "ANTHROPIC_API_KEY" in done.json["error"]["message"]


def test_a_run_is_recorded_and_replayed(shared: Shell, recorded: Recorded) -> None:
    common = ("--goal", "greet", "--verify", "test -f new.txt", "--policy", "unattended",
              "--land", "patch:out.diff")  # fmt: skip
    first = shared.run("run", *common, "--model", recorded(WRITE), "--record", "made.yaml")
    assert first.code == 0, first.out + first.err
    again = shared.run("run", *common, "--model", "replay/made.yaml")
    assert again.code == 0, again.out + again.err


def test_doctor_finds_what_a_run_needs(shared: Shell) -> None:
    done = shared.run("doctor", OPENAI_API_KEY="sk-not-to-be-seen")
    assert done.code == 0, done.out
    for name in ("python", "git", "rg", "temporal binary", "temporal server", "sandbox"):
        assert f"ok   {name}" in done.out
    assert "search attributes    registered" in done.out
    assert "ok   credentials          set: OPENAI_API_KEY" in done.out
    assert "not-to-be-seen" not in done.out + done.err


def test_schemas_are_printed(shared: Shell) -> None:
    assert shared.run("schema").json["title"] == "TaskContract"
    assert shared.run("schema", "decision").json["title"] == "Decision"
