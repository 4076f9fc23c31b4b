"""What a probe does inside a sandbox: tries what must not work, and says what did.

Run as a script with one JSON argument; prints one JSON object, property to breaches, or "... of
others" to what only a hostile command does. Needs nothing but the standard library, so that its
text can be given to `python -c`.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

Breaches = dict[str, list[str]]
CORE_PATTERN = "/proc/sys/kernel/core_pattern"


def main() -> None:
    given = json.loads(sys.argv[1])
    found: Breaches = {}
    for attack in (write_outside, read_outside, see_processes, reach_host, read_environment):
        attack(given, found)
    if sys.platform == "linux":
        raise_privilege(found)
        make_refused_calls(found)
    sys.stdout.write(json.dumps(found) + "\n")


def attempt(found: Breaches, kind: str, what: str, act: Callable[[], Any]) -> None:
    """Notes a breach when the act goes through and gives anything but False or None."""
    try:
        if act() not in (False, None):
            found.setdefault(kind, []).append(what)
    except OSError:
        return


def write_outside(given: dict[str, Any], found: Breaches) -> None:
    def write(path: str) -> bool:
        with open(path, "w") as file:
            file.write("breached")
        return True

    outside = given["outside"]
    attempt(found, "fs_write", "a new file outside", lambda: write(outside + "/new"))
    attempt(found, "fs_write", "an existing file outside", lambda: write(outside + "/victim"))

    def by_link() -> bool:
        os.symlink(outside, "probe-link")
        return write("probe-link/linked")

    attempt(found, "fs_write", "a symbolic link to outside", by_link)


def read_outside(given: dict[str, Any], found: Breaches) -> None:
    def read(path: str) -> bool:
        with open(path) as file:
            return bool(file.read())

    attempt(found, "fs_read", "a file outside", lambda: read(given["outside"] + "/victim"))
    attempt(found, "fs_read", "a listing outside", lambda: os.listdir(given["outside"]))


def see_processes(given: dict[str, Any], found: Breaches) -> None:
    def look() -> bool:
        mark = given["bystander"][::-1].encode()  # Given backwards: it isn't to find itself.
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    if mark in file.read():
                        return True
            except OSError:
                continue
        return False

    attempt(found, "proc_hidden", "a process of the host", look)


def reach_host(given: dict[str, Any], found: Breaches) -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        port = given["ports"].get(host)
        if port is None:
            continue

        def connect(family: int = family, host: str = host, port: int = port) -> bool:
            with socket.socket(family, socket.SOCK_STREAM) as sock:
                sock.settimeout(5)
                sock.connect((host, port))
                return True

        for kind in ("net_deny", "egress_allowlist"):
            attempt(found, kind, f"the host's {host}", connect)

    def datagram() -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"breached", ("127.0.0.1", given["ports"]["udp"]))
            return False  # Whether it arrived, the host knows.

    attempt(found, "net_deny", "a datagram", datagram)
    if given["door"]:

        def through_door() -> bool:
            with socket.create_connection(("127.0.0.1", given["door"]), 5) as sock:
                return sock.recv(5) != b"door\n"

        try:
            if through_door():
                raise OSError("it answered something else")
        except OSError as error:
            found.setdefault("egress_allowlist", []).append(f"the door does not work: {error}")


def read_environment(given: dict[str, Any], found: Breaches) -> None:
    def differs() -> bool:
        ignored = {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}  # Set by Python and by macOS at start.
        return set(os.environ) - ignored != set(given["env"]) - ignored

    def elsewhere() -> bool:
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    names = {item.partition(b"=")[0].decode() for item in file.read().split(b"\0")}
            except OSError:
                continue
            if names - set(given["env"]) - {"", "PWD"}:
                return True
        return False

    attempt(found, "env", "variables that were not given", differs)
    attempt(found, "env of others", "variables of another process", elsewhere)


def raise_privilege(found: Breaches) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    attempt(found, "privesc", "setuid(0)", lambda: libc.setuid(0) == 0)
    for path, flags in (("/etc/shadow", os.O_RDONLY), (CORE_PATTERN, os.O_WRONLY)):
        attempt(found, "privesc", path, functools.partial(os.open, path, flags))
    attempt(found, "privesc", "a new user namespace", lambda: libc.unshare(0x10000000) == 0)

    def set_uid_file() -> bool:
        with open("probe-setuid", "w"):
            os.chmod("probe-setuid", 0o4755)
        return True

    attempt(found, "privesc", "a set-uid file", set_uid_file)
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    if int(status["CapEff"], 16) or int(status["CapPrm"], 16):
        found.setdefault("privesc", []).append("capabilities")
    if status["NoNewPrivs"].strip() != "1":
        found.setdefault("privesc", []).append("programs can gain privileges")


def make_refused_calls(found: Breaches) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    refused = {1, 38}  # EPERM, ENOSYS
    numbers = {"ptrace": (101, 117), "keyctl": (250, 219), "bpf": (321, 280)}
    numbers |= {"io_uring_setup": (425, 425), "userfaultfd": (323, 282), "mount": (165, 40)}
    column = 0 if os.uname().machine == "x86_64" else 1
    for name, pair in numbers.items():
        # An argument that no kernel accepts: an error other than these two shows a way through.
        if libc.syscall(pair[column], -1, -1, -1, -1, -1) >= 0 or ctypes.get_errno() not in refused:
            found.setdefault("syscalls", []).append(name)


if __name__ == "__main__":
    main()
