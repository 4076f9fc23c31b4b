"""Writing outside the workspace, by every kind of call that changes a file or a directory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading

from ..inside import Scene, case
from .reading import victim

KIND = "writing"


def write(path: str) -> bool:
    with open(path, "w") as file:
        file.write("breached")
    return True


@case(KIND)
def create_outside(scene: Scene) -> bool:
    return write(victim(scene) + ".new")


@case(KIND)
def overwrite(scene: Scene) -> bool:
    return write(victim(scene))


@case(KIND)
def append(scene: Scene) -> bool:
    with open(victim(scene), "a") as file:
        file.write("breached")
    return True


@case(KIND)
def truncate(scene: Scene) -> bool:
    os.truncate(victim(scene), 0)
    return True


@case(KIND)
def unlink(scene: Scene) -> bool:
    os.unlink(victim(scene))
    return True


@case(KIND)
def rename_out_of_workspace(scene: Scene) -> bool:
    write("to-move")
    os.rename("to-move", victim(scene))
    return True


@case(KIND)
def move_outside_file_away(scene: Scene) -> bool:
    os.rename(victim(scene), victim(scene) + ".gone")
    return True


@case(KIND)
def write_by_own_symlink(scene: Scene) -> bool:
    os.symlink(victim(scene), "write-link")
    return write("write-link")


@case(KIND)
def write_by_planted_symlink(scene: Scene) -> bool:
    return write("planted-file-link")


@case(KIND)
def write_by_directory_symlink(scene: Scene) -> bool:
    os.symlink(scene["outside"], "write-directory-link")
    return write(f"write-directory-link/{scene['case']}")


@case(KIND)
def write_by_planted_directory_symlink(scene: Scene) -> bool:
    return write(f"planted-directory-link/{scene['case']}")


@case(KIND)
def write_by_hard_link(scene: Scene) -> bool:
    os.link(victim(scene), "write-hard-link")
    return write("write-hard-link")


@case(KIND)
def write_by_relative_path(scene: Scene) -> bool:
    return write(os.path.relpath(victim(scene)))


@case(KIND)
def write_by_own_directory_in_proc(scene: Scene) -> bool:
    return write(f"/proc/self/cwd/{os.path.relpath(victim(scene))}")


@case(KIND)
def write_by_directory_of_a_process(scene: Scene) -> bool:
    return write(f"/proc/{scene['bystander_pid']}/cwd/{scene['case']}")


@case(KIND)
def write_by_open_directory(scene: Scene) -> bool:
    directory = os.open(scene["outside"], os.O_RDONLY)
    fd = os.open(scene["case"], os.O_WRONLY, dir_fd=directory)
    return os.write(fd, b"breached") > 0


@case(KIND)
def link_unnamed_file_outside(scene: Scene) -> bool:
    fd = os.open(scene["outside"], os.O_TMPFILE | os.O_WRONLY)
    source, target = f"/proc/self/fd/{fd}".encode(), f"{victim(scene)}.linked".encode()
    follow = 0x400
    return bool(ctypes.CDLL(None).linkat(-100, source, -100, target, follow) == 0)


@case(KIND)
def change_mode(scene: Scene) -> bool:
    os.chmod(victim(scene), 0o777)
    return True


@case(KIND)
def change_times(scene: Scene) -> bool:
    os.utime(victim(scene), (1, 1))
    return True


@case(KIND)
def change_attributes(scene: Scene) -> bool:
    os.setxattr(victim(scene), "user.breached", b"yes")
    return True


@case(KIND, "root")
def change_owner(scene: Scene) -> bool:
    os.chown(victim(scene), 12345, 12345)
    return True


@case(KIND)
def make_directory(scene: Scene) -> bool:
    os.mkdir(victim(scene) + ".directory")
    return True


@case(KIND)
def make_fifo(scene: Scene) -> bool:
    os.mkfifo(victim(scene) + ".fifo")
    return True


@case(KIND)
def make_symlink_outside(scene: Scene) -> bool:
    os.symlink("/", victim(scene) + ".symlink")
    return True


@case(KIND)
def bind_socket_outside(scene: Scene) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"{scene['outside']}/s")
    return True


@case(KIND)
def write_in_read_only_root(scene: Scene) -> bool:
    return write(f"{scene['read_only']}/file")


@case(KIND)
def create_in_read_only_root(scene: Scene) -> bool:
    return write(f"{scene['read_only']}/new")


@case(KIND)
def write_sibling_workspace(scene: Scene) -> bool:
    return write(f"{scene['sibling']}/notes")


@case(KIND)
def write_home_profile(scene: Scene) -> bool:
    """The home that the command has may take it; the host's must not have it afterwards."""
    path = os.path.expanduser("~/.profile")
    with open(path) as file:
        known = file.read()
    return write(path) and scene["secret"] in known


@case(KIND)
def swap_link_while_writing(scene: Scene) -> bool:
    """One thread swaps a directory and a link to outside, the other writes through the name."""
    os.mkdir("swap-real")
    write("swap-real/" + scene["case"])
    os.symlink(scene["outside"], "swap-link")
    os.symlink("swap-real", "swap")
    ended = False

    def swap() -> None:
        turn = 0
        while not ended:
            turn += 1
            os.symlink(("swap-link", "swap-real")[turn % 2], "swap-next")
            os.replace("swap-next", "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(500):
            with contextlib.suppress(OSError):
                write(f"swap/{scene['case']}")
            with contextlib.suppress(OSError), open(victim(scene)) as file:
                if file.read() == "breached":
                    return True
        return False
    finally:
        ended = True
        thread.join()


@case(KIND, "root")
def write_to_usr(scene: Scene) -> bool:
    path = "/usr/share/io-harness-escape-test"
    try:
        return write(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)


@case(KIND, "root")
def write_to_etc(scene: Scene) -> bool:
    path = "/etc/io-harness-escape-test"
    try:
        return write(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)


@case(KIND, "root")
def create_in_root_directory(scene: Scene) -> bool:
    path = "/io-harness-escape-test"
    try:
        return write(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)


@case(KIND, "root")
def create_in_dev(scene: Scene) -> bool:
    path = "/dev/io-harness-escape-test"
    try:
        return write(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)


@case(KIND, "root")
def make_device(scene: Scene) -> bool:
    os.mknod("zero", 0o20666, os.makedev(1, 5))
    with open("zero", "rb") as file:
        return file.read(1) == b"\0"


@case(KIND, "root")
def open_core_pattern(scene: Scene) -> bool:
    return os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY) >= 0


@case(KIND, "feature")
def open_sysrq_trigger(scene: Scene) -> bool:
    return os.open("/proc/sysrq-trigger", os.O_WRONLY) >= 0


@case(KIND, "feature")
def open_block_device(scene: Scene) -> bool:
    names = [name for name in os.listdir("/dev") if name.startswith(("sd", "vd", "nvme", "loop"))]
    return any(os.open(f"/dev/{name}", os.O_RDONLY) >= 0 for name in names)


@case(KIND, "root")
def open_kernel_log(scene: Scene) -> bool:
    return os.open("/dev/kmsg", os.O_WRONLY) >= 0


@case(KIND, "root")
def mount_over_workspace(scene: Scene) -> bool:
    libc = ctypes.CDLL(None)
    os.mkdir("mount-point")
    if libc.mount(b"none", b"mount-point", b"tmpfs", 0, None) != 0:
        return False
    libc.umount2(b"mount-point", 2)
    return True


@case(KIND)
def see_sysfs(scene: Scene) -> bool:
    return bool(os.listdir("/sys/kernel"))
