"""git for the agent, on the run's own snapshots: fixed commands, no push, no hooks, no `.git`."""

import os
from typing import Literal

from pydantic import Field

from io_harness.workflows.messages import Observation
from io_harness.workflows.result import FileChange

from .base import Args, Tool
from .context import ToolContext
from .errors import EmptyText, NoMatch

_DIFF_BYTES = 10 * 1024 * 1024
_LETTERS = {"added": "A", "modified": "M", "deleted": "D"}
_IDENTITY = "io-harness", "io-harness@localhost.invalid"


def commit_identity() -> tuple[str, str]:
    """Name and mail address of the agent's commits: git's own variables in the worker's environment,
    or the harness's."""
    return (
        os.environ.get("GIT_AUTHOR_NAME") or _IDENTITY[0],
        os.environ.get("GIT_AUTHOR_EMAIL") or _IDENTITY[1],
    )


class NoArgs(Args):
    pass


class GitStatus(Tool[NoArgs]):
    name = "git_status"
    description = "List files changed since your last git_commit."
    Args = NoArgs
    effect = "read"

    async def run(self, args: NoArgs, ctx: ToolContext) -> Observation:
        last = await ctx.history.last()
        since = last.id if last else await ctx.history.start()
        changes, withheld = _visible(await ctx.history.changes(since), ctx)
        title = f"on top of {last.id[:12]} {_subject(last.message)}" if last else "no commit yet"
        lines = [f"{_LETTERS[c.status]} {c.path} (+{c.added} -{c.removed})" for c in changes]
        notes = [title, f"{len(changes)} changed", *withheld]
        return ctx.outputs.observe("\n".join([*lines, f"[{'; '.join(notes)}]"]))


class GitDiffArgs(Args):
    path: str | None = None
    """Only this file or folder."""
    since: Literal["commit", "start"] = "commit"
    """Your last commit, or the start of the run."""


class GitDiff(Tool[GitDiffArgs]):
    name = "git_diff"
    description = "Show your changes as a diff."
    Args = GitDiffArgs
    effect = "read"

    async def run(self, args: GitDiffArgs, ctx: ToolContext) -> Observation:
        last = await ctx.history.last() if args.since == "commit" else None
        since = last.id if last else await ctx.history.start()
        changes, withheld = _visible(await ctx.history.changes(since), ctx)
        paths = tuple(c.path for c in changes if args.path is None or _within(c.path, args.path))
        if not paths:
            what = "" if args.path is None else f" in {args.path}"
            return Observation(text=f"[{'; '.join([f'no changes{what}', *withheld])}]")
        text, omitted = await ctx.history.diff(since, paths, _DIFF_BYTES)
        notes = [f"{omitted:,} bytes more are not shown"] if omitted else []
        notes += withheld
        return ctx.outputs.observe(text + (f"[{'; '.join(notes)}]" if notes else ""))


class GitLogArgs(Args):
    limit: int = Field(20, ge=1, le=200)


class GitLog(Tool[GitLogArgs]):
    name = "git_log"
    description = "List your commits, newest first."
    Args = GitLogArgs
    effect = "read"

    async def run(self, args: GitLogArgs, ctx: ToolContext) -> Observation:
        commits = await ctx.history.commits(args.limit)
        texts = [f"{c.id[:12]} {c.author}\n    {_indented(c.message)}" for c in commits]
        return ctx.outputs.observe("\n".join(texts) or "[no commit yet]")


class GitCommitArgs(Args):
    message: str = Field(max_length=10_000)


class GitCommit(Tool[GitCommitArgs]):
    name = "git_commit"
    description = "Commit all changes, to mark a state you may compare with later."
    Args = GitCommitArgs
    effect = "write"

    async def run(self, args: GitCommitArgs, ctx: ToolContext) -> Observation:
        if not args.message.strip():
            raise EmptyText("the commit message is empty")
        last = await ctx.history.last()
        since = last.id if last else await ctx.history.start()
        changes = await ctx.history.changes(since)
        if not changes:
            raise NoMatch("nothing has changed since your last commit")
        ctx.require()
        ctx.history.commit(args.message)
        return Observation(text=f"committed {len(changes)} changed files: {_subject(args.message)}")


def _visible(
    changes: tuple[FileChange, ...], ctx: ToolContext
) -> tuple[list[FileChange], list[str]]:
    readable = [c for c in changes if ctx.gate.readable(c.path)]
    withheld = len(changes) - len(readable)
    return readable, [f"{withheld} withheld by the policy"] if withheld else []


def _within(path: str, folder: str) -> bool:
    folder = folder.removeprefix("./").rstrip("/")
    return folder in ("", ".") or path == folder or path.startswith(f"{folder}/")


def _subject(message: str) -> str:
    return message.strip().split("\n", 1)[0][:100]


def _indented(message: str) -> str:
    return message.replace("\n", "\n    ")
