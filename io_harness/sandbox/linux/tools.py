"""Where the programs on the command's PATH live: what must be visible for them to run."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/gnu")))
_LINKS_FOLLOWED = 256
"""Entries of one PATH directory whose targets are looked at."""


def tool_roots(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Directories outside the system's own that PATH's programs need, to be shown read-only.

    A PATH directory is shown as it is. The installation prefix around it is shown too when it
    looks like one, as are the prefixes that its symbolic links and virtual environments lead to.
    A home directory, and anything above one, is never shown. The running Python's own prefix is.
    """
    prefixes = (sys.prefix, sys.base_prefix)
    return _tool_roots(env.get("PATH", ""), env.get("HOME", ""), prefixes)


@functools.lru_cache(maxsize=64)
def _tool_roots(search_path: str, home: str, own: tuple[str, ...]) -> tuple[Path, ...]:
    refused = frozenset(_refused(home))
    found: set[Path] = set()
    for entry in search_path.split(os.pathsep):
        directory = Path(entry)
        if entry and directory.is_absolute() and not _in_system(directory) and _usable(directory):
            found |= set(_around(directory, refused))
    for prefix in own:
        found |= set(_around(Path(prefix, "bin"), refused))
    found -= refused
    return tuple(sorted(root for root in found if found.isdisjoint(root.parents)))


def _refused(home: str) -> Iterator[Path]:
    """Homes, with what lies above them, and folders that mix programs with personal data."""
    for text in {home, os.path.expanduser("~")}:
        path = Path(text)
        if path.is_absolute() and path != Path("/"):
            yield path
            yield from path.parents
            yield from (path / name for name in (".local", ".local/share", ".config", ".cache"))
    yield from map(Path, ("/", "/home", "/root", "/tmp", "/var", "/etc", "/srv", "/mnt", "/run"))


def _in_system(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in _SYSTEM)


def _usable(path: Path) -> bool:
    """Whether it is a directory that this user may list. Others of PATH are of no use inside either,
    and `Path.is_dir` raises where a directory above may not be entered."""
    return os.access(path, os.R_OK | os.X_OK) and os.path.isdir(path)


def _around(directory: Path, refused: frozenset[Path]) -> Iterator[Path]:
    """What must be visible for the programs of one directory."""
    queue = [directory]
    seen: set[Path] = set()
    while queue:
        here = queue.pop()
        if here in seen or here in refused or _in_system(here) or not _usable(here):
            continue
        seen.add(here)
        yield here
        prefix = here.parent
        if _is_prefix(prefix) and prefix not in refused:
            yield prefix
            queue += _base_of_environment(prefix)
        queue += _link_targets(here)
        if (here / "rustup").exists():
            # Its proxies look for toolchains here, by no link.
            yield from filter(Path.is_dir, (prefix.parent / ".rustup",))


def _is_prefix(path: Path) -> bool:
    """Whether a directory is an installation: with libraries of its own, or many versions."""
    return any((path / name).exists() for name in ("pyvenv.cfg", "versions", "toolchains", "lib"))


def _base_of_environment(prefix: Path) -> Iterator[Path]:
    """The `bin` of the Python that a virtual environment was made with (PEP 405)."""
    configuration = prefix / "pyvenv.cfg"
    if configuration.is_file():
        for line in configuration.read_text(errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and Path(value.strip()).is_absolute():
                yield Path(value.strip())


def _link_targets(directory: Path) -> Iterator[Path]:
    with os.scandir(directory) as entries:
        links = [Path(entry.path) for entry in entries if entry.is_symlink()]
    for link in links[:_LINKS_FOLLOWED]:
        target = link.resolve()
        if os.path.isfile(target) and target.parent != directory:
            yield target.parent
