"""A disk that is full, or that can't be written, at the start and in a run: on a small file system in
a mount namespace of its own, where root too meets the limit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from io_harness.server import running_server

from .conftest import Done, Recorded, Shell

FINISH = """\
expect: [{role: user, contains: []}]
reply:
  parts: [{kind: tool_call, id: a, name: finish, arguments: {summary: done}}]
  finish: tool_use
  usage: {input: 1, output: 1}
  cost_usd: "0.001"
"""


def namespace(script: str) -> list[str]:
    """Argv that runs a shell script in a mount namespace; `"$@"` there is to be run by the caller's
    own user."""
    if os.geteuid() == 0:
        return ["unshare", "--mount", "sh", "-ec", f'{script}; exec "$@"', "sh"]
    back = f"unshare --user --map-user={os.geteuid()} --map-group={os.getegid()}"
    outer = ["unshare", "--user", "--map-root-user", "--mount"]
    return [*outer, "sh", "-ec", f'{script}; exec {back} "$@"', "sh"]


def mounts() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        [*namespace("mount -t tmpfs -o size=1m none /mnt"), "true"],
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not mounts(), reason="no file system can be mounted here")


def run_on_small_disk(shell: Shell, then: str, *arguments: str, **environment: str) -> Done:
    """Run a command whose data directory is on a disk of 3 MB, after `then` was done to the disk."""
    shell.home.mkdir(exist_ok=True)
    disk = f"mount -t tmpfs -o size=3m none '{shell.home}'; cd '{shell.home}'; mkdir data"
    back = f"cd '{shell.cwd}'"
    done = subprocess.run(
        [
            *namespace(f"{disk}; {then}; {back}"),
            sys.executable, "-P", "-m", "io_harness", *arguments,
        ],
        env={**shell.environment, **environment, "IO_HARNESS_DATA": str(shell.home / "data")},
        cwd=shell.cwd, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


FULL = "head -c 9000000 /dev/zero > fill 2>/dev/null || true"
READ_ONLY = "mount -o remount,ro ."


@pytest.mark.parametrize(
    ("then", "why"),
    [(FULL, "No space left on device"), (READ_ONLY, "Read-only file system")],
    ids=["full", "read-only"],
)
@pytest.mark.parametrize("command", ["list", "up", "run", "doctor"])
def test_at_the_start(shell: Shell, then: str, why: str, command: str) -> None:
    """With the embedded server, whose database is there too."""
    more = ("--goal", "x", "--model", "replay/none") if command == "run" else ()
    done = run_on_small_disk(shell, then, command, *more)
    assert done.code == (1 if command == "doctor" else 9), done.err
    assert f"{shell.home}/data can't be used: {why}" in done.out + done.err


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("true", "DiskFull"),
        (
            "git init -q --bare data/snapshots.git; mount --bind data/snapshots.git "
            "data/snapshots.git; mount -o remount,bind,ro data/snapshots.git",
            "AccessDenied",
        ),
    ],
    ids=["full", "read-only store"],
)
def test_in_a_run(shell: Shell, kept_home: Path, recorded: Recorded, then: str, code: str) -> None:
    """The source is larger than what is free; or only the store can't be written."""
    (shell.cwd / "large.bin").write_bytes(os.urandom(6_000_000))
    server = running_server(kept_home)
    assert server is not None
    done = run_on_small_disk(
        shell, then, "run", "--goal", "x", "--model", recorded(FINISH),
        TEMPORAL_ADDRESS=server.address,
    )  # fmt: skip
    assert done.code == 9, done.out + done.err
    assert code in done.out, done.out
