"""The harness as an MCP server: any MCP client can hand over work, follow it and decide approvals."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field, JsonValue
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    TerminatedError,
    WorkflowAlreadyStartedError,
)
from temporalio.service import RPCError

from io_harness import TASK_QUEUE, __version__, runs
from io_harness.contract_file import ContractError, anchored, contract_from
from io_harness.workflows.approvals import Decision, PendingApproval
from io_harness.workflows.contract import contract_schema
from io_harness.workflows.model import Record
from io_harness.workflows.result import RunResult

FOLLOW_SECONDS = 50
"""How long `follow_run` waits where nothing else is said: less than the usual time-out of clients."""
_LOOK_SECONDS = 1.0
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_INSTRUCTIONS = """\
Hands a task to a durable agent run. Write a contract (tool contract_schema says of what it is made; \
`workspace.path` is an absolute path of the machine the worker runs on), start_run with it, then \
follow_run again and again until `ended` is true, and read run_result. When follow_run says that the \
run waits, list_approvals shows for what: show it to the person you work for, and decide as they say."""

_RunId = Annotated[str, Field(description="Id of the run, as start_run returned it")]


class StartedRun(Record):
    run: str
    ui: str | None
    """Address of the run in the Temporal UI, where it is known."""


class Progress(Record):
    """Where a run is."""

    run: str
    ended: bool
    """Read run_result now."""
    state: str
    """preparing, working, verifying, landing, waiting, or how it ended."""
    step: int
    waits_for: tuple[str, ...]
    """Ids of the requests that wait for a human."""


class WaitingRequest(Record):
    run: str
    request: PendingApproval


UiOf = Callable[[str], str | None]


def build_server(
    client: Client,
    *,
    task_queue: str = TASK_QUEUE,
    ui: UiOf = lambda run: None,
    decides: bool = True,
) -> MCPServer:
    """The server; run it on a transport of its own.

    Args:
        ui: Address of a run in the UI.
        decides: Whether clients may decide approvals. Without, they can only look at them.
    """
    server = MCPServer(
        "io-harness", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    tools = _Tools(client, task_queue, ui)
    for read in (
        tools.contract_schema, tools.list_runs, tools.run_status, tools.follow_run,
        tools.run_result, tools.list_approvals,
    ):  # fmt: skip
        server.tool(annotations=_READS)(read)
    server.tool(annotations=ToolAnnotations(destructive_hint=True))(tools.start_run)
    server.tool(annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))(
        tools.cancel_run
    )
    if decides:
        server.tool(annotations=ToolAnnotations(destructive_hint=True))(tools.decide)
    return server


class _Tools:
    """Each method is a tool; its docstring is what clients are told."""

    def __init__(self, client: Client, task_queue: str, ui: UiOf) -> None:
        self._client = client
        self._task_queue = task_queue
        self._ui = ui

    async def contract_schema(self) -> dict[str, Any]:
        """The JSON Schema of a task contract, with what each field means."""
        return contract_schema()

    async def start_run(
        self,
        contract: Annotated[dict[str, JsonValue], Field(description="The task contract")],
        id: Annotated[
            str | None,
            Field(description="Id of the run; starting a running one again is an error"),
        ] = None,
    ) -> StartedRun:
        """Start a run of an agent on a task. It goes on by itself; follow it with follow_run."""
        try:
            whole = contract_from(anchored(contract, Path.cwd()), "the contract")
            started = await runs.start(self._client, whole, id=id, task_queue=self._task_queue)
        except ContractError as error:
            raise ToolError(str(error)) from error
        except WorkflowAlreadyStartedError as error:
            raise ToolError(
                f"a run {id!r} is running already; follow it, or take another id"
            ) from error
        except RPCError as error:
            raise ToolError(f"Temporal answered: {error}") from error
        return StartedRun(run=started.id, ui=self._ui(started.id))

    async def list_runs(
        self,
        state: Annotated[
            str | None, Field(description="Only runs in this state: working, waiting, success, ...")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
    ) -> list[runs.ListedRun]:
        """The newest runs first."""
        try:
            return [run async for run in runs.list_runs(self._client, state=state, limit=limit)]
        except RPCError as error:
            raise ToolError(f"Temporal answered: {error}") from error

    async def run_status(self, run: _RunId) -> Progress:
        """Where a run is now."""
        with _told():
            return await self._progress(run)

    async def follow_run(
        self,
        run: _RunId,
        ctx: Context[Any, Any],
        seconds: Annotated[
            int, Field(ge=1, le=600, description="How long to wait at most")
        ] = FOLLOW_SECONDS,
    ) -> Progress:
        """Wait until the run has ended or waits for a human, or until the time is over. Call it again
        while neither is so."""
        with _told():
            deadline = asyncio.get_running_loop().time() + seconds
            known = -1
            while True:
                now = await self._progress(run)
                if now.step != known:
                    known = now.step
                    await ctx.report_progress(now.step, message=f"{now.state}, step {now.step}")
                left = deadline - asyncio.get_running_loop().time()
                if now.ended or now.waits_for or left <= 0:
                    return now
                await asyncio.sleep(min(_LOOK_SECONDS, left))

    async def run_result(self, run: _RunId) -> RunResult:
        """How a run ended: its outcome, what the agent says it did, the verification, the diff that
        landed, and what it cost. An error while the run goes on."""
        with _told():
            if not (await self._progress(run)).ended:
                raise ToolError(f"the run {run!r} has not ended; use follow_run")
            try:
                return await runs.handle(self._client, run).result()
            except WorkflowFailureError as error:
                raise ToolError(_why(error.cause)) from error

    async def list_approvals(
        self, run: Annotated[str | None, Field(description="Only of this run")] = None
    ) -> list[WaitingRequest]:
        """What waits for a human, over all runs or in one: exactly what is to be shown to them."""
        with _told():
            if run is not None:
                found = await runs.pending(self._client, run)
                return [WaitingRequest(run=run, request=request) for request in found]
            return [
                WaitingRequest(run=which, request=request)
                async for which, request in runs.waiting(self._client)
            ]

    async def decide(
        self,
        run: _RunId,
        request: Annotated[str, Field(description="Id of the request, from list_approvals")],
        verdict: Literal["approve", "deny", "retry", "skip", "abort"],
        by: Annotated[
            str, Field(min_length=1, max_length=100, description="The person who decided")
        ],
        reason: Annotated[
            str, Field(description="Told to the agent; for a question, the answer")
        ] = "",
        remember: Annotated[
            bool, Field(description="Also allow the suggested rule for the rest of the run")
        ] = False,
    ) -> str:
        """Decide what a run waits for, in the name of a person who was shown it."""
        decision = Decision(
            request=request,
            verdict=verdict,
            by=f"{by} (over MCP)",
            reason=reason,
            remember=remember,
        )
        with _told():
            await runs.decide(self._client, run, decision)
        return f"{verdict}: taken"

    async def cancel_run(self, run: _RunId) -> str:
        """End a run. Its work so far stays on a ref."""
        with _told():
            await runs.cancel(self._client, run)
        return "the run was told to end"

    async def _progress(self, run: str) -> Progress:
        with runs.named(run):
            described = await runs.handle(self._client, run).describe()
        ended = described.status is not WorkflowExecutionStatus.RUNNING
        if ended:
            listed = described.status.name.lower() if described.status else "unknown"
            return Progress(run=run, ended=True, state=listed, step=0, waits_for=())
        status = await runs.status(self._client, run)
        return Progress(
            run=run,
            ended=False,
            state=status.state,
            step=status.step,
            waits_for=tuple(pending.id for pending in status.pending),
        )


def _why(cause: BaseException) -> str:
    """Why there is no result, though the run has ended."""
    match cause:
        case CancelledError():
            return "the run was cancelled before its first step"
        case TerminatedError():
            return "the run was terminated; nothing of it is kept but its history"
        case ApplicationError():
            return f"the run could not start: {cause.message}"
        case _:
            return f"the run failed: {cause}"


@contextmanager
def _told() -> Iterator[None]:
    """Turn what can be known to go wrong into an error that the client's model reads."""
    try:
        yield
    except (runs.NoSuchRun, runs.DecisionRejected) as error:
        raise ToolError(str(error)) from error
    except RPCError as error:
        raise ToolError(f"Temporal answered: {error}") from error
