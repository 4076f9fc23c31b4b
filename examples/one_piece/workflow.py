"""Run a generator that nobody has read, held by the sandbox, and say whether the tests pass with it."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from io_harness.workflows.contract import CommandCheck, DirectorySource
    from io_harness.workflows.pieces import HeldCommand, WorkToVerify, run_held, verify_work


@workflow.defn
class Regenerate:
    """Takes a directory of the worker's host; returns what the tests said in a fresh checkout."""

    @workflow.run
    async def run(self, directory: str) -> str:
        made = await run_held(HeldCommand(run="python generate.py", directory=directory))
        if not made.ok:
            raise ApplicationError(f"the generator failed:\n{made.output}", non_retryable=True)
        report = await verify_work(
            WorkToVerify(
                work=DirectorySource(path=directory),
                verification=CommandCheck(run="python -m unittest -q"),
            ),
            seconds=600,
        )
        return report.verdict
