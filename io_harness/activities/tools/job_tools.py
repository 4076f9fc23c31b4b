"""Commands that run on while the model goes on."""

import time

from pydantic import Field

from io_harness.activities.network import Asks
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES, Effect

from .base import Args, Tool, Word
from .context import AsksNeeded, ToolContext
from .jobs import Job
from .process import command_effect, command_plan, ending, exec_wanted
from .terminal import Terminal

_PAGE = INLINE_OUTPUT_BYTES // 2  # an escaped byte takes up to four
_LONGEST_WAIT = 60
_FIRST_LOOK_SECONDS = 0.5


class StartJobArgs(Args):
    command: Word
    timeout_seconds: int | None = Field(None, ge=1)


class StartJob(Tool[StartJobArgs]):
    name = "start_job"
    description = (
        "Start a shell command in the background, for what takes longer than run_command allows. It "
        "ends with the run."
    )
    Args = StartJobArgs
    effect = "write"

    async def run(self, args: StartJobArgs, ctx: ToolContext) -> Observation:
        longest = ctx.contract.budget.working_seconds
        seconds = min(args.timeout_seconds or longest, longest)
        network = ctx.network.command(
            ctx.run_key,
            ctx.gate,
            Asks(ctx.call, args.command, "It runs in the background, and the connection waits."),
        )
        plan = await command_plan(ctx, args.command, seconds, network.net)
        ctx.require(exec_wanted(args.command, plan))
        job = await ctx.jobs.start(ctx.run_key, ctx.call.id, plan, network, ctx.run_is_over)
        await job.wait(0, _FIRST_LOOK_SECONDS)
        return _observe(job, 0)

    def effect_under(self, contract: TaskContract) -> Effect:
        return command_effect(contract)


class JobOutputArgs(Args):
    job: str
    cursor: int = Field(0, ge=0)
    """Where to go on reading."""
    wait_seconds: int = Field(0, ge=0, le=_LONGEST_WAIT)
    """Wait so long for further output."""


class JobOutput(Tool[JobOutputArgs]):
    name = "job_output"
    description = "Read on in the output of a job, and see what it waits for."
    Args = JobOutputArgs
    effect = "write"  # what the job wrote to the copy until now becomes part of the snapshot

    async def run(self, args: JobOutputArgs, ctx: ToolContext) -> Observation:
        job = ctx.jobs.get(ctx.run_key, args.job)
        if job.running and (questions := job.network.answer(ctx.gate)):
            raise AsksNeeded(questions)
        ctx.require()
        await job.wait(args.cursor, args.wait_seconds)
        return _observe(job, args.cursor)


class StopJobArgs(Args):
    job: str


class StopJob(Tool[StopJobArgs]):
    name = "stop_job"
    description = "Stop a job."
    Args = StopJobArgs
    effect = "write"

    async def run(self, args: StopJobArgs, ctx: ToolContext) -> Observation:
        job = ctx.jobs.get(ctx.run_key, args.job)
        ctx.require()
        await job.stop()
        return Observation(text=f"[{_state(job)}; {job.size:,} bytes of output]")


def _observe(job: Job, cursor: int) -> Observation:
    running = job.running
    raw = job.read(cursor, _PAGE)
    if cursor + len(raw) < job.size or running:
        cut = raw.rfind(b"\n") + 1
        raw = raw[:cut] if cut else raw
    terminal = Terminal()
    text = (terminal.feed(raw) + terminal.finish()).decode()
    end = cursor + len(raw)
    header = f"[{_state(job)}; bytes {cursor}-{end} of {job.size}; next cursor {end}]\n"
    return Observation(text=header + job.network.refusals() + _waits(job) + text)


def _waits(job: Job) -> str:
    """The hosts about which a human is to be asked before the job goes on."""
    hosts = ", ".join(request.target for request in job.network.questions) if job.running else ""
    return f"[it waits to reach {hosts}; job_output asks for approval]\n" if hosts else ""


def _state(job: Job) -> str:
    if job.running:
        return f"{job.id} runs for {time.monotonic() - job.begun:.0f} s"
    if job.stopped:
        return f"{job.id} was stopped"
    if job.task.cancelled():
        return f"{job.id} was ended with its worker"
    error = job.task.exception()
    if error is not None:
        return f"{job.id} could not be run: {error}"
    return f"{job.id} {ending(job.task.result(), job.plan.limits)}"
