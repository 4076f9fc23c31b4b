"""A filtered copy of /etc: one directory that is bound in a single mount."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..leased import leased_directory

ENTRIES = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
    "fonts", "gai.conf", "host.conf", "inputrc", "java", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release", "magic",
    "magic.mime", "manpath.config", "mime.types", "networks", "nsswitch.conf", "os-release",
    "perl", "pki", "protocols", "python3", "redhat-release", "rpc", "services", "shells", "ssl",
    "terminfo", "timezone", "xattr.conf", "xml", "sgml",
)  # fmt: skip
"""What programs need of /etc; accounts, credentials and host configuration stay out."""

_kept = contextlib.ExitStack()
atexit.register(_kept.close)


def filtered_etc(texts: Mapping[str, str]) -> Path:
    """A world-readable directory with the host's entries of today and the given files.

    Made once per content and kept until the process ends. What other users of the host can't read
    is left out.
    """
    stamp = _stamp_of_second(int(time.monotonic()))
    return _make(stamp, tuple(sorted(texts.items())))


@functools.lru_cache(maxsize=1)
def _stamp_of_second(second: int) -> tuple[tuple[str, int], ...]:
    """Some forty calls, which short commands in a row would all pay."""
    return tuple(_stamps())


def _stamps() -> Iterator[tuple[str, int]]:
    for name in ENTRIES:
        try:
            yield name, os.stat(f"/etc/{name}").st_mtime_ns
        except FileNotFoundError:
            continue


@functools.lru_cache(maxsize=32)
def _make(stamp: tuple[tuple[str, int], ...], texts: tuple[tuple[str, str], ...]) -> Path:
    made = _kept.enter_context(leased_directory("etc"))
    made.chmod(0o755)
    for name, _ in stamp:
        source = Path("/etc", name)
        if source.is_dir():
            shutil.copytree(source, made / name, symlinks=True, ignore=_unreadable)
        elif _is_public(source):
            shutil.copy2(source, made / name)
    for name, text in texts:
        (made / name).write_text(text)
        (made / name).chmod(0o644)
    return made


def _unreadable(directory: str, names: list[str]) -> list[str]:
    return [name for name in names if not _is_public(Path(directory, name))]


def _is_public(path: Path) -> bool:
    if path.is_symlink():
        return True
    mode = path.stat().st_mode
    return bool(mode & 0o004) and os.access(path, os.R_OK)
