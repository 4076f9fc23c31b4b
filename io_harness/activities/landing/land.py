"""The activity `land`."""

from typing import assert_never

from pydantic import JsonValue

from io_harness.activities.gate import request_digest
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.workflows.contract import (
    Apply,
    Branch,
    DirectorySource,
    GitSource,
    Patch,
    TaskContract,
)
from io_harness.workflows.payloads import (
    ApprovalRequest,
    LandInput,
    LandOutcome,
    NeedsApproval,
)
from io_harness.workflows.result import NothingToLand
from io_harness.workflows.rules import Reason

from .apply import land_in_directory
from .branch import land_on_branch, push_branch
from .patch import land_as_patch
from .report import SHOWN_DIFF_BYTES
from .targets import branch_name


async def land(
    contract: TaskContract, given: LandInput, settings: Settings, store: SnapshotStore
) -> LandOutcome:
    """Deliver the change from `given.base` to `given.head` as the contract says, if nobody has to be
    asked first."""
    await store.ready()
    if await store.tree_of(given.base) == await store.tree_of(given.head):
        return NothingToLand()
    if contract.landing.approve == "ask":
        request = await _request(contract, given, store)
        if not any(grant.digest == request.digest for grant in given.grants):
            return NeedsApproval(requests=(request,))
    source, landing = contract.workspace, contract.landing
    match landing, source:
        case Patch(), _:
            return await land_as_patch(store, given, landing)
        case Branch(), GitSource():
            return await push_branch(store, given, source, branch_name(landing, given.run.key))
        case Branch(), DirectorySource():
            return await land_on_branch(store, given, source, branch_name(landing, given.run.key))
        case Apply(), DirectorySource():
            return await land_in_directory(store, settings, given, source)
        case _:
            raise AssertionError("the contract allows no such landing")


async def _request(
    contract: TaskContract, given: LandInput, store: SnapshotStore
) -> ApprovalRequest:
    """What a human sees: how the change was verified, and the change. The digest binds the yes to
    the very snapshots, also where the diff is too long to be shown whole."""
    diff, omitted = await store.diff(given.base, given.head, SHOWN_DIFF_BYTES)
    rest = f"\n[... {omitted} bytes of diff omitted; all of it: {given.base}..{given.head} ...]"
    preview = f"{given.verification}\n\n{diff}" + (rest if omitted else "")
    target = _target(contract, given.run.key)
    snapshots: dict[str, JsonValue] = {"base": given.base, "head": given.head}
    return ApprovalRequest(
        act="land",
        target=target,
        tool="land",
        why=Reason(effect="ask", rule="landing.approve: ask", layer="contract"),
        preview=preview,
        preview_kind="diff",
        digest=request_digest("land", target, snapshots, preview),
    )


def _target(contract: TaskContract, run_key: str) -> str:
    source = contract.workspace
    where = source.path if isinstance(source, DirectorySource) else source.url
    match contract.landing:
        case Apply():
            return f"apply to {where}"
        case Branch() as branch:
            return f"branch {branch_name(branch, run_key)} of {where}"
        case Patch(path=path):
            return f"patch file {path}"
        case _:
            assert_never(contract.landing)
