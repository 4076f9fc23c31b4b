"""The shell that runs command lines."""

import shutil


def shell() -> str:
    """bash, by which command lines are understood; a plain shell where there is none."""
    return shutil.which("bash") or "/bin/sh"
