"""Makes a copied Python environment point at the copy.

A virtual environment holds the absolute path of where it was made: in the first line of its scripts,
in `pyvenv.cfg`, and for editable installs in `.pth` files and their finders. Left alone, the copy's
tests would import the source's code, and a fix in the copy would go unseen.
"""

import os
import stat
import threading

from .trees import Stopped, walk

_LARGEST = 1 << 20
_SUFFIXES = (b".pth", b".egg-link")


def relocate(target: bytes, names: list[bytes], origin: bytes, stop: threading.Event) -> None:
    """Rewrite `origin` to `target` in the environments among the copied folders `names`."""
    for name in names:
        top = os.path.join(target, name)
        if os.path.islink(top) or not os.path.isdir(top):
            continue
        for environment in _environments(top):
            _rewrite_environment(environment, origin, target, stop)


def _environments(top: bytes) -> list[bytes]:
    """`top` itself or folders right below it: where people put environments."""
    candidates = [top, *(e.path for e in os.scandir(top) if e.is_dir(follow_symlinks=False))]
    return [
        folder
        for folder in candidates
        if os.path.isfile(os.path.join(folder, b"pyvenv.cfg"))
        and not os.path.islink(os.path.join(folder, b"pyvenv.cfg"))
    ]


def _rewrite_environment(
    environment: bytes, origin: bytes, target: bytes, stop: threading.Event
) -> None:
    scripts = os.path.join(environment, b"bin")
    for entry in walk(environment):
        if stop.is_set():
            raise Stopped
        if not stat.S_ISREG(entry.info.st_mode) or entry.info.st_size > _LARGEST:
            continue
        name = os.path.basename(entry.path)
        if (
            os.path.dirname(entry.path) == scripts
            or name == b"pyvenv.cfg"
            or name.endswith(_SUFFIXES)
            or name.startswith(b"__editable__")
        ):
            _rewrite(entry.path, origin, target, entry.info)


def _rewrite(path: bytes, origin: bytes, target: bytes, info: os.stat_result) -> None:
    with open(path, "rb") as file:
        content = file.read()
    if b"\0" in content or not (changed := _moved(content, origin, target)):
        return
    partial = path + b".relocating"
    with open(partial, "xb") as file:
        file.write(changed)
    os.chmod(partial, stat.S_IMODE(info.st_mode))
    os.replace(partial, path)


def _moved(content: bytes, origin: bytes, target: bytes) -> bytes | None:
    """`content` with the folder `origin` replaced wherever it is named as a whole, or None."""
    pieces = content.split(origin)
    if len(pieces) == 1:
        return None
    moved = pieces[0]
    for piece in pieces[1:]:
        whole = not piece or piece[:1] in b"/\"'\n\r \t:;)"
        moved += (target if whole else origin) + piece
    return moved if moved != content else None
