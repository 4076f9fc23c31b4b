"""`HarnessPlugin`: the harness in somebody's own Temporal client, worker and replayer."""

import dataclasses
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import Worker, WorkerConfig, WorkerDeploymentConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from io_harness import TASK_QUEUE as TASK_QUEUE
from io_harness import __version__
from io_harness.activities.admit import AdmissionActivities
from io_harness.activities.mcp.listing import McpActivities
from io_harness.activities.mcp.toolbox import McpToolbox
from io_harness.activities.model import ModelActivities
from io_harness.activities.run_reader import RunReader
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.base import AnyTool
from io_harness.activities.tools.jobs import JobTable
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.activities.tools.use_tool import ToolActivities
from io_harness.activities.workspace_activities import WorkspaceActivities
from io_harness.workflows.agent_run import AgentRun

_CANCEL_NOTICE = timedelta(seconds=1)
"""A cancellation reaches an activity with its next heartbeat that isn't throttled."""
_PASSED_THROUGH = ("io_harness.workflows", "pydantic", "pydantic_core", "annotated_types")


class HarnessPlugin(SimplePlugin):
    """Brings workflow, activities and converter; fills only what is still at its default.

    Give it to `Client.connect(plugins=[...])`: workers made from that client have it too. A
    `Replayer` inherits nothing from a client and needs it of its own.
    """

    def __init__(self, settings: Settings | None = None, *, tools: Iterable[AnyTool] = ()) -> None:
        """
        Args:
            settings: The worker's configuration; by default from the environment.
            tools: Tools of your own, offered to the model besides the built-in ones.

        Raises:
            ValueError: two tools of one name.
        """
        self._settings = settings or Settings.from_env()
        self._registry = ToolRegistry(tools)
        reader = RunReader()
        store = SnapshotStore(self._settings.data_dir)
        self._mcp = McpToolbox(self._settings, reader, store)
        self._jobs = JobTable(self._settings.data_dir)
        self._models = ModelActivities(
            self._settings, reader, self._registry.specs, store.get_blob, self._mcp.specs
        )
        tool_calls = ToolActivities(
            self._settings, reader, store, self._registry, self._mcp, self._jobs
        )
        workspace = WorkspaceActivities(
            self._settings, reader, store, self._registry, self._mcp, self._jobs
        )
        admission = AdmissionActivities(self._settings, reader, self._registry)
        mcp = McpActivities(self._settings, reader, store, self._mcp.pool)
        super().__init__(
            "io-harness",
            data_converter=_with_pydantic,
            workflows=[AgentRun],
            activities=[
                admission.admit,
                self._models.complete,
                tool_calls.use_tool,
                workspace.prepare,
                mcp.list_mcp_tools,
                workspace.verify,
                workspace.land,
                workspace.release,
            ],
            workflow_runner=_passing_through,
            run_context=self._running,
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add workflow and activities, and shorten the notice of cancellations to a second."""
        config = super().configure_worker(config)
        if config.get("max_heartbeat_throttle_interval") == timedelta(seconds=60):
            config["max_heartbeat_throttle_interval"] = _CANCEL_NOTICE
        return config

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._jobs.aclose()
            await self._mcp.aclose()
            await self._models.aclose()


def harness_worker(client: Client, *, task_queue: str = TASK_QUEUE, acts: bool = True) -> Worker:
    """A worker for runs alone. `client` must have been connected with the plugin.

    Args:
        acts: Whether it takes activities. Without, it only answers queries and takes decisions.
    """
    return Worker(
        client,
        task_queue=task_queue,
        # Without it the SDK hashes every loaded module for a build id, which takes seconds.
        deployment_config=WorkerDeploymentConfig(
            version=WorkerDeploymentVersion(deployment_name="io-harness", build_id=__version__),
            use_worker_versioning=False,
        ),
        graceful_shutdown_timeout=timedelta(seconds=10),
        no_remote_activities=not acts,
    )


def _with_pydantic(converter: DataConverter | None) -> DataConverter:
    """Exchange the payload converter if it is the default; codec and failure converter stay."""
    converter = converter or DataConverter.default
    if converter.payload_converter_class is not DefaultPayloadConverter:
        return converter
    return dataclasses.replace(converter, payload_converter_class=PydanticPayloadConverter)


def _passing_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    """Workflow modules hold no state and are imported once per process, not once per run."""
    if runner is None:
        runner = SandboxedWorkflowRunner()
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    restrictions = runner.restrictions.with_passthrough_modules(*_PASSED_THROUGH)
    return dataclasses.replace(runner, restrictions=restrictions)
