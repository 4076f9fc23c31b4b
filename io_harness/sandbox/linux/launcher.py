"""Ties itself down and becomes the command, for hosts without bubblewrap.

Run as a script by any Python from 3.11 on, with one argument: the number of a descriptor that
holds a JSON document. Reports as bubblewrap does on its status descriptor: `{"child-pid": N}` when
the command's process exists, and `{"exit-code": N}` when the command was started and has ended.
Needs nothing but the standard library and ctypes.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from typing import Any

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22
PR_SET_CHILD_SUBREAPER, PR_CAPBSET_DROP = 36, 24
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)
Config = dict[str, Any]


def check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def main() -> None:
    with os.fdopen(int(sys.argv[1])) as file:
        config: Config = json.load(file)
    for name in ("status", "block"):
        os.set_inheritable(config[name], False)
    try:
        die_with_parent(config["parent"])
        if config["namespaces"]:
            enter_namespaces(config["namespaces"])
        else:
            check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
        watch(config)
    except OSError as error:
        os.write(2, f"sandbox launcher: {error}\n".encode())
        os._exit(1)


def die_with_parent(parent: int) -> None:
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "parent-death signal")
    if os.getppid() != parent:
        raise OSError("the parent has ended")


def watch(config: Config) -> None:
    """Starts the command's process; collects it and, without namespaces, whatever loses its parent."""
    begun_read, begun_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        become_command(config, begun_write)
    os.close(begun_write)
    os.write(config["status"], json.dumps({"child-pid": pid}).encode() + b"\n")
    failure = os.read(begun_read, 4096)
    if failure:
        os.write(2, failure)
        os._exit(1)
    for fd in (0, 1, 2):
        os.close(fd)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            if not config["namespaces"]:
                end_orphans()
            os.write(config["status"], json.dumps({"exit-code": code}).encode() + b"\n")
            os._exit(code)


def end_orphans() -> None:
    """Without a namespace that ends with its first process. Whoever loses its parent meanwhile
    becomes a child of this process."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        while children := file.read().split():
            for child in children:
                os.kill(int(child), signal.SIGKILL)
            os.wait()
            file.seek(0)


def become_command(config: Config, begun: int) -> None:
    """Never returns. What `begun` gets is the reason why the command was not started; its end is
    the start."""
    try:
        die_with_parent(0 if config["namespaces"] else os.getppid())
        if config["namespaces"]:
            libc.sethostname(b"sandbox", 7)
            if not config["namespaces"]["host_network"]:
                bring_loopback_up()
            build_root(config)
        tie_down(config)
        os.chdir(config["cwd"])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.read(config["block"], 1)
        os.setsid()
        argv: list[str] = config["argv"]
        os.execve(argv[0], argv, config["env"])
    except BaseException as error:  # noqa: BLE001 - a forked child must not go on
        os.write(begun, f"sandbox launcher: {error}\n".encode())
    os._exit(1)


def bring_loopback_up() -> None:
    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = fcntl.ioctl(sock, get_flags, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack_from("16sh", answer)[1] | up
        fcntl.ioctl(sock, set_flags, struct.pack("16sh22x", b"lo", flags))


def tie_down(config: Config) -> None:
    """No new privileges, Landlock, no capabilities, seccomp: in the order in which each still can
    be done."""
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if config["landlock"]:
        restrict(config["landlock"])
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    check(libc.capset(header, bytes(24)), "capset")
    program = bytes.fromhex(config["seccomp"])
    code = ctypes.create_string_buffer(program, len(program))
    packed = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    check(libc.prctl(PR_SET_SECCOMP, 2, packed, 0, 0), "seccomp")


def restrict(rules: Config) -> None:
    """Landlock (landlock(7)): files by rules on open paths, signals and abstract sockets kept in."""
    attributes = struct.pack("QQQ", rules["files"], 0, rules["scoped"])[: rules["size"]]
    ruleset = check(
        libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0),
        "landlock_create_ruleset",
    )
    for path, access in rules["paths"]:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", access, fd)
        check(libc.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0), f"Landlock rule for {path}")
        os.close(fd)
    check(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def enter_namespaces(config: Config) -> None:
    """New user, mount, PID, IPC, UTS and network namespaces; the next child is the first in them."""
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
    if not config["host_network"]:
        flags |= CLONE_NEWNET
    check(libc.unshare(flags), "unshare")
    inner_uid, inner_gid = config["inner"]
    maps = {
        "setgroups": "deny",
        "uid_map": f"{inner_uid} {uid} 1",
        "gid_map": f"{inner_gid} {gid} 1",
    }
    for name, text in maps.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


# --- the new root -----------------------------------------------------------------------------

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_SLAVE = 4096, 16384, 1 << 19
MNT_DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
BASE = "/tmp"
"""Any directory of the host: what is built on it is seen by this process alone."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    words = [os.fsencode(word) if word is not None else None for word in (source, target, kind)]
    result = libc.mount(*words, ctypes.c_ulong(flags), data.encode() or None)
    check(result, f"mount of {source or kind} on {target}")


def pivot(new: bytes, old: bytes) -> None:
    check(libc.syscall(PIVOT_ROOT[os.uname().machine], new, old), "pivot_root")


def build_root(config: Config) -> None:
    """A root in memory with the mounts of the view, read-only in the end. The host's is at /old
    while they are made."""
    mount(None, "/", None, MS_REC | MS_SLAVE)
    mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for name in ("new", "old"):
        os.mkdir(f"{BASE}/{name}")
    mount("tmpfs", f"{BASE}/new", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    pivot(BASE.encode(), f"{BASE}/old".encode())
    os.chdir("/")
    late: list[str] = ["/new"]
    for each in config["mounts"]:
        late += make_mount(each)
    for place in late:
        mount(None, place, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    check(libc.umount2(b"/old", MNT_DETACH), "umount of the host's root")
    os.chdir("/new")
    pivot(b".", b".")
    check(libc.umount2(b".", MNT_DETACH), "umount of the base")
    os.chdir("/")


def make_mount(each: Config) -> list[str]:
    """Makes one, and returns what has to be read-only once all are made."""
    at = "/new" + each["at"].rstrip("/")
    os.makedirs(os.path.dirname(at), exist_ok=True)
    match each["what"]:
        case "bind":
            bind("/old" + each["source"], at, writable=each["writable"])
        case "tmpfs":
            os.makedirs(at, exist_ok=True)
            options = f"size={each['size']},mode={each['mode']:o}"
            mount("tmpfs", at, "tmpfs", MS_NOSUID | MS_NODEV, options)
            return [] if each["writable"] else [at]
        case "text":
            source = f"/text-{len(os.listdir('/'))}"
            with open(source, "wb") as file:
                file.write(bytes.fromhex(each["content"]))
            bind(source, at, writable=False)
        case "overlay":
            mount_overlay("/old" + each["source"], at, each["size"])
        case "link":
            os.symlink(each["target"], at)
        case "proc":
            os.makedirs(at, exist_ok=True)
            mount("proc", at, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        case "dev":
            make_devices(at)
            return [at]
    return []


def bind(source: str, at: str, *, writable: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(at, exist_ok=True)
    elif not os.path.lexists(at):
        with open(at, "w"):
            pass
    mount(source, at, None, MS_BIND | MS_REC)
    flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | (0 if writable else MS_RDONLY)
    mount(None, at, None, flags | kept_flags(at))


def mount_overlay(source: str, at: str, size: int) -> None:
    """The writable layer is in memory. The lower one is named by `.`, whatever is in its path."""
    layers = f"/layers-{len(os.listdir('/'))}"
    os.mkdir(layers)
    mount("tmpfs", layers, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size}")
    for name in ("upper", "work"):
        os.mkdir(f"{layers}/{name}")
    os.makedirs(at, exist_ok=True)
    os.chdir(source)
    options = f"lowerdir=.,upperdir={layers}/upper,workdir={layers}/work,userxattr"
    mount("overlay", at, "overlay", MS_NOSUID | MS_NODEV, options)
    os.chdir("/")


def kept_flags(path: str) -> int:
    """Flags of the mount that a user namespace may not take off again."""
    found = os.statvfs(path).f_flag
    kept = {os.ST_NOEXEC: MS_NOEXEC, os.ST_RDONLY: MS_RDONLY, os.ST_NOATIME: 1024}
    kept |= {os.ST_NODIRATIME: 2048, os.ST_RELATIME: 1 << 21}
    return sum(flag for bit, flag in kept.items() if found & bit)


def make_devices(at: str) -> None:
    os.makedirs(at, exist_ok=True)
    mount("tmpfs", at, "tmpfs", MS_NOSUID, "mode=755,size=64k")
    for name in DEVICES:
        with open(f"{at}/{name}", "w"):
            pass
        mount(f"/old/dev/{name}", f"{at}/{name}", None, MS_BIND)
    links = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, target in links.items():
        os.symlink(f"/proc/self/{target}", f"{at}/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"{at}/{name}")
    options = "newinstance,ptmxmode=0666,mode=620"
    mount("devpts", f"{at}/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)
    os.symlink("pts/ptmx", f"{at}/ptmx")


if __name__ == "__main__":
    main()
