"""Runs a command as a criterion, in a checkout made for it alone."""

import secrets
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.exceptions import ApplicationError

from io_harness import sandbox
from io_harness.activities.checkout import CopyPaths
from io_harness.activities.commands import describe_end, run_command
from io_harness.activities.fresh import fresh_copy
from io_harness.activities.network import OpenNetwork, nowhere
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.tools.process import command_env
from io_harness.activities.trees import remove_tree
from io_harness.workflows.contract import Command, CommandCheck, TaskContract, TestsCheck
from io_harness.workflows.payloads import VerifyInput
from io_harness.workflows.result import CheckReport

from .tree import verified_tree
from .zero_tests import ran_no_tests

_NOT_FOUND = 127


@dataclass(frozen=True)
class Bench:
    """What the criteria of one verification share."""

    contract: TaskContract
    given: VerifyInput
    settings: Settings
    store: SnapshotStore
    detail_bytes: int
    """Ceiling of one criterion's output in the report."""
    network: OpenNetwork = nowhere
    """What set-up and criterion may reach."""


async def run_check(check: CommandCheck | TestsCheck, bench: Bench) -> CheckReport:
    """Check the result out afresh, run the command there, and judge how it ended."""
    try:
        async with _checkout(check, bench) as root:
            if missing := _missing_program(check.run, root, bench.contract):
                return _errored(check, f"{missing} is not installed where verification runs")
            network = bench.network()
            completed = await run_command(check.run, root, bench.contract, check.seconds, network)
    except sandbox.SandboxError as error:
        return _errored(check, f"the sandbox could not run it: {error}")
    except ApplicationError as error:
        if error.type != "SetupFailed":
            raise
        return _errored(check, "the set-up of the checkout failed", error.message)
    return _judged(check, completed, network.refusals() if network else "", bench)


@asynccontextmanager
async def _checkout(check: CommandCheck | TestsCheck, bench: Bench) -> AsyncIterator[Path]:
    store, given = bench.store, bench.given
    base, notes = await store.first(given.run.key)
    paths = CopyPaths.of(bench.settings, f"{given.run.key}/verify-{secrets.token_hex(4)}")
    paths.directory.mkdir(parents=True, mode=0o700)
    try:
        git = store.git(work_tree=paths.root, index=paths.index, excludes=paths.excludes)
        laid_over = check.files if isinstance(check, TestsCheck) else {}
        tree = await verified_tree(
            store.git(index=paths.directory / "index.tree"),
            base, given.head, notes, check.protect, laid_over,
        )  # fmt: skip
        await fresh_copy(git, tree, base, notes, bench.contract, bench.network)
        yield paths.root
    finally:
        remove_tree(paths.directory)


def _judged(
    check: CommandCheck | TestsCheck, completed: sandbox.Completed, refused: str, bench: Bench
) -> CheckReport:
    output = refused + completed.stdout.text(bench.detail_bytes)
    report = CheckReport(
        kind=check.kind,
        verdict="failed",
        summary=f"{_shown(check.run)} {describe_end(completed)}",
        detail=_cut(output, bench.detail_bytes),
        exit_code=completed.exit_code,
        seconds=round(completed.seconds, 3),
    )
    if completed.cause != "exited" or completed.exit_code != check.expect_exit:
        if completed.exit_code == _NOT_FOUND and not isinstance(check.run, str):
            return report.model_copy(update={"verdict": "errored"})
        return report
    if not check.allow_zero_tests and ran_no_tests(_whole(completed)):
        summary = f"{_shown(check.run)} ran no tests, which is no pass (allow_zero_tests is off)"
        return report.model_copy(update={"summary": summary})
    return report.model_copy(update={"verdict": "passed"})


def _whole(completed: sandbox.Completed) -> str:
    kept = completed.stdout.head + b"\n" + completed.stdout.tail
    if not completed.stdout.omitted:
        kept = completed.stdout.head + completed.stdout.tail
    return kept.decode(errors="replace")


def _cut(text: str, limit: int) -> str:
    """`text` within `limit` bytes of UTF-8: replaced characters can make it longer."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    half = limit // 2 - 40
    head, tail = encoded[:half], encoded[-half:]
    gap = f"\n[... {len(encoded) - 2 * half} bytes omitted ...]\n"
    return head.decode(errors="ignore") + gap + tail.decode(errors="ignore")


def _missing_program(command: Command, root: Path, contract: TaskContract) -> str | None:
    """The program of an argument vector, if nothing of that name is on the PATH. One that is named
    by its path belongs to the work, and its absence is a failure of the work."""
    if isinstance(command, str) or "/" in command[0]:
        return None
    path = command_env(contract).get("PATH")
    return None if shutil.which(command[0], path=path) else command[0]


def _shown(command: Command) -> str:
    line = command if isinstance(command, str) else shlex.join(command)
    return line if len(line) <= 120 else line[:117] + "..."


def _errored(check: CommandCheck | TestsCheck, summary: str, detail: str = "") -> CheckReport:
    return CheckReport(kind=check.kind, verdict="errored", summary=summary, detail=detail)
