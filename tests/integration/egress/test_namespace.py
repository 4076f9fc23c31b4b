"""A socket of another namespace is known by both of the kernel's ways to ask."""

import subprocess
import sys
from pathlib import Path

import pytest

from .namespaces import in_new, why_not

_SCRIPT = """
import os, socket
from io_harness.sandbox.egress import namespace
from tests.integration.egress.namespaces import enter_new

ours, theirs = socket.socketpair()
if os.fork() == 0:
    enter_new()
    made = socket.create_server(("127.0.0.1", 0))
    socket.send_fds(theirs, [b"x"], [made.fileno()])
    os._exit(0)
other = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
own = socket.create_server(("127.0.0.2", 0))

def both():
    return namespace.is_elsewhere(own), namespace.is_elsewhere(other)

assert both() == (False, True), both()
namespace._SO_NETNS_COOKIE = 9999  # As on a kernel that has no such option.
assert both() == (False, True), both()
namespace._SIOCGSKNS = 0x89FF
assert both() == (False, False), both()
"""


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_socket_of_another_namespace_is_known() -> None:
    done = subprocess.run(
        in_new(sys.executable, "-c", _SCRIPT),
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
