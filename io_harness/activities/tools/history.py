"""The agent's own commits. They are snapshots like any other, marked in their message: so they are
the run's, survive a worker, and involve no `.git` that could run anything."""

from dataclasses import dataclass, field

from io_harness.activities.store import SnapshotStore
from io_harness.workflows.result import FileChange

_MARK = "Io-Harness: a commit of the agent's"
_FIELDS = "%H%x1f%an <%ae>%x1f%B%x1e"


@dataclass(frozen=True)
class AgentCommit:
    id: str
    author: str
    message: str


@dataclass
class History:
    """Commits of a run up to the snapshot `base`, where a call begins."""

    store: SnapshotStore
    base: str
    message: str | None = field(default=None, init=False)
    """Message of the commit that this call makes; None if it makes none."""

    def commit(self, message: str) -> None:
        """Make the snapshot that ends this call a commit of the agent's."""
        self.message = f"{message.strip()}\n\n{_MARK}\n"

    async def start(self) -> str:
        """The run's first snapshot."""
        return await self.store.git().line(
            "rev-list", "--first-parent", "--max-parents=0", "--end-of-options", self.base
        )

    async def commits(self, limit: int) -> tuple[AgentCommit, ...]:
        """The newest of the agent's commits first."""
        printed = await self.store.git().out(
            "log", "--first-parent", "--fixed-strings", f"--grep={_MARK}", f"--max-count={limit}",
            f"--format={_FIELDS}", "--no-show-signature", "--end-of-options", self.base,
        )  # fmt: skip
        records = printed.decode(errors="replace").split("\x1e")
        parts = [record.strip("\n").split("\x1f") for record in records if record.strip("\n")]
        return tuple(AgentCommit(i, a, m.replace(_MARK, "").strip()) for i, a, m in parts)

    async def last(self) -> AgentCommit | None:
        """The newest of the agent's commits."""
        found = await self.commits(1)
        return found[0] if found else None

    async def changes(self, since: str) -> tuple[FileChange, ...]:
        """What differs between a snapshot and the files as they are."""
        return await self.store.changes(since, self.base)

    async def diff(self, since: str, paths: tuple[str, ...], limit: int) -> tuple[str, int]:
        """Unified diff of these paths, at most `limit` bytes, and how many more there are."""
        raw, omitted = await self.store.git().capped(
            "--literal-pathspecs", "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff",
            "--no-textconv", "--no-color", since, self.base, "--", *paths, limit=limit,
        )  # fmt: skip
        return raw.decode("utf-8", "backslashreplace"), omitted
