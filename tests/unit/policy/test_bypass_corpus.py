"""No hidden command runs silently, and no ordinary one asks."""

import shutil
import subprocess
from pathlib import Path

import pytest

from io_harness.activities.gate import CommandLine, Gate
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Layer, Rule
from tests.unit.policy.corpus import BYPASSES, DESTRUCTIVE, ORDINARY, POLICY, UNPROVEN, Case

ROOT = Path("/workspace/project")
HOME = "/home/user"


def effect(line: str, policy: Policy = POLICY) -> str:
    return Gate(policy).explain("exec", CommandLine(line, root=ROOT, home=HOME)).reason.effect


def test_nothing_hidden_runs_silently(capsys: pytest.CaptureFixture[str]) -> None:
    cases = BYPASSES + UNPROVEN
    effects = [effect(case.line) for case in cases]
    silent = [case for case, got in zip(cases, effects, strict=True) if got == "allow"]
    with capsys.disabled():
        print(
            f"\nbypass corpus: {len(cases)} hidden commands, {len(silent)} silent executions "
            f"({effects.count('deny')} denied, {effects.count('ask')} asked)"
        )
    assert silent == []
    assert len({case.line for case in cases}) >= 150


def test_nothing_ordinary_asks(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [case for case in ORDINARY if effect(case.line) != "allow"]
    with capsys.disabled():
        print(f"\nbypass corpus: {len(ORDINARY)} ordinary commands, {len(asked)} false asks")
    assert asked == []
    assert len({case.line for case in ORDINARY}) >= 50


EVERYTHING = POLICY.merge(Layer(name="all", rules=(Rule(effect="allow", act="exec", target="*"),)))


def test_what_destroys_asks_even_where_every_program_is_allowed() -> None:
    assert [case for case in DESTRUCTIVE if effect(case.line, EVERYTHING) == "allow"] == []


def test_only_script_files_get_past_a_denied_command_where_every_program_is_allowed() -> None:
    """What a file holds is not in the command line; the sandbox holds it, and the default to ask."""
    silent = {c.group for c in BYPASSES + UNPROVEN if effect(c.line, EVERYTHING) == "allow"}
    assert silent == {"files that are scripts"}


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    """A folder with a git and a curl that only write down how they were called."""
    folder = tmp_path / "stubs"
    folder.mkdir()
    for name in ("git", "curl"):
        stub = folder / name
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/log\n')
        stub.chmod(0o755)
    return folder


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_every_proven_bypass_runs_the_denied_command(stand_ins: Path, tmp_path: Path) -> None:
    """The control: without the policy, each line does what it hides."""
    assert [case for case in BYPASSES if not _runs_denied(case, stand_ins, tmp_path)] == []


def _runs_denied(case: Case, stand_ins: Path, tmp_path: Path) -> bool:
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "in.txt").write_text("x\n")
    env = {"PATH": f"{stand_ins}:/usr/bin:/bin", "LOG": str(log), "HOME": str(folder)}
    subprocess.run(
        ["bash", "-c", case.line],
        cwd=folder,
        env=env,
        timeout=20,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    if not log.exists():
        return False
    lines = log.read_text(errors="replace").splitlines()
    return any(line.startswith("curl") or "push" in line for line in lines)
