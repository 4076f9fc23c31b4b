"""The activities behind `io_harness.workflows.pieces`: they need no run, only what they are given."""

import dataclasses
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

from io_harness import sandbox
from io_harness.sandbox.egress import BadRule, Proxy, Rules, Session
from io_harness.sandbox.network import through_proxy
from io_harness.workflows.contract import (
    DirectorySource,
    Model,
    NoCheck,
    Patch,
    SandboxSpec,
    Source,
    TaskContract,
    Verification,
)
from io_harness.workflows.payloads import RunScope, VerifyInput
from io_harness.workflows.pieces import (
    RUN_HELD,
    VERIFY_WORK,
    HeldCommand,
    HeldResult,
    WorkToVerify,
)
from io_harness.workflows.result import IsolationReport, VerificationReport

from .checkout import CopyPaths
from .commands import contract_plan
from .failure import failure, told
from .heartbeat import heartbeating
from .locks import FileLock, file_lock
from .prepare import make_copy, namespace_id, strong_enough
from .settings import Settings
from .source import directory_of, import_source
from .store import SnapshotStore
from .telemetry.spans import sandboxed
from .trees import remove_tree
from .verification import verify


class Pieces:
    """Sandboxed commands and verification, on this host."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = SnapshotStore(settings.data_dir)
        self._proxy = Proxy()

    @activity.defn(name=RUN_HELD)
    async def run_held(self, command: HeldCommand) -> HeldResult:
        """
        Raises:
            ApplicationError: SourceNotFound, SandboxTooWeak, SandboxUnusable, InvalidHost.
        """
        async with heartbeating():
            with told():
                root = directory_of(DirectorySource(path=command.directory))
                contract = _contract(DirectorySource(path=str(root)), _strict(command))
                await strong_enough(contract)
                seconds = command.sandbox.limits.wall_seconds
                plan = dataclasses.replace(
                    contract_plan(command.run, root, contract, seconds),
                    mode=command.mode,
                    net=self._net(command.hosts),
                    protected=sandbox.protected_in(root),
                )
                completed = await sandboxed(sandbox.run(plan))
        found = completed.isolation
        return HeldResult(
            cause=completed.cause,
            exit_code=completed.exit_code,
            output=completed.stdout.text(command.output_bytes),
            seconds=round(completed.seconds, 3),
            isolation=IsolationReport(backend=found.backend, levels=dict(found.levels.items())),
        )

    @activity.defn(name=VERIFY_WORK)
    async def verify_work(self, given: WorkToVerify) -> VerificationReport:
        """
        Raises:
            ApplicationError: SourceNotFound, SandboxTooWeak, SetupFailed and the like.
        """
        async with heartbeating():
            with told():
                source = given.base or given.work
                contract = _contract(source, given.sandbox, given.verification)
                if contract.reviews:
                    raise failure(
                        "NoReviewer",
                        "verification: a review needs a run of the agent; use another kind",
                    )
                await strong_enough(contract)
                await self._store.ready()
                async with self._scratch() as (paths, lock):
                    base, head = await self._snapshots(given, contract, paths, lock)
                    scope = RunScope(key=paths.run_key, contract_digest="")
                    judged = VerifyInput(run=scope, base=base, head=head, answer=given.answer)
                    return await verify(contract, judged, self._settings, self._store)

    async def _snapshots(
        self, given: WorkToVerify, contract: TaskContract, paths: CopyPaths, lock: FileLock
    ) -> tuple[str, str]:
        """Commits of what the work began from, and of the work."""
        namespace = await namespace_id(activity.client())
        base = await make_copy(self._store, paths, contract, lock, namespace)
        if given.base is None:
            return base, base
        git = paths.git(self._store, lock)
        scratch = dataclasses.replace(
            git,
            work_tree=None,
            index=paths.directory / "index.work",
            excludes=paths.directory / "excludes.work",
        )
        imported = await import_source(self._store, given.work, paths.run_key, scratch)
        return base, self._store.commit(imported.tree, [base], "work")

    @asynccontextmanager
    async def _scratch(self) -> AsyncIterator[tuple[CopyPaths, FileLock]]:
        """Room of one verification, of which nothing is kept."""
        key = f"verify-{secrets.token_hex(8)}"
        paths = CopyPaths.of(self._settings, key)
        async with file_lock(paths.lock) as lock:
            try:
                yield paths, lock
            finally:
                remove_tree(paths.directory)
                for name in ("base", "head"):
                    await self._store.delete_ref(key, name)
                paths.lock.unlink(missing_ok=True)

    def _net(self, hosts: tuple[str, ...]) -> sandbox.Net:
        if not hosts:
            return sandbox.NetNone()
        try:
            rules = Rules.allowing(*hosts, layer="command")
        except BadRule as error:
            raise failure("InvalidHost", f"hosts: {error}") from error
        return through_proxy(self._proxy, Session("held command", rules))


def _strict(command: HeldCommand) -> SandboxSpec:
    """With hosts to reach, "no network" means that there is no way round the proxy."""
    spec = command.sandbox
    if not command.hosts or "net_deny" not in spec.require:
        return spec
    return spec.model_copy(update={"require": (*spec.require, "egress_allowlist")})


def _contract(
    source: Source, spec: SandboxSpec, verification: Verification | None = None
) -> TaskContract:
    """A contract for what reads one. There is no agent: its model is never asked, and nothing lands."""
    return TaskContract(
        goal="verify",
        workspace=source,
        verification=verification or NoCheck(),
        model=Model(provider="none", name="none"),
        landing=Patch(path="none"),
        sandbox=spec,
    )
