"""Commands that run on while the model goes on."""

import time

from pydantic import Field

from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES

from .base import Args, Tool, Word
from .context import ToolContext
from .jobs import Job
from .process import command_plan, ending, exec_wanted
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
        plan = await command_plan(ctx, args.command, min(args.timeout_seconds or longest, longest))
        ctx.require(exec_wanted(args.command, plan))
        job = await ctx.jobs.start(ctx.run_key, ctx.call.id, plan, ctx.run_is_over)
        await job.wait(0, _FIRST_LOOK_SECONDS)
        return _observe(job, 0)


class JobOutputArgs(Args):
    job: str
    cursor: int = Field(0, ge=0)
    """Where to go on reading."""
    wait_seconds: int = Field(0, ge=0, le=_LONGEST_WAIT)
    """Wait so long for further output."""


class JobOutput(Tool[JobOutputArgs]):
    name = "job_output"
    description = "Read on in the output of a job."
    Args = JobOutputArgs
    effect = "write"  # what the job wrote to the copy until now becomes part of the snapshot

    async def run(self, args: JobOutputArgs, ctx: ToolContext) -> Observation:
        job = ctx.jobs.get(ctx.run_key, args.job)
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
    return Observation(text=header + text)


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
