"""Runs git so that nothing outside our own command line can make it run anything else.

A tree that a model wrote is hostile: with ordinary settings `git status` in it starts a planted
fsmonitor, `git add` a planted filter and `git log -p` a planted textconv. Here git sees neither the
tree's own `.git` nor the system's or the user's configuration, runs no hook, and takes attributes
only from our own `info/attributes`.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

OLDEST = (2, 38)
"""`git merge-tree --write-tree` came with 2.38."""

Arg = str | bytes | Path

_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "core.symlinks=true",
    "core.fileMode=true",
    # Names like git~1 or a\\b, which other systems can't have, are ordinary ones here.
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.looseCompression=1",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.ext.allow=never",
    "merge.directoryRenames=false",
    # Own repositories are owned by us; a source of another owner is only read, with these options.
    "safe.directory=*",
)
_NAME, _MAIL = "io-harness", "io-harness@localhost.invalid"
IDENTITY = f"{_NAME} <{_MAIL}>"
EPOCH = "946684800 +0000"
"""Date of every snapshot: a snapshot of the same content on the same parent is the same commit."""


_FULL = ("No space left on device", "Disk quota exceeded", "Out of diskspace")
_DENIED = ("Read-only file system", "insufficient permission")


class GitError(Exception):
    """git ended with an exit code that the caller doesn't know how to read."""

    def __init__(self, command: str, code: int, stderr: str) -> None:
        last = stderr.strip() or "no message"
        super().__init__(f"git {command} ended with {code}: {last}")
        self.code = code
        self.stderr = stderr

    @property
    def disk_full(self) -> bool:
        return any(sign in self.stderr for sign in _FULL)

    @property
    def denied(self) -> bool:
        """What git would write may not be written."""
        return any(sign in self.stderr for sign in _DENIED)


class GitUnusable(Exception):
    """git is missing or too old."""


@dataclass(frozen=True)
class GitOutput:
    code: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True)
class Git:
    """git on one repository and, where given, one work tree and index, both named explicitly."""

    git_dir: Path
    work_tree: Path | None = None
    index: Path | None = None
    excludes: Path | None = None
    """Ignore patterns besides the tree's own `.gitignore` files."""
    options: tuple[str, ...] = ()
    """Further `name=value` settings."""
    env: tuple[tuple[str, str], ...] = ()
    """Further variables."""
    owner: tuple[int, int] | None = None
    """User and group id to run as."""
    held: tuple[int, ...] = field(default=(), repr=False)
    """Descriptors that git inherits. With that of a lock, the lock outlives a killed worker for as
    long as its git still writes."""

    async def run(self, *args: Arg, stdin: bytes = b"", codes: Collection[int] = (0,)) -> GitOutput:
        """Run one command to its end. Cancellation kills it.

        Raises:
            GitError: the exit code is not in `codes`.
            GitUnusable: there is no git.
        """
        process = await self._spawn(args, subprocess.PIPE if stdin else subprocess.DEVNULL)
        async with _ended(process):
            stdout, stderr = await process.communicate(stdin or None)
        code = process.returncode
        assert code is not None
        output = GitOutput(code, stdout, stderr.decode(errors="replace"))
        if code not in codes:
            raise GitError(os.fsdecode(args[0]), code, output.stderr)
        return output

    async def out(self, *args: Arg, stdin: bytes = b"") -> bytes:
        """What the command prints."""
        return (await self.run(*args, stdin=stdin)).stdout

    async def line(self, *args: Arg, stdin: bytes = b"") -> str:
        """The one line that the command prints."""
        return (await self.out(*args, stdin=stdin)).decode().strip()

    async def capped(self, *args: Arg, limit: int) -> tuple[bytes, int]:
        """The first `limit` bytes that the command prints, and how many more there were.

        Raises:
            GitError: the exit code is not 0.
        """
        process = await self._spawn(args, subprocess.DEVNULL)
        assert process.stdout is not None
        assert process.stderr is not None
        kept, total = bytearray(), 0
        async with _ended(process):
            errors = asyncio.ensure_future(process.stderr.read())
            try:
                while piece := await process.stdout.read(1 << 16):
                    total += len(piece)
                    kept += piece[: limit - len(kept)]
                stderr = (await errors).decode(errors="replace")
            finally:
                errors.cancel()
            code = await process.wait()
        if code:
            raise GitError(os.fsdecode(args[0]), code, stderr)
        return bytes(kept), total - len(kept)

    async def _spawn(self, args: tuple[Arg, ...], stdin: int) -> asyncio.subprocess.Process:
        user, group = self.owner or (None, None)
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *self._argv(args),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(),
                cwd=self.work_tree or "/",
                start_new_session=True,  # a Ctrl-C at the worker's terminal is not for git
                pass_fds=self.held,
                user=user,
                group=group,
                extra_groups=[] if self.owner else None,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio would kill git alone, then wait for helpers that hold its pipes.
            async with _ended(await starting):
                raise

    def _argv(self, args: tuple[Arg, ...]) -> list[Arg]:
        options = [*_OPTIONS, *self.options]
        options.append(f"core.excludesFile={self.excludes or '/dev/null'}")
        settings = [part for option in options for part in ("-c", option)]
        return [_program(), "--no-pager", *settings, *args]

    def _environment(self) -> dict[str, str]:
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_DIR": str(self.git_dir),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_AUTHOR_NAME": _NAME,
            "GIT_AUTHOR_EMAIL": _MAIL,
            "GIT_AUTHOR_DATE": EPOCH,
            "GIT_COMMITTER_NAME": _NAME,
            "GIT_COMMITTER_EMAIL": _MAIL,
            "GIT_COMMITTER_DATE": EPOCH,
        }
        if self.work_tree is not None:
            env["GIT_WORK_TREE"] = str(self.work_tree)
        if self.index is not None:
            env["GIT_INDEX_FILE"] = str(self.index)
        return env | dict(self.env)


@contextlib.asynccontextmanager
async def _ended(process: asyncio.subprocess.Process) -> AsyncIterator[None]:
    """Leaves no process behind, whatever interrupts the body; neither git nor its helpers."""
    try:
        yield
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@cache
def _program() -> str:
    path = shutil.which("git")
    if path is None:
        raise GitUnusable(
            f"git is not on the worker's PATH; install git {_dotted(OLDEST)} or newer"
        )
    return path


def check_version() -> None:
    """Raises:
    GitUnusable: git is missing or older than `OLDEST`.
    """
    printed = subprocess.run([_program(), "version"], capture_output=True, text=True, check=True)
    words = printed.stdout.split()
    numbers = tuple(int(part) for part in words[2].split(".")[:2]) if len(words) > 2 else ()
    if numbers < OLDEST:
        raise GitUnusable(
            f"{printed.stdout.strip()} is too old; install git {_dotted(OLDEST)} or newer"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
