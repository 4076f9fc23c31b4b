"""Workflows that call one activity of the harness each."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from io_harness.workflows.pieces import (
        HeldCommand,
        HeldResult,
        WorkToVerify,
        run_held,
        verify_work,
    )
    from io_harness.workflows.result import VerificationReport


@workflow.defn
class OneCommand:
    @workflow.run
    async def run(self, command: HeldCommand) -> HeldResult:
        return await run_held(command)


@workflow.defn
class OneCheck:
    @workflow.run
    async def run(self, work: WorkToVerify) -> VerificationReport:
        return await verify_work(work, seconds=60)
