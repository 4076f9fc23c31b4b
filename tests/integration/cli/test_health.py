"""How a worker tells an orchestrator that it is well."""

import os
import signal
import subprocess
import time
from pathlib import Path

from io_harness.server import running_server

from .conftest import Shell, wait_for_line

PROBE = "find {file} -newermt '-30 seconds' -exec grep -qx ready {{}} ';' -print | grep -q ."


def probe(file: Path) -> bool:
    """The image's health check."""
    return subprocess.run(["sh", "-c", PROBE.format(file=file)], check=False).returncode == 0


def test_a_worker_is_ready_then_unreachable_then_gone(shell: Shell) -> None:
    up = shell.start("up")
    wait_for_line(up, "working on the task queue", stderr=True)
    file = shell.cwd / "health"
    assert not probe(file)
    worker = shell.start("worker", "--health-file", str(file))
    wait_for_line(worker, "working on the task queue", stderr=True)
    assert probe(file)
    server = running_server(shell.home)
    assert server is not None
    up.kill()
    os.kill(server.pid, signal.SIGKILL)
    while file.read_text() != "unreachable\n":
        assert worker.poll() is None
        time.sleep(0.2)
    assert not probe(file)
    ended = shell.end(worker, signal.SIGTERM)
    assert ended.code == 0, ended.err
    assert not file.exists()


def test_an_old_file_is_not_well(tmp_path: Path) -> None:
    file = tmp_path / "health"
    file.write_text("ready\n")
    assert probe(file)
    os.utime(file, (time.time() - 60, time.time() - 60))
    assert not probe(file)


def test_a_file_that_can_t_be_written_is_named(shared: Shell) -> None:
    done = shared.run("worker", "--health-file", "/nowhere/health")
    assert (done.code, "--health-file: " in done.err) == (2, True)
