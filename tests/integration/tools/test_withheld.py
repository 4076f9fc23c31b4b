"""What may not be read by a tool may not be read by a command either."""

from pathlib import Path

from io_harness.workflows.policy import Policy
from tests.unit.tools.conftest import Call


async def test_a_command_sees_denied_files_empty(root: Path, call: Call) -> None:
    (root / "app").mkdir()
    (root / "app" / ".Env.production").write_text("TOKEN=hunter2\n")
    (root / ".ssh").mkdir()
    (root / ".ssh" / "id_ed25519").write_text("hunter2\n")
    (root / "plain.txt").write_text("seen\n")
    line = "cat app/.Env.production .ssh/id_ed25519 plain.txt; ls -A .ssh"
    shown = await call("run_command", command=line)
    assert "seen" in shown.text
    assert "hunter2" not in shown.text
    assert (root / "app" / ".Env.production").read_text() == "TOKEN=hunter2\n"
    # The control: where the policy denies no reading, the same command shows them.
    bare = Policy.model_validate({"preset": None, "defaults": {"exec": "allow", "write": "allow"}})
    shown = await call("run_command", bare, command=line)
    assert shown.text.count("hunter2") == 2
