"""The activity that runs one tool call: from a snapshot, to a snapshot."""

from collections.abc import Callable

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus

from io_harness.activities.failure import told
from io_harness.activities.gate import Gate, Refused
from io_harness.activities.heartbeat import heartbeating
from io_harness.activities.mcp.toolbox import McpToolbox
from io_harness.activities.network import RunNetwork
from io_harness.activities.outputs import RunOutputs
from io_harness.activities.run_reader import RunReader
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.telemetry.spans import tool_call
from io_harness.activities.workspace import WorkingCopy, open_copy
from io_harness.activities.workspace_policy import RunPolicies
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import AssistantMessage, Observation, ToolCall, ToolMessage
from io_harness.workflows.payloads import (
    CallReference,
    InlineCall,
    NeedsApproval,
    ToolDone,
    ToolOutcome,
    UseToolInput,
    WouldAct,
)

from .base import AnyTool
from .beneath import Beneath
from .context import AsksNeeded, ToolContext, WouldHaveActed
from .errors import ToolError
from .git_tools import commit_identity
from .history import History
from .jobs import JobTable, RunIsOver
from .registry import ToolRegistry


class ToolActivities:
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
        self._policies = RunPolicies(store)
        self._mcp = mcp
        self._jobs = jobs
        self._network = network

    @activity.defn(name="use_tool")
    async def use_tool(self, given: UseToolInput) -> ToolOutcome:
        """Run the call on the working copy at `given.base`. What the model did wrong, and what the
        policy refuses, is an observation; only failures of the harness itself raise."""
        async with heartbeating() as progress:
            with told():
                contract = await self._reader.contract(given.run)
                call = await self._call(given)
                with tool_call(given, call) as traced:
                    outcome = await self._outcome(given, contract, call, progress)
                    traced.came_of(outcome)
                    self._foretell(call, outcome)
                    return outcome

    def _foretell(self, call: ToolCall, outcome: ToolOutcome) -> None:
        if isinstance(outcome, ToolDone):
            seen = outcome.observation
            self._reader.expect(ToolMessage(call_id=call.id, name=call.name, observation=seen))

    async def _outcome(
        self,
        given: UseToolInput,
        contract: TaskContract,
        call: ToolCall,
        progress: Callable[[str], None],
    ) -> ToolOutcome:
        gate = await self._gate(contract, given)
        try:
            tool = await self._mcp.tool(
                given.run, contract, given.remembered, call.name
            ) or self._registry.get(call.name, contract)
        except ToolError as error:
            return _failed(given, error)
        async with open_copy(
            self._store,
            self._settings,
            given.run.key,
            contract,
            given.base,
            access="read" if tool.effect == "read" else "write",
            network=lambda: self._network.command(given.run.key, gate),
        ) as copy:
            outcome = await self._run(given, contract, gate, call, tool, copy, progress)
        if isinstance(outcome, WouldAct):
            return outcome
        more: dict[str, object] = {"egress": self._network.take_counts(given.run.key)}
        if isinstance(outcome, ToolDone) and self._mcp.changed(given.run.key):
            more["tools_changed"] = True
        return outcome.model_copy(update=more)

    async def _run(
        self,
        given: UseToolInput,
        contract: TaskContract,
        gate: Gate,
        call: ToolCall,
        tool: AnyTool,
        copy: WorkingCopy,
        progress: Callable[[str], None],
    ) -> ToolOutcome:
        context = ToolContext(
            run_key=given.run.key,
            root=copy.root,
            files=Beneath(copy.root),
            gate=gate,
            outputs=RunOutputs(self._settings.data_dir, given.run.key),
            contract=contract,
            blobs=self._store,
            history=History(self._store, given.base),
            network=self._network,
            jobs=self._jobs,
            run_is_over=_run_is_over(),
            call=call,
            preview_only=given.preview_only,
            progress=progress,
            begin_change=copy.begin_change if tool.effect != "read" else _nothing,
        )
        try:
            observation = await tool.call(call.arguments, context)
        except AsksNeeded as needed:
            return NeedsApproval(requests=needed.requests)
        except WouldHaveActed:
            return WouldAct()
        except Refused as refused:
            if given.preview_only:
                return WouldAct()
            return ToolDone(
                head=given.base,
                observation=Observation(text=f"refused: {refused}", is_error=True),
                refused=refused.reason,
            )
        except ToolError as error:
            return _failed(given, error)
        if given.preview_only:
            return WouldAct()
        observation = context.outputs.keep(observation)
        if tool.effect == "read":
            return ToolDone(head=given.base, observation=observation)
        message = context.history.message
        head, changed = await copy.snapshot(
            message or f"{given.step}: {call.name}",
            even_unchanged=message is not None,
            author=commit_identity() if message else None,
        )
        return ToolDone(head=head, observation=observation, changed=changed)

    async def _gate(self, contract: TaskContract, given: UseToolInput) -> Gate:
        """The gate of one call: the run's policy, and what humans decided so far."""
        policy = await self._policies.policy(contract, given.run.key)
        return Gate(
            policy.remember(*given.remembered),
            given.grants,
            approval=contract.approval,
            denied=given.denied,
        )

    async def _call(self, given: UseToolInput) -> ToolCall:
        match given.call:
            case InlineCall():
                return given.call.call
            case CallReference():
                messages = await self._reader.transcript(given.call.transcript)
                message = messages[-1]
                assert isinstance(message, AssistantMessage)
                call = message.calls[given.call.position]
                assert isinstance(call, ToolCall)
                return call


def _nothing() -> None:
    """A read begins no change."""


def _failed(given: UseToolInput, error: ToolError) -> ToolDone:
    return ToolDone(head=given.base, observation=Observation(text=str(error), is_error=True))


def _run_is_over() -> RunIsOver:
    info, client = activity.info(), activity.client()
    assert info.workflow_id is not None
    handle = client.get_workflow_handle(info.workflow_id)

    async def is_over() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    return is_over
