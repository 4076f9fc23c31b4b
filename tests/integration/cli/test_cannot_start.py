"""What keeps every run from starting: one clear error, its exit code, and no traceback."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from io_harness.server import running_server

from .conftest import Done, Shell


def run(shell: Shell, *arguments: str, **environment: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "io_harness", *arguments],
        env={**shell.environment, **environment},
        cwd=shell.cwd, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_namespace_that_is_not_there(shared: Shell) -> None:
    server = running_server(shared.home)
    assert server is not None
    there = run(shared, "list", TEMPORAL_ADDRESS=server.address)
    assert there.code == 0, there.err
    for command in (("list",), ("worker",)):
        done = run(shared, *command, TEMPORAL_ADDRESS=server.address, TEMPORAL_NAMESPACE="nowhere")
        assert (done.code, "nowhere" in done.err) == (8, True), done.err


def test_a_server_that_accepts_and_says_nothing(shared: Shell) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = run(shared, "list", TEMPORAL_ADDRESS=address)
    assert (done.code, address in done.err) == (8, True), done.err


def test_a_codec_that_there_is_not(shared: Shell) -> None:
    done = run(shared, "list", IO_HARNESS_CODEC="lz4")
    assert (done.code, "IO_HARNESS_CODEC=lz4" in done.err) == (8, True), done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_data_directory_that_can_not_be_written(shell: Shell, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        done = run(shell, "list")
    finally:
        tmp_path.chmod(0o700)
    assert done.code != 0
    assert str(shell.home) in done.err
