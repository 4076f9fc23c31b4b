"""The yardstick with the two things that a harness must do beside it, each in its plainest form: the
command runs in bubblewrap, and git commits what it left. Each run has a copy of the workspace."""

import shutil
import subprocess
from pathlib import Path

from temporalio import activity

from .bare import Activities, play
from .task import COMMAND_SECONDS, Report, Task, contestant

_BWRAP = (
    "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
    "--proc", "/proc", "--tmpfs", "/tmp",
)  # fmt: skip
_GIT = ("git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0")


class IsolatedActivities(Activities):
    def __init__(self, workspace: str, copies: Path) -> None:
        super().__init__(workspace)
        self._copies = copies

    def run_command(self, command: str) -> str:
        copy = self._copies / (activity.info().workflow_id or "")
        if not copy.exists():
            shutil.copytree(self._workspace, copy)
        inside = (*_BWRAP, "--bind", str(copy), str(copy), "--chdir", str(copy))
        done = subprocess.run(
            [*inside, "/bin/sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        for words in (("add", "--all"), ("commit", "--quiet", "--allow-empty", "-m", command)):
            subprocess.run([*_GIT, *words], cwd=copy, check=True)
        return f"[exit {done.returncode}]\n{done.stdout}"


async def run(task: Task) -> Report:
    return await play(task, IsolatedActivities(task.workspace, Path(task.scratch)))


if __name__ == "__main__":
    contestant(run)
