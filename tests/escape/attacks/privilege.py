"""Regaining privilege, nested namespaces, and system calls that no ordinary program needs."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import socket
import struct

from ..inside import Scene, case
from .observing import called, libc, numbered

KIND = "privilege"
NEW_USER, NEW_NET, NEW_NS, NEW_PID, NEW_UTS = 0x10000000, 0x40000000, 0x20000, 0x20000000, 0x4000000


def status(field: str) -> str:
    with open("/proc/self/status") as file:
        return next(line for line in file if line.startswith(f"{field}:")).split()[1]


def reached(number: int, *args: int) -> bool:
    """Whether the kernel looked at the arguments at all: neither EPERM nor ENOSYS."""
    ctypes.set_errno(0)
    result = libc.syscall(number, *(ctypes.c_long(arg) for arg in args))
    return bool(result >= 0 or ctypes.get_errno() not in (1, 38))


@case(KIND, "root")
def become_root(scene: Scene) -> bool:
    os.setuid(0)
    with open("/etc/shadow") as file:
        return bool(file.read())


@case(KIND, "root")
def be_root_outside(scene: Scene) -> bool:
    """A file that only the host's uid 0 may open, and that is visible everywhere."""
    return os.open("/proc/sys/vm/drop_caches", os.O_WRONLY) >= 0


@case(KIND, "root")
def hold_capabilities(scene: Scene) -> bool:
    return int(status("CapEff"), 16) != 0


@case(KIND, "root")
def keep_bounding_set(scene: Scene) -> bool:
    return int(status("CapBnd"), 16) != 0


@case(KIND)
def gain_privileges_on_exec(scene: Scene) -> bool:
    return status("NoNewPrivs") == "0"


@case(KIND)
def be_unfiltered(scene: Scene) -> bool:
    return status("Seccomp") == "0"


@case(KIND)
def make_setuid_file(scene: Scene) -> bool:
    with open("setuid", "w"):
        os.chmod("setuid", 0o4755)
    return True


@case(KIND)
def make_setgid_file(scene: Scene) -> bool:
    with open("setgid", "w"):
        os.chmod("setgid", 0o2755)
    return True


@case(KIND)
def make_setuid_file_by_descriptor(scene: Scene) -> bool:
    with open("setuid-fd", "w") as file:
        os.fchmod(file.fileno(), 0o4755)
    return True


@case(KIND)
def make_setuid_file_relative(scene: Scene) -> bool:
    with open("setuid-at", "w"):
        os.chmod("setuid-at", 0o4755, dir_fd=os.open(".", os.O_RDONLY))
    return True


@case(KIND)
def create_setuid_file(scene: Scene) -> bool:
    os.umask(0)
    os.close(os.open("setuid-open", os.O_CREAT | os.O_WRONLY, 0o4755))
    return bool(os.stat("setuid-open").st_mode & 0o4000)


@case(KIND)
def create_setuid_node(scene: Scene) -> bool:
    os.umask(0)
    os.mknod("setuid-node", 0o104755)
    return bool(os.stat("setuid-node").st_mode & 0o4000)


@case(KIND, "feature")
def create_setuid_file_by_openat2(scene: Scene) -> bool:
    os.umask(0)
    how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0))
    return bool(libc.syscall(437, -100, b"setuid-openat2", how, 24) >= 0)


@case(KIND, "feature")
def make_setuid_file_by_fchmodat2(scene: Scene) -> bool:
    with open("setuid-fchmodat2", "w"):
        pass
    return bool(libc.syscall(452, -100, b"setuid-fchmodat2", 0o4755, 0) == 0)


@case(KIND)
def unshare_user(scene: Scene) -> bool:
    return bool(libc.unshare(NEW_USER) == 0)


@case(KIND)
def unshare_user_and_mounts(scene: Scene) -> bool:
    return bool(libc.unshare(NEW_USER | NEW_NS) == 0)


@case(KIND)
def unshare_user_and_network(scene: Scene) -> bool:
    return bool(libc.unshare(NEW_USER | NEW_NET) == 0)


@case(KIND, "root")
def unshare_host_name(scene: Scene) -> bool:
    return bool(libc.unshare(NEW_UTS) == 0)


def _clone(flags: int) -> bool:
    pid = libc.syscall(numbered(56, 220), flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
    return bool(pid > 0)


@case(KIND)
def clone_user(scene: Scene) -> bool:
    return _clone(NEW_USER)


@case(KIND)
def clone_user_and_pid(scene: Scene) -> bool:
    return _clone(NEW_USER | NEW_PID)


@case(KIND)
def clone3_user(scene: Scene) -> bool:
    args = ctypes.create_string_buffer(struct.pack("QQQQQQQQ", NEW_USER, 0, 0, 0, 17, 0, 0, 0))
    pid = libc.syscall(435, args, 64)
    if pid == 0:
        os._exit(0)
    return bool(pid > 0)


@case(KIND, "root")
def join_namespace(scene: Scene) -> bool:
    fd = os.open("/proc/self/ns/uts", os.O_RDONLY)
    return bool(libc.setns(fd, 0) == 0)


@case(KIND, "root")
def set_host_name(scene: Scene) -> bool:
    name = os.uname().nodename.encode()
    return bool(libc.sethostname(name, len(name)) == 0)


@case(KIND, "root")
def change_root(scene: Scene) -> bool:
    os.chroot(".")
    return True


@case(KIND, "root")
def pivot_root(scene: Scene) -> bool:
    return reached(numbered(155, 41), 0, 0)


@case(KIND, "root")
def unmount(scene: Scene) -> bool:
    return reached(numbered(166, 39), 0, 0)


@case(KIND, "root")
def open_file_system(scene: Scene) -> bool:
    return bool(libc.syscall(430, b"tmpfs", 0) >= 0)


@case(KIND)
def open_tree(scene: Scene) -> bool:
    return bool(libc.syscall(428, -100, b".", 0) >= 0)


@case(KIND, "root")
def clone_tree(scene: Scene) -> bool:
    return bool(libc.syscall(428, -100, b".", 1) >= 0)


@case(KIND, "root")
def load_bpf(scene: Scene) -> bool:
    return reached(numbered(321, 280), -1, 0, 0)


@case(KIND, "feature")
def open_performance_events(scene: Scene) -> bool:
    return reached(numbered(298, 241), 0, 0, -1, -1, 0)


@case(KIND, "feature")
def handle_page_faults(scene: Scene) -> bool:
    return called(numbered(323, 282), 1)


@case(KIND, "feature")
def set_up_io_uring(scene: Scene) -> bool:
    parameters = ctypes.create_string_buffer(120)
    return bool(libc.syscall(425, 1, parameters) >= 0)


@case(KIND, "feature")
def load_module(scene: Scene) -> bool:
    return reached(numbered(313, 273), -1, 0, -1)


@case(KIND, "feature")
def unload_module(scene: Scene) -> bool:
    return reached(numbered(176, 106), 0, 0)


@case(KIND, "root")
def watch_file_system(scene: Scene) -> bool:
    return called(numbered(300, 262), 0, 0)


@case(KIND)
def make_file_handle(scene: Scene) -> bool:
    """EOVERFLOW says how large the handle would be: the call was let through."""
    handle = ctypes.create_string_buffer(8)
    mount_id = ctypes.c_int()
    libc.syscall(numbered(303, 264), -100, b".", handle, ctypes.byref(mount_id), 0)
    return ctypes.get_errno() in (0, 75)


@case(KIND, "root")
def open_by_handle(scene: Scene) -> bool:
    return reached(numbered(304, 265), -1, 0, 0)


@case(KIND, "root")
def swap_off(scene: Scene) -> bool:
    return reached(numbered(168, 225), 0)


@case(KIND, "root")
def account_processes(scene: Scene) -> bool:
    """A path that does not exist: the call changes nothing."""
    ctypes.set_errno(0)
    libc.syscall(numbered(163, 89), b"/does/not/exist")
    return ctypes.get_errno() == 2


@case(KIND)
def read_clock_discipline(scene: Scene) -> bool:
    return bool(libc.syscall(numbered(159, 171), ctypes.create_string_buffer(256)) >= 0)


@case(KIND)
def change_personality(scene: Scene) -> bool:
    return called(numbered(135, 92), 0x0040000)


@case(KIND)
def trace_own_child(scene: Scene) -> bool:
    return called(numbered(101, 117), 0, 0, 0, 0)


@case(KIND, "feature")
def read_local_descriptor_table(scene: Scene) -> bool:
    return bool(libc.syscall(154, 0, ctypes.create_string_buffer(64), 64) >= 0)


def own_terminal() -> int:
    """The controlling terminal of a new session."""
    os.setsid()
    _, terminal = os.openpty()
    return os.open(os.ttyname(terminal), os.O_RDWR)


@case(KIND)
def type_into_terminal(scene: Scene) -> bool:
    """TIOCSTI: kernels may refuse it by themselves (EIO), which is not the sandbox's doing."""
    terminal = own_terminal()
    ctypes.set_errno(0)
    libc.ioctl(terminal, 0x5412, b"x")
    return ctypes.get_errno() != 1


@case(KIND)
def type_into_terminal_with_high_bits(scene: Scene) -> bool:
    terminal = own_terminal()
    ctypes.set_errno(0)
    libc.syscall(numbered(16, 29), terminal, ctypes.c_ulong(0xFFFFFFFF00005412), b"x")
    return ctypes.get_errno() != 1


@case(KIND, "feature")
def call_by_foreign_abi(scene: Scene) -> bool:
    """`int 0x80` is the 32-bit ABI, with numbers that a filter for 64 bits doesn't know."""
    if os.uname().machine != "x86_64":
        return False
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    code = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return bool(code() > 0)


@case(KIND, "feature")
def call_by_x32_abi(scene: Scene) -> bool:
    return os.uname().machine == "x86_64" and called(0x40000000 | 39)


@case(KIND)
def open_netlink(scene: Scene) -> bool:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    return True


@case(KIND, "root")
def open_packet_socket(scene: Scene) -> bool:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return True


@case(KIND, "feature")
def open_vsock(scene: Scene) -> bool:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0).close()
    return True


@case(KIND, "feature")
def open_kernel_crypto(scene: Scene) -> bool:
    socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0).close()
    return True


@case(KIND)
def open_unix_socket(scene: Scene) -> bool:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0).close()
    return True


@case(KIND)
def pair_sockets_of_another_family(scene: Scene) -> bool:
    """The kernel would load the family's module. It has no pairs of INET: EOPNOTSUPP shows that it
    was asked."""
    try:
        socket.socketpair(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        return error.errno == errno.EOPNOTSUPP
    return True


@case(KIND, "feature")
def open_seldom_protocol(scene: Scene) -> bool:
    udp_lite = 136
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM, udp_lite).close()
    return True


@case(KIND)
def set_line_discipline(scene: Scene) -> bool:
    """Each has a module that the kernel would load."""
    _, terminal = os.openpty()
    ordinary = ctypes.c_int(0)
    return bool(libc.ioctl(terminal, 0x5423, ctypes.byref(ordinary)) == 0)


@case(KIND)
def keep_memory_in_no_process(scene: Scene) -> bool:
    """A System V segment that nobody attaches counts for no process."""
    return makes_segment(1 << 20)


@case(KIND)
def keep_memory_in_no_process_with_high_bits(scene: Scene) -> bool:
    return makes_segment(1 << 32)


def makes_segment(size: int) -> bool:
    without_reserve, private, remove = 0o10000, 0, 0
    made = libc.shmget(private, ctypes.c_size_t(size), without_reserve | 0o1600)
    return bool(made >= 0 and libc.shmctl(made, remove, None) == 0)


@case(KIND)
def take_back_death_with_parent(scene: Scene) -> bool:
    """What a payload may do, it can make the sandbox's first process do, through its memory. That
    one would then survive a killed worker."""
    set_signal, get_signal = 1, 2
    found = ctypes.c_int(0)
    libc.prctl(set_signal, signal.SIGUSR1, 0, 0, 0)
    libc.prctl(get_signal, ctypes.byref(found), 0, 0, 0)
    return found.value == signal.SIGUSR1


@case(KIND)
def run_program_from_memory_without_filter(scene: Scene) -> bool:
    program = os.memfd_create("program", 0)
    with open("/bin/cat", "rb") as file:
        os.write(program, file.read())
    read, write = os.pipe()
    if os.fork() == 0:
        os.dup2(write, 1)
        os.execv(f"/proc/self/fd/{program}", ["cat", "/proc/self/status"])
    os.close(write)
    with os.fdopen(read) as file:
        return "Seccomp:\t0" in file.read()


@case(KIND, "feature")
def open_kernel_device(scene: Scene) -> bool:
    names = ("kvm", "fuse", "net/tun", "userfaultfd", "vsock", "vhost-vsock", "vhost-net", "mem")
    names += ("uinput", "loop-control", "mapper/control", "ptp0", "rtc0", "hwrng", "port", "kmem")
    for name in names:
        with contextlib.suppress(OSError):
            os.close(os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK))
            return True
    return False


@case(KIND, "feature")
def read_kernel_log(scene: Scene) -> bool:
    read_all = 3
    return bool(libc.klogctl(read_all, ctypes.create_string_buffer(100), 100) >= 0)
