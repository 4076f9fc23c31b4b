"""`HarnessPlugin`: the harness in somebody's own Temporal client, worker and replayer."""

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

from temporalio.client import Client, ClientConfig
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    DefaultPayloadConverter,
    PayloadCodec,
)
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    FixedSizeSlotSupplier,
    ResourceBasedSlotConfig,
    ResourceBasedSlotSupplier,
    ResourceBasedTunerConfig,
    Worker,
    WorkerConfig,
    WorkerDeploymentConfig,
    WorkerTuner,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from io_harness import TASK_QUEUE as TASK_QUEUE
from io_harness import __version__
from io_harness.activities.admit import AdmissionActivities
from io_harness.activities.log import ActivityLog
from io_harness.activities.mcp.listing import McpActivities
from io_harness.activities.mcp.toolbox import McpToolbox
from io_harness.activities.model import ModelActivities
from io_harness.activities.network import RunNetwork
from io_harness.activities.pieces import Pieces
from io_harness.activities.run_reader import RunReader
from io_harness.activities.settings import Settings
from io_harness.activities.shared_store import (
    SharedSnapshotStore,
    SharingInterceptor,
    store_of,
)
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.base import AnyTool
from io_harness.activities.tools.jobs import JobTable
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.activities.tools.use_tool import ToolActivities
from io_harness.activities.workspace_activities import WorkspaceActivities
from io_harness.encryption import EncryptionCodec
from io_harness.sandbox.log import get_logger
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.result import Spend

_log = get_logger(__name__)
_CANCEL_NOTICE = timedelta(seconds=1)
"""A cancellation reaches an activity with its next heartbeat that isn't throttled."""
_STICKY = timedelta(seconds=3)
"""How long a workflow task waits for the worker that has the run in its cache. The SDK's 10 s is how
long a run stands still when that worker was killed; one that is only busy gives it up the sooner."""
_ACTIVITIES_PER_CORE = 8
"""That many begin whatever the host does."""
_MOST_ACTIVITIES = 1_000
_FIXED_SLOTS = 100
"""The SDK's own number of slots for all but activities."""
_CLOSE_SECONDS = 15
"""After this the worker ends although something of it still holds on."""
_PASSED_THROUGH = ("io_harness.workflows", "pydantic", "pydantic_core", "annotated_types")


class HarnessPlugin(SimplePlugin):
    """Brings workflow, activities and converter; fills only what is still at its default.

    Give it to `Client.connect(plugins=[...])`: workers made from that client have it too, and given
    to one of them again it adds nothing. A `Replayer` inherits nothing from a client and needs it of
    its own. Beside a plugin that brings a payload converter of its own (which must carry pydantic
    models) its place in a client's list doesn't matter; in a replayer's it comes last.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        tools: Iterable[AnyTool] = (),
        codec: PayloadCodec | None = None,
    ) -> None:
        """
        Args:
            settings: The worker's configuration; by default from the environment.
            tools: Tools of your own, offered to the model besides the built-in ones.
            codec: For payloads, like `io_harness.codec.ZstdCodec()` or
                `io_harness.encryption.EncryptionCodec(read_keys("2026=env:KEY"))`; a codec that the
                client's converter has already stays.

        Raises:
            ValueError: two tools of one name.
        """
        self._settings = settings or Settings.from_env()
        self._codec = codec
        self._registry = ToolRegistry(tools)
        reader = RunReader()
        store = store_of(self._settings)
        network = RunNetwork()
        self._mcp = McpToolbox(self._settings, reader, store, network)
        self._jobs = JobTable(self._settings.data_dir)
        self._models = ModelActivities(
            self._settings, reader, self._registry.specs, store.get_blob, self._mcp.specs, network
        )
        tool_calls = ToolActivities(
            self._settings, reader, store, self._registry, self._mcp, self._jobs, network
        )
        workspace = WorkspaceActivities(
            self._settings, reader, store, self._registry, self._mcp, self._jobs, network
        )
        admission = AdmissionActivities(self._settings, reader, self._registry)
        mcp = McpActivities(self._settings, reader, store, self._mcp.pool, network)
        self._activities: tuple[Callable[..., Any], ...] = (
            admission.admit,
            self._models.complete,
            tool_calls.use_tool,
            workspace.prepare,
            mcp.list_mcp_tools,
            workspace.verify,
            workspace.land,
            workspace.merge,
            workspace.release,
            *harness_activities(self._settings),
        )
        self._workers = 0
        super().__init__(
            "io-harness",
            data_converter=lambda converter: _filled(converter, codec),
            workflows=_with_agent_run,
            activities=self._with_activities,
            workflow_runner=_passing_through,
            interceptors=_sharing(store),
            run_context=self._running,
        )

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """Leave the payload converter to a plugin further on in the list that brings its own."""
        given = config["data_converter"]
        config = super().configure_client(config)
        plugins = list(config["plugins"])
        later = plugins[plugins.index(self) + 1 :] if self in plugins else []
        if any(_brings_converter(plugin, given) for plugin in later):
            config["data_converter"] = _with_codec(given, self._codec)
        return config

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add workflow and activities, and shorten the notice of cancellations to a second.

        Raises:
            ValueError: the client's payload converter can't carry pydantic models; or the worker has
                two of these plugins with different settings.
        """
        client = config["client"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        _check_converter(client.data_converter)
        for other in (*client.config()["plugins"], *config.get("plugins", ())):
            if isinstance(other, HarnessPlugin) and other._settings != self._settings:
                raise ValueError(
                    "two HarnessPlugins with different settings in one worker; a worker made from a "
                    "client has the client's plugins, so give it to the client alone"
                )
        config = super().configure_worker(config)
        interceptors = config.get("interceptors", ())
        if not any(isinstance(each, ActivityLog) for each in interceptors):
            names = frozenset(name for each in self._activities if (name := _activity_name(each)))
            config["interceptors"] = [*interceptors, ActivityLog(names)]
        if config.get("max_heartbeat_throttle_interval") == timedelta(seconds=60):
            config["max_heartbeat_throttle_interval"] = _CANCEL_NOTICE
        return config

    def _with_activities(
        self, given: Sequence[Callable[..., Any]] | None
    ) -> Sequence[Callable[..., Any]]:
        """A name that is served already stays as it is."""
        taken = {_activity_name(each) for each in given or ()}
        ours = (each for each in self._activities if _activity_name(each) not in taken)
        return [*(given or ()), *ours]

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        """Several workers of one client share what the plugin holds; the last one closes it."""
        self._workers += 1
        try:
            yield
        finally:
            self._workers -= 1
            if self._workers == 0:
                await self._close()

    async def _close(self) -> None:
        closing = {
            asyncio.ensure_future(each): name
            for name, each in (
                ("jobs", self._jobs.aclose()),
                ("MCP servers", self._mcp.aclose()),
                ("connections to models", self._models.aclose()),
            )
        }
        done, late = await asyncio.wait(closing, timeout=_CLOSE_SECONDS)
        for task in late:
            task.cancel()
            _log.warning("not closed in time", what=closing[task], seconds=_CLOSE_SECONDS)
        for task in done:
            if (error := task.exception()) is not None:
                _log.warning("not closed", what=closing[task], error=str(error))


def harness_activities(settings: Settings | None = None) -> list[Callable[..., Any]]:
    """The activities of `io_harness.workflows.pieces`, for a worker of your own whose workflows want a
    sandboxed command or a verification and no agent. Needs neither the plugin nor a credential, but a
    client whose data converter carries pydantic models.

    Args:
        settings: Where checkouts and snapshots are; by default from the environment.
    """
    pieces = Pieces(settings or Settings.from_env())
    return [pieces.run_held, pieces.verify_work]


def harness_worker(
    client: Client,
    *,
    task_queue: str = TASK_QUEUE,
    acts: bool = True,
    version: WorkerDeploymentVersion | None = None,
) -> Worker:
    """A worker for runs alone. `client` must have been connected with the plugin.

    Args:
        acts: Whether it takes activities. Without, it only answers queries and takes decisions.
        version: Makes it a versioned worker: its runs stay on this version until they continue as
            new. It gets none before the version is made the deployment's current one.
    """
    return Worker(
        client,
        task_queue=task_queue,
        # Without it the SDK hashes every loaded module for a build id, which takes seconds.
        deployment_config=WorkerDeploymentConfig(
            version=version
            or WorkerDeploymentVersion(deployment_name="io-harness", build_id=__version__),
            use_worker_versioning=version is not None,
            default_versioning_behavior=(
                VersioningBehavior.PINNED if version else VersioningBehavior.UNSPECIFIED
            ),
        ),
        tuner=_tuner(),
        graceful_shutdown_timeout=timedelta(seconds=10),
        sticky_queue_schedule_to_start_timeout=_STICKY,
        no_remote_activities=not acts,
    )


def _tuner() -> WorkerTuner:
    """As many activities at once as the host has processor time for. Most wait for a model and cost
    nothing, but of tool calls a hundred at a time starve each other until their heartbeats come too
    late and they count as lost; what gets no slot waits on the server, which costs nothing either."""
    least = _ACTIVITIES_PER_CORE * (os.cpu_count() or 1)
    return WorkerTuner.create_composite(
        workflow_supplier=FixedSizeSlotSupplier(_FIXED_SLOTS),
        activity_supplier=ResourceBasedSlotSupplier(
            ResourceBasedSlotConfig(minimum_slots=least, maximum_slots=_MOST_ACTIVITIES),
            ResourceBasedTunerConfig(target_memory_usage=0.8, target_cpu_usage=0.9),
        ),
        local_activity_supplier=FixedSizeSlotSupplier(_FIXED_SLOTS),
        nexus_supplier=FixedSizeSlotSupplier(_FIXED_SLOTS),
    )


def _activity_name(function: Callable[..., Any]) -> str | None:
    definition = getattr(function, "__temporal_activity_definition", None)
    return definition.name if definition is not None else None


def _sharing(store: SnapshotStore) -> list[SharingInterceptor] | None:
    return [SharingInterceptor(store)] if isinstance(store, SharedSnapshotStore) else None


def _with_agent_run(given: Sequence[type] | None) -> Sequence[type]:
    return list(given or ()) if AgentRun in (given or ()) else [*(given or ()), AgentRun]


def _brings_converter(plugin: object, given: DataConverter) -> bool:
    """Whether a plugin would exchange the default payload converter for one of its own."""
    if isinstance(plugin, HarnessPlugin) or not isinstance(plugin, SimplePlugin):
        return False
    if given.payload_converter_class is not DefaultPayloadConverter:
        return False
    theirs = plugin.data_converter
    found = theirs(given) if callable(theirs) else theirs
    return found is not None and found.payload_converter_class is not DefaultPayloadConverter


def _check_converter(converter: DataConverter) -> None:
    """Raises:
    ValueError: runs could not be read back.
    """
    sample = Spend(steps=1, usd=Decimal("0.5"))
    payloads = converter.payload_converter
    try:
        same = payloads.from_payloads(payloads.to_payloads([sample]), [Spend]) == [sample]
    except Exception as error:  # noqa: BLE001 - a converter of anybody's may raise anything
        cause: Exception | None = error
    else:
        if same:
            return
        cause = None
    name = converter.payload_converter_class.__name__
    raise ValueError(
        f"the client's payload converter, {name}, can't carry pydantic models: give HarnessPlugin to "
        "Client.connect (not only to the worker), or derive your converter from "
        "temporalio.contrib.pydantic.PydanticPayloadConverter"
    ) from cause


def _filled(converter: DataConverter | None, codec: PayloadCodec | None) -> DataConverter:
    """Exchange the payload converter if it is the default, add the codec if there is none; external
    storage stays."""
    converter = converter or DataConverter.default
    if converter.payload_converter_class is DefaultPayloadConverter:
        converter = dataclasses.replace(converter, payload_converter_class=PydanticPayloadConverter)
    return _with_codec(converter, codec)


def _with_codec(converter: DataConverter, codec: PayloadCodec | None) -> DataConverter:
    """Messages of failures are encrypted, too, where the failure converter is the default."""
    if converter.payload_codec is not None or codec is None:
        return converter
    converter = dataclasses.replace(converter, payload_codec=codec)
    if isinstance(codec, EncryptionCodec) and (
        converter.failure_converter_class is DefaultFailureConverter
    ):
        return dataclasses.replace(
            converter, failure_converter_class=DefaultFailureConverterWithEncodedAttributes
        )
    return converter


def _passing_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    """Workflow modules hold no state and are imported once per process, not once per run."""
    if runner is None:
        runner = SandboxedWorkflowRunner()
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    restrictions = runner.restrictions.with_passthrough_modules(*_PASSED_THROUGH)
    return dataclasses.replace(runner, restrictions=restrictions)
