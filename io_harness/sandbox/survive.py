"""What a probe does inside a sandbox to outlive it. Run as a script with a mark as argument."""

from __future__ import annotations

import os
import signal
import sys
import time


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("x" * 100_000)
    sys.stdout.flush()
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with open("big", "wb") as file:
            file.write(bytes(3 * 1024 * 1024))
    except OSError:
        pass  # The limit: how far it came, the host looks up.
    if hasattr(os, "fork"):
        leave_survivor()


def leave_survivor() -> None:
    """Returns when a grandchild in a session of its own has begun to sleep."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, b"!")
            for fd in (0, 1, 2, read, write):
                os.close(fd)
            time.sleep(1000)
        os._exit(0)
    os.wait()
    os.read(read, 1)


if __name__ == "__main__":
    main()
