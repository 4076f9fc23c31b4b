"""The activities around a run's files: prepare, verify, land, release."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry.trace import Span
from temporalio import activity

from io_harness.workflows.payloads import (
    LandInput,
    LandOutcome,
    MergeInput,
    MergeOutcome,
    Prepared,
    PrepareInput,
    Released,
    ReleaseInput,
    VerifyInput,
)
from io_harness.workflows.result import VerificationReport

from .failure import told
from .gate import Gate
from .heartbeat import heartbeating
from .landing import land
from .mcp.toolbox import McpToolbox
from .merge import merge
from .network import RunNetwork
from .prepare import prepare
from .release import release
from .run_reader import RunReader
from .settings import Settings
from .store import SnapshotStore
from .telemetry.spans import activity_span, run_ended, verified
from .tools.jobs import JobTable
from .tools.registry import ToolRegistry
from .verification import verify
from .workspace_policy import RunPolicies


class WorkspaceActivities:
    """Each may be attempted again at any point and then gives the same result."""

    def __init__(
        self,
        settings: Settings,
        reader: RunReader,
        store: SnapshotStore,
        registry: ToolRegistry,
        mcp: McpToolbox,
        jobs: JobTable,
        network: RunNetwork,
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._store = store
        self._registry = registry
        self._mcp = mcp
        self._jobs = jobs
        self._network = network
        self._policies = RunPolicies(store)

    @activity.defn(name="prepare")
    async def prepare(self, given: PrepareInput) -> Prepared:
        async with _alive("prepare"):
            contract = await self._reader.contract(given.run)
            return await prepare(
                contract,
                given.run.key,
                self._settings,
                self._store,
                activity.client(),
                self._network,
                given.origin,
            )

    @activity.defn(name="verify")
    async def verify(self, given: VerifyInput) -> VerificationReport:
        async with _alive("verify") as span:
            contract = await self._reader.contract(given.run)
            key = given.run.key
            policy = await self._policies.policy(contract, key)
            gate = Gate(policy.remember(*given.remembered), approval=contract.approval)
            report = await verify(
                contract,
                given,
                self._settings,
                self._store,
                lambda: self._network.command(key, gate),
            )
            verified(span, report)
            return report.model_copy(update={"egress": self._network.take_counts(key)})

    @activity.defn(name="merge")
    async def merge(self, given: MergeInput) -> MergeOutcome:
        async with _alive("merge"):
            contract = await self._reader.contract(given.run)
            return await merge(contract, given, self._store)

    @activity.defn(name="land")
    async def land(self, given: LandInput) -> LandOutcome:
        async with _alive("land"):
            contract = await self._reader.contract(given.run)
            return await land(contract, given, self._settings, self._store)

    @activity.defn(name="release")
    async def release(self, given: ReleaseInput) -> Released:
        async with _alive("release") as span:
            await self._jobs.stop_run(given.run.key)
            await self._mcp.close_run(given.run.key)
            released = await release(given, self._settings, self._store)
            counts = self._network.take_counts(given.run.key)
            self._network.forget(given.run.key)
            run_ended(span, given)
            return released.model_copy(update={"egress": counts})


@asynccontextmanager
async def _alive(name: str) -> AsyncIterator[Span]:
    async with heartbeating():
        with activity_span(name) as span, told():
            yield span
