"""The activity `verify`."""

from collections.abc import Sequence
from typing import Literal, assert_never

from pydantic_core import to_json

from io_harness.activities.failure import failure
from io_harness.activities.network import OpenNetwork, nowhere
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.workflows.contract import (
    AllOf,
    AnyOf,
    Check,
    CommandCheck,
    FileContains,
    FileEquals,
    JsonSchemaCheck,
    NoCheck,
    ReviewCheck,
    TaskContract,
    TestsCheck,
    Verification,
)
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES, VerifyInput
from io_harness.workflows.result import CheckReport, VerificationReport

from .answer import check_answer
from .command import Bench, run_check
from .content import check_file

Verdict = Literal["passed", "failed", "errored"]

REVIEWED_BYTES = 96 * 1024
"""Of a diff, as JSON. It is in history with the report and again with each review."""


async def verify(
    contract: TaskContract,
    given: VerifyInput,
    settings: Settings,
    store: SnapshotStore,
    network: OpenNetwork = nowhere,
) -> VerificationReport:
    """Judge the snapshot `given.head` and the answer by the contract's criterion, but for its reviews:
    a passed report holds the change for them.

    Raises:
        ApplicationError: NothingToVerify; or the checkout could not be made.
    """
    await store.ready()
    bench = Bench(contract, given, settings, store, _detail_bytes(contract), network)
    verdicts: list[Verdict] = []
    reports: list[CheckReport] = []
    if not isinstance(contract.verification, NoCheck):
        verdicts.append(await _judge(contract.verification, bench, reports))
    if contract.output_schema is not None:
        reports.append(check_answer("output_schema", contract.output_schema, given.answer))
        verdicts.append(reports[-1].verdict)
    if not verdicts:
        raise failure("NothingToVerify", "the contract has no criterion and no output_schema")
    report = VerificationReport(
        verdict=all_verdict(verdicts), checks=tuple(reports), snapshot=given.head
    )
    if report.verdict == "passed" and contract.reviews:
        return await _for_review(report, given, store)
    return report


async def _for_review(
    report: VerificationReport, given: VerifyInput, store: SnapshotStore
) -> VerificationReport:
    """The report with the change. A part of one says nothing about the whole: what is too large to be
    shown is not passed."""
    change, omitted = await store.diff(given.base, given.head, REVIEWED_BYTES)
    size = len(to_json(change)) + omitted
    if size <= REVIEWED_BYTES:
        return report.model_copy(update={"change": change})
    too_large = CheckReport(
        kind="review",
        verdict="failed",
        summary=f"the diff has {size:,} bytes, and a review is shown {REVIEWED_BYTES:,} at most",
    )
    return report.model_copy(update={"verdict": "failed", "checks": (*report.checks, too_large)})


async def _judge(check: Check, bench: Bench, reports: list[CheckReport]) -> Verdict:
    """Run a criterion and append a report for each of its parts that ran. `all_of` runs every part,
    so that the agent hears of all that is wrong; `any_of` stops at the first that passes."""
    match check:
        case ReviewCheck():
            return "passed"  # as far as can be said here
        case AllOf():
            return all_verdict([await _judge(part, bench, reports) for part in check.checks])
        case AnyOf():
            verdicts: list[Verdict] = []
            for part in check.checks:
                verdicts.append(await _judge(part, bench, reports))
                if verdicts[-1] == "passed":
                    break
            return any_verdict(verdicts)
        case CommandCheck() | TestsCheck():
            reports.append(await run_check(check, bench))
        case FileContains() | FileEquals():
            reports.append(await check_file(check, bench.given.head, bench.store))
        case JsonSchemaCheck():
            reports.append(check_answer(check.kind, check.json_schema, bench.given.answer))
        case _:
            assert_never(check)
    return reports[-1].verdict


def all_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """One failure is enough to fail; else one criterion that could not run leaves it open."""
    if "failed" in verdicts:
        return "failed"
    return "errored" if "errored" in verdicts else "passed"


def any_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """One success is enough to pass; else one criterion that could not run leaves it open."""
    if "passed" in verdicts:
        return "passed"
    return "errored" if "errored" in verdicts else "failed"


def _detail_bytes(contract: TaskContract) -> int:
    """Room for each criterion's output, so that all of them together stay inline."""
    return INLINE_OUTPUT_BYTES // max(1, _count(contract.verification))


def _count(check: Verification) -> int:
    if isinstance(check, AllOf | AnyOf):
        return sum(_count(part) for part in check.checks)
    return 1
