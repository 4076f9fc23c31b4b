"""A sub-agent's first snapshot and working copy: its parent's files, not the source."""

from pathlib import Path
from typing import assert_never

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
)
from io_harness.workflows.payloads import Origin
from io_harness.workflows.rules import Act

from .failure import failure
from .gate import CommandLine, Gate
from .network import RunNetwork
from .settings import Settings
from .store import SnapshotStore
from .workspace import open_copy
from .workspace_policy import RunPolicies


async def make_child_copy(
    store: SnapshotStore,
    settings: Settings,
    contract: TaskContract,
    run_key: str,
    origin: Origin,
    network: RunNetwork,
) -> tuple[str, str]:
    """Make the first snapshot, whose parent is the starting agent's, and the copy.

    Returns:
        The snapshot, and the first one of the tree's root.

    Raises:
        UnknownSnapshot: the store lacks the parent's snapshots.
        ApplicationError: `CriterionRefused`, or as `open_copy`.
    """
    parent_base, notes = await store.first(origin.parent)
    root = notes.root or parent_base
    notes = notes.model_copy(update={"root": root})
    base = store.commit(await store.tree_of(origin.base), [origin.base], notes.message())
    await store.set_ref(run_key, "base", base)
    await store.set_ref(run_key, "head", base)
    policy = await RunPolicies(store).policy(contract, run_key)
    gate = Gate(policy, approval=contract.approval)
    async with open_copy(
        store,
        settings,
        run_key,
        contract,
        base,
        access="read",
        network=lambda: network.command(run_key, gate),
    ) as copy:
        if origin.criterion == "agent":
            _require_allowed(gate, contract, copy.root)
    return base, root


def _require_allowed(gate: Gate, contract: TaskContract, root: Path) -> None:
    """A criterion that an agent wrote runs and reads nothing that the agent itself might not: a file's
    content could be guessed from verdicts, piece by piece."""
    for act, target in _acts(contract.verification, root):
        verdict = gate.explain(act, target)
        if verdict.reason.effect != "allow":
            reason = verdict.reason
            raise failure(
                "CriterionRefused",
                f"verification: {verdict.act} {verdict.target}: {reason.effect} by {reason.rule!r} "
                f"of layer {reason.layer!r}. A criterion may run and read only what the policy "
                "allows without asking",
            )


def _acts(check: Check | NoCheck, root: Path) -> tuple[tuple[Act, str | CommandLine], ...]:
    match check:
        case CommandCheck() | TestsCheck():
            return (("exec", CommandLine(check.run, root)),)
        case FileContains() | FileEquals():
            return (("read", check.path),)
        case AllOf() | AnyOf():
            return tuple(act for inner in check.checks for act in _acts(inner, root))
        case JsonSchemaCheck() | ReviewCheck() | NoCheck():
            return ()
        case _:
            assert_never(check)
