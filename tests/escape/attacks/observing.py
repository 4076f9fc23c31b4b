"""Seeing, signalling and tracing what belongs to the host: processes, environment, descriptors."""

from __future__ import annotations

import ctypes
import glob
import os
import resource
import signal

from ..inside import Scene, case

KIND = "observing"
libc = ctypes.CDLL(None, use_errno=True)


def called(number: int, *args: int) -> bool:
    """Whether a system call succeeded. Numbers are x86_64's or aarch64's, see `numbered`."""
    return bool(libc.syscall(number, *(ctypes.c_long(arg) for arg in args)) >= 0)


def numbered(x86_64: int, aarch64: int) -> int:
    return x86_64 if os.uname().machine == "x86_64" else aarch64


def some_file_holds(pattern: str, needle: str) -> bool:
    for path in glob.glob(pattern):
        try:
            with open(path, "rb") as file:
                if needle.encode() in file.read():
                    return True
        except OSError:
            continue
    return False


@case(KIND)
def see_command_line(scene: Scene) -> bool:
    return some_file_holds("/proc/[0-9]*/cmdline", scene["mark_reversed"][::-1])


@case(KIND)
def see_environment_of_a_process(scene: Scene) -> bool:
    return some_file_holds("/proc/[0-9]*/environ", scene["env_secret_reversed"][::-1])


@case(KIND)
def inherit_environment(scene: Scene) -> bool:
    return scene["env_secret_reversed"][::-1] in os.environ.values()


@case(KIND)
def see_environment_of_first_process(scene: Scene) -> bool:
    """PID 1 may know what was given, nothing else."""
    return some_file_holds(f"/proc/{os.getppid()}/environ", scene["env_secret_reversed"][::-1]) or (
        some_file_holds("/proc/1/environ", scene["env_secret_reversed"][::-1])
    )


@case(KIND)
def inherit_descriptor(scene: Scene) -> bool:
    for fd in range(3, 200):
        try:
            if scene["secret"].encode() in os.pread(fd, 10_000, 0):
                return True
        except OSError:
            continue
    return False


@case(KIND)
def find_process(scene: Scene) -> bool:
    return os.path.exists(f"/proc/{scene['bystander_pid']}/status")


@case(KIND)
def signal_process(scene: Scene) -> bool:
    os.kill(scene["bystander_pid"], 0)
    return True


@case(KIND)
def signal_by_pidfd(scene: Scene) -> bool:
    fd = os.pidfd_open(scene["bystander_pid"])
    signal.pidfd_send_signal(fd, 0)
    return True


@case(KIND)
def set_affinity_of_process(scene: Scene) -> bool:
    pid = scene["bystander_pid"]
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))
    return True


@case(KIND)
def set_priority_of_process(scene: Scene) -> bool:
    pid = scene["bystander_pid"]
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    return True


@case(KIND)
def set_limits_of_process(scene: Scene) -> bool:
    _, hard = resource.prlimit(scene["bystander_pid"], resource.RLIMIT_CORE)
    resource.prlimit(scene["bystander_pid"], resource.RLIMIT_CORE, (0, hard))
    return True


@case(KIND)
def trace_process(scene: Scene) -> bool:
    seize, detach = 0x4206, 17
    pid = scene["bystander_pid"]
    ptrace = numbered(101, 117)
    if not called(ptrace, seize, pid, 0, 0):
        return False
    called(ptrace, detach, pid, 0, 0)
    return True


@case(KIND)
def open_memory_of_process(scene: Scene) -> bool:
    return os.open(f"/proc/{scene['bystander_pid']}/mem", os.O_RDWR) >= 0


@case(KIND)
def read_memory_of_process(scene: Scene) -> bool:
    """An address that is not mapped gives EFAULT, where permission was had."""
    local = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    remote = (ctypes.c_size_t * 2)(8, 8)
    pid = scene["bystander_pid"]
    number = numbered(310, 270)
    libc.syscall(number, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return ctypes.get_errno() == 14


@case(KIND)
def compare_with_process(scene: Scene) -> bool:
    return called(numbered(312, 272), os.getpid(), scene["bystander_pid"], 0, 0, 0)


@case(KIND)
def take_descriptor_of_process(scene: Scene) -> bool:
    fd = os.pidfd_open(scene["bystander_pid"])
    return called(438, fd, 0, 0)


@case(KIND)
def use_first_process_without_filter(scene: Scene) -> bool:
    """In a sandbox PID 1 is ours, and must be as tied down as the rest; outside it is init."""
    pid = 1 if scene["inside"] else scene["bystander_pid"]
    with open(f"/proc/{pid}/status") as file:
        seccomp = next(line for line in file if line.startswith("Seccomp:")).split()[1]
    return seccomp != "2"


@case(KIND)
def find_system_v_memory(scene: Scene) -> bool:
    return bool(libc.shmget(scene["shm_key"], 0, 0) >= 0)


@case(KIND)
def find_system_v_queue(scene: Scene) -> bool:
    return bool(libc.msgget(scene["shm_key"], 0) >= 0)


@case(KIND)
def see_host_name(scene: Scene) -> bool:
    return os.uname().nodename == scene["host_name"]


@case(KIND)
def see_mounts_of_host(scene: Scene) -> bool:
    with open("/proc/self/mountinfo") as file:
        return any(line.split()[4] == "/" and " tmpfs " not in line for line in file)


@case(KIND)
def find_session_keyring(scene: Scene) -> bool:
    return called(numbered(250, 219), 0, -3, 1)


@case(KIND)
def add_key(scene: Scene) -> bool:
    number = numbered(248, 217)
    return bool(libc.syscall(number, b"user", b"io-harness-escape", b"x", 1, -2) >= 0)
