"""A snapshot store that several hosts share through one git repository, so that any of them can serve
any call of a run. Each keeps a store of its own and works on that; before an activity it fetches what
it lacks, and after one it pushes the run's refs before the result enters history. So a snapshot that
history names is in the shared repository. Outputs of which history holds only a part go the same way,
in a tree per run and worker.
"""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from io_harness.workflows.model import Record
from io_harness.workflows.payloads import (
    InlineCall,
    PrepareInput,
    ReleaseInput,
    RunScope,
    ToolDone,
    UseToolInput,
)

from .failure import failure, told
from .git import GitError
from .git_url import remote
from .heartbeat import heartbeating
from .outputs import NoSuchOutput, RunOutputs
from .settings import Settings
from .store import REFS, SnapshotStore, ref_of
from .tools.read_output import ReadOutput

_COMMITS = ("base", "head", "child_base", "child_head")
"""Fields of an activity's input that name snapshots."""


class SharedSnapshotStore(SnapshotStore):
    """A host's store, and the repository through which it shares with others.

    Args:
        url: The shared repository, as git names it. It must exist; nothing but refs under
            `refs/io-harness` is touched there.
    """

    def __init__(self, data_dir: Path, url: str) -> None:
        super().__init__(data_dir)
        self._url = url
        self._given: dict[str, str] = {}
        """Refs of a run as they were pushed last."""
        self._outputs_ref = f"outputs-{secrets.token_hex(4)}"
        """This worker's own: two that keep outputs of one run don't overwrite each other's tree."""
        self._outputs: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By run, the kept outputs' handles and blobs."""
        self._keeping = asyncio.Lock()

    async def bring(self, keys: Iterable[str], objects: Iterable[str]) -> None:
        """Fetch what this host lacks of runs' refs and of snapshots. What the shared repository lacks
        too stays missing.

        Raises:
            ApplicationError: SnapshotsUnreachable.
        """
        await self.ready()
        missing = [each for each in objects if not await self._has(each)]
        for key in keys:
            if missing or await self.ref(key, "base") is None:
                await self._fetch_refs(key)
                fetched = await self._refs(key)
                own = ref_of(key, self._outputs_ref)
                self._given[key] = "".join(
                    line for line in fetched.splitlines(keepends=True) if own not in line
                )
        for each in missing:
            if not await self._has(each):
                await self._fetch(each)

    async def give(self, key: str) -> None:
        """Push the run's refs, if they changed.

        Raises:
            ApplicationError: SnapshotsUnreachable.
        """
        refs = await self._refs(key)
        if refs and refs != self._given.get(key):
            await self._network("push", "--quiet", self._url, f"+{REFS}/{key}/*:{REFS}/{key}/*")
            self._given[key] = refs

    async def drop(self, keys: Collection[str]) -> None:
        """Delete runs' refs in the shared repository.

        Raises:
            ApplicationError: SnapshotsUnreachable.
        """
        patterns = [f"{REFS}/{key}/*" for key in keys]
        listed = await self._network("ls-remote", "--quiet", self._url, *patterns)
        refs = [line.split("\t")[1] for line in listed.splitlines()]
        if refs:
            await self._network("push", "--quiet", self._url, *(f":{ref}" for ref in refs))

    def forget(self, key: str) -> None:
        """The run has ended; its refs stay."""
        self._given.pop(key, None)
        self._outputs.pop(key, None)

    async def get_blob(self, blob: str) -> bytes:
        await self.bring((), (blob,))
        return await super().get_blob(blob)

    async def keep_blobs(self, key: str, blobs: Iterable[str]) -> None:
        """Have a run's ref lead to blobs that no snapshot holds."""
        for blob in blobs:
            await self.set_ref(key, f"blob-{blob}", blob)

    async def keep_output(self, outputs: RunOutputs, key: str, handle: str) -> None:
        """Have a run's ref lead to an output that is kept here."""
        async with self._keeping:
            kept = self._outputs[key]
            if handle in kept:
                return
            git = self.git()
            kept[handle] = await git.line("hash-object", "-w", "--no-filters", outputs.file(handle))
            entries = "".join(f"100644 blob {blob}\t{name}\n" for name, blob in kept.items())
            tree = await git.line("mktree", stdin=entries.encode())
            await self.set_ref(key, self._outputs_ref, tree)

    async def bring_output(self, outputs: RunOutputs, key: str, handle: str) -> None:
        """Fetch an output that another host keeps. What none keeps stays missing.

        Raises:
            ApplicationError: SnapshotsUnreachable.
            NoSuchOutput: no handle looks like that.
        """
        file = outputs.file(handle)
        if file.exists():
            return
        await self._fetch_refs(key)
        for line in (await self._refs(key)).splitlines():
            tree, _, ref = line.split()
            if not ref.startswith(f"{REFS}/{key}/outputs-"):
                continue
            if found := await self.entry(tree, handle):
                outputs.directory.mkdir(parents=True, exist_ok=True)
                git = self.git(work_tree=outputs.directory)
                (outputs.directory / await git.line("unpack-file", found[1])).replace(file)
                return

    async def _fetch_refs(self, key: str) -> None:
        refs = f"{REFS}/{key}"
        await self._fetch(f"+{refs}/*:{refs}/*", f"^{refs}/{self._outputs_ref}")

    async def _has(self, name: str) -> bool:
        found = await self.git().run("cat-file", "-e", name, codes=(0, 1, 128))
        return found.code == 0

    async def _refs(self, key: str) -> str:
        return (await self.git().out("for-each-ref", f"{REFS}/{key}/")).decode()

    async def _fetch(self, *what: str) -> None:
        await self._network(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            self._url,
            *what,
            absent="not our ref",
        )

    async def _network(self, *args: str, absent: str | None = None) -> str:
        try:
            return (await remote(self).out(*args)).decode()
        except GitError as error:
            if absent is not None and absent in error.stderr:
                return ""
            if error.disk_full or error.denied:
                raise
            raise failure(
                "SnapshotsUnreachable",
                f"the shared snapshot store {self._url} can't be used: {error.stderr.strip()}",
                retry=True,
            ) from error


def store_of(settings: Settings) -> SnapshotStore:
    """A worker's snapshot store: shared with others where the settings name a repository."""
    if settings.shared_store is None:
        return SnapshotStore(settings.data_dir)
    return SharedSnapshotStore(settings.data_dir, settings.shared_store)


class SharingInterceptor(Interceptor):
    """Of a worker: shares the snapshots of each activity that works for a run."""

    def __init__(self, store: SharedSnapshotStore) -> None:
        self._store = store

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Sharing(next, self._store)


class _Sharing(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, store: SharedSnapshotStore) -> None:
        super().__init__(next)
        self._store = store

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        given = input.args[0] if input.args else None
        scope = getattr(given, "run", None)
        if not isinstance(given, Record) or not isinstance(scope, RunScope):
            return await self.next.execute_activity(input)
        async with heartbeating():
            with told():
                await self._store.bring(*_needed(given, scope))
                if handle := _reads(given):
                    with suppress(NoSuchOutput):  # which the tool says
                        await self._store.bring_output(self._outputs(scope), scope.key, handle)
        result = await self.next.execute_activity(input)
        async with heartbeating():
            with told():
                if isinstance(result, ToolDone):
                    seen = result.observation
                    await self._store.keep_blobs(scope.key, (image.blob for image in seen.images))
                    if seen.spill is not None:
                        outputs = self._outputs(scope)
                        await self._store.keep_output(outputs, scope.key, seen.spill)
                await self._store.give(scope.key)
        if isinstance(given, ReleaseInput):
            self._store.forget(scope.key)
        return result

    def _outputs(self, scope: RunScope) -> RunOutputs:
        return RunOutputs(self._store.path.parent, scope.key)


def _reads(given: Record) -> str:
    """Handle of the output that a call asks for; empty if it asks for none."""
    if not isinstance(given, UseToolInput) or not isinstance(given.call, InlineCall):
        return ""
    call = given.call.call
    handle = call.arguments.get("handle") if call.name == ReadOutput.name else None
    return handle if isinstance(handle, str) else ""


def _needed(given: Record, scope: RunScope) -> tuple[set[str], set[str]]:
    """Keys of the runs, and the snapshots, that an activity works with."""
    keys, commits = {scope.key}, {getattr(given, name, None) for name in _COMMITS}
    if isinstance(given, PrepareInput) and given.origin is not None:
        keys.add(given.origin.parent)
        commits.add(given.origin.base)
    return keys, {each for each in commits if isinstance(each, str)}
