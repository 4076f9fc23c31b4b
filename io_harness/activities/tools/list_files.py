"""Lists a directory."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from io_harness.workflows.messages import Observation

from .base import Args, Tool
from .blocking import in_thread
from .context import ToolContext

_MOST_ENTRIES = 100_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ListFilesArgs(Args):
    path: str = "."
    depth: int = Field(1, ge=1, le=5)
    offset: int = Field(0, ge=0)
    limit: int = Field(500, ge=1, le=1000)


class ListFiles(Tool[ListFilesArgs]):
    name = "list_files"
    description = "List a directory; hidden and ignored entries too. Folders end in /."
    Args = ListFilesArgs
    effect = "read"

    async def run(self, args: ListFilesArgs, ctx: ToolContext) -> Observation:
        return await in_thread(lambda: self._list(args, ctx))

    def _list(self, args: ListFilesArgs, ctx: ToolContext) -> Observation:
        listing = _Listing(ctx)
        with ctx.files.directory(args.path) as (descriptor, path):
            ctx.check_read(path)
            prefix = "" if path == "." else f"{path}/"
            entries = list(listing.walk(descriptor, prefix, args.depth))
        page = [entry.removeprefix(prefix) for entry in entries[args.offset :][: args.limit]]
        notes = (
            [f"{len(entries):,} entries in {path}"]
            if not listing.cut
            else [f"more than {_MOST_ENTRIES:,} entries in {path}; the rest is not listed"]
        )
        if len(page) < len(entries):
            notes.append(f"shown from {args.offset}; next offset {args.offset + len(page)}")
        if listing.withheld:
            notes.append(f"{listing.withheld} withheld by the policy")
        return ctx.outputs.observe("\n".join([*page, f"[{'; '.join(notes)}]"]))


@dataclass
class _Listing:
    ctx: ToolContext
    withheld: int = 0
    seen: int = 0

    @property
    def cut(self) -> bool:
        return self.seen >= _MOST_ENTRIES

    def walk(self, directory: int, prefix: str, depth: int) -> Iterator[str]:
        """Entries in order of their names, folders followed by what is in them."""
        for name in sorted(os.listdir(directory)):
            if self.cut:
                return
            self.seen += 1
            path = prefix + name
            if not self.ctx.gate.readable(path):
                self.withheld += 1
                continue
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield _shown(path, name, directory, status)
            if stat.S_ISDIR(status.st_mode) and depth > 1 and name != ".git":
                yield from self._below(directory, name, path, depth)

    def _below(self, directory: int, name: str, path: str, depth: int) -> Iterator[str]:
        try:
            below = os.open(name, _DIRECTORY, dir_fd=directory)
        except OSError as error:
            yield f"{path}/ [{error.strerror}]"
            return
        try:
            yield from self.walk(below, f"{path}/", depth - 1)
        finally:
            os.close(below)


def _shown(path: str, name: str, directory: int, status: os.stat_result) -> str:
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    match stat.S_IFMT(status.st_mode):
        case stat.S_IFREG:
            return shown
        case stat.S_IFDIR:
            return f"{shown}/"
        case stat.S_IFLNK:
            try:
                return f"{shown} -> {os.readlink(name, dir_fd=directory)}"
            except OSError:
                return f"{shown} -> ?"
        case stat.S_IFIFO:
            return f"{shown} [FIFO]"
        case stat.S_IFSOCK:
            return f"{shown} [socket]"
        case _:
            return f"{shown} [device]"
