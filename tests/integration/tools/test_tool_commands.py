"""Commands through the real sandbox: their end, their output, what they may wait for."""

import asyncio
import resource
import time
from pathlib import Path

import pytest

from io_harness import sandbox
from io_harness.activities.gate import Refused
from io_harness.activities.tools.context import AsksNeeded
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES
from io_harness.workflows.policy import Policy
from tests.unit.tools.conftest import Call


async def test_exit_codes_and_signals(call: Call) -> None:
    for command, said in (
        ("true", "[exit 0 after"),
        ("exit 3", "[exit 3 after"),
        ("kill -9 $$", "signal 9"),
        ("no-such-program-anywhere", "[exit 127 after"),
    ):
        assert said in (await call("run_command", command=command)).text


async def test_output_and_errors_come_in_order(call: Call) -> None:
    done = await call("run_command", command="echo one; echo two >&2; echo three")
    assert done.text.split("\n", 1)[1] == "one\ntwo\nthree\n"
    assert not done.is_error


async def test_it_runs_in_the_copy_with_the_workers_python(root: Path, call: Call) -> None:
    done = await call("run_command", command="pwd; python -c 'import pydantic; print(6 * 7)'")
    assert done.text.split("\n")[1:3] == [str(root), "42"]
    await call("run_command", command="echo made > made.txt")
    assert (root / "made.txt").read_text() == "made\n"


async def test_the_wall_limit_ends_the_tree(call: Call) -> None:
    begun = time.monotonic()
    done = await call(
        "run_command", command="echo begun; sleep 1000 & sleep 1000", timeout_seconds=1
    )
    assert time.monotonic() - begun < 20
    assert "begun" in done.text
    assert "over the limit of 1 s" in done.text
    assert done.is_error


async def test_a_child_that_keeps_the_pipe_does_not_hold_the_call(call: Call) -> None:
    begun = time.monotonic()
    done = await call("run_command", command="(sleep 300; echo late) & echo early")
    assert time.monotonic() - begun < 10
    assert "[exit 0 after" in done.text
    assert "early" in done.text
    begun = time.monotonic()
    done = await call("run_command", command="setsid nohup sleep 300 & disown; echo early")
    assert time.monotonic() - begun < 10
    assert "early" in done.text


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "read -r line < /dev/tty",
        "python -c 'input()'",
        "git init -q . && git config user.email a@b && git config user.name n "
        "&& git commit --allow-empty",
        "git clone -q http://localhost:1/x.git y",
        "git log --help; man git",
        "${EDITOR} file",
        "sudo -n true; ssh -o BatchMode=yes nowhere",
        "yes | head -1 && seq 100000 | ${PAGER} | tail -1",
        "exec 3<>fifo || mkfifo fifo && cat fifo & cat < /dev/null",
    ],
)
async def test_nothing_waits_for_a_person(command: str, call: Call) -> None:
    begun = time.monotonic()
    done = await call("run_command", command=command, timeout_seconds=60)
    assert "over the limit" not in done.text
    assert time.monotonic() - begun < 40


async def test_a_cancelled_command_is_gone(root: Path, call: Call) -> None:
    command = "echo $$ > pid; (while :; do date +%s%N > alive; sleep 0.05; done) & sleep 1000"
    running = asyncio.create_task(call("run_command", command=command))
    while not (root / "alive").exists():
        await asyncio.sleep(0.05)
    running.cancel()
    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - begun < 5
    last = (root / "alive").read_text()
    await asyncio.sleep(0.3)
    assert (root / "alive").read_text() == last


async def test_progress_bars_and_colours_are_cleaned(call: Call) -> None:
    command = (
        r"for i in $(seq 1000); do printf '\r%d%%' $i; done; printf '\n\033[31mred\033[0m\n';"
        r"printf 'caf\351\n'"
    )
    done = await call("run_command", command=command)
    assert done.text.split("\n", 1)[1] == "1000%\nred\ncaf\\xe9\n"


async def test_fifty_megabytes_in_constant_memory(call: Call) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    command = "seq 1 6500000"  # 50 MB
    done = await call("run_command", command=command)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert time.monotonic() - begun < 60
    assert grown < 16_000_000
    assert len(done.text.encode()) <= INLINE_OUTPUT_BYTES
    assert done.omitted_bytes > 50_000_000
    assert "\n1\n2\n3\n" in done.text
    assert done.text.endswith("\n6499999\n6500000\n")
    assert done.spill is not None
    head = done.text.split("\n[...", 1)[0]
    last_shown = int(head.rsplit("\n", 1)[1])
    offset = int(done.text.split("offset=", 1)[1].split(")", 1)[0])
    page = await call("read_output", handle=done.spill, offset=offset)
    header, first, *_ = page.text.split("\n")
    assert int(first) == last_shown + 1
    assert "next offset" in header
    end = await call("read_output", handle=done.spill, offset=-16)
    assert end.text.endswith("6499999\n6500000\n")
    assert "; end]" in end.text


async def test_paging_shows_every_byte_once(call: Call) -> None:
    done = await call("run_command", command="seq 1 30000 | sed 's/$/ größe 🎉/'")
    assert done.spill is not None
    offset, whole = 0, ""
    while True:
        header, text = (await call("read_output", handle=done.spill, offset=offset)).text.split(
            "\n", 1
        )
        whole += text
        if header.endswith("; end]"):
            break
        offset = int(header.rsplit("next offset ", 1)[1].rstrip("]"))
    assert whole == "".join(f"{n} größe 🎉\n" for n in range(1, 30001))


async def test_the_policy_is_asked_before_anything_runs(root: Path, call: Call) -> None:
    with pytest.raises(AsksNeeded) as asked:
        await call("run_command", Policy(preset="careful"), command="touch made")
    assert asked.value.requests[0].preview == "touch made"
    with pytest.raises(Refused):
        await call("run_command", Policy(preset="read-only"), command="touch made")
    assert not (root / "made").exists()
    await call("run_command", command="touch made")  # the control
    assert (root / "made").exists()


async def test_the_environment_is_the_allow_list(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-value")
    done = await call("run_command", command="env; cat /proc/self/environ | tr '\\0' '\\n'")
    assert "sk-secret-value" not in done.text
    for line in (
        "PAGER=cat",
        "GIT_PAGER=cat",
        "EDITOR=false",
        "GIT_TERMINAL_PROMPT=0",
        "TERM=dumb",
    ):
        assert f"\n{line}\n" in done.text


async def test_what_file_tools_may_not_read_commands_can_not_either(root: Path, call: Call) -> None:
    isolation = await sandbox.probe()
    if isolation.levels["fs_read"] != "enforced":
        pytest.skip("this host's sandbox can't hide files")
    (root / "sub").mkdir()
    for name in (".env", "sub/id_rsa", "sub/notes.txt"):
        (root / name).write_text("secret\n")
    command = "cat .env sub/id_rsa; python -c 'print(open(\".env\").read())'; cat sub/notes.txt"
    done = await call("run_command", command=command)
    assert done.text.count("secret") == 1  # the control: notes.txt
    await call("run_command", command='python -c \'open(".env", "w")\'; mv sub elsewhere')
    assert (root / ".env").read_text() == "secret\n"
