"""Takes a sub-agent's work into its parent's: a merge of trees, whole or not at all."""

from io_harness.workflows.contract import TaskContract
from io_harness.workflows.payloads import MergeConflict, Merged, MergeInput, MergeOutcome

from .changes import SHOWN_CHANGES
from .store import Conflict, SnapshotStore
from .workspace_policy import RunPolicies

_SHOWN_PATHS = 20
_SIDES = 4
_SIDE_BYTES = 3_000


async def merge(contract: TaskContract, given: MergeInput, store: SnapshotStore) -> MergeOutcome:
    """The same arguments give the same snapshot. Nothing is written to a working copy: the run's next
    call finds its copy elsewhere than at its base, and puts it there.

    Raises:
        UnknownSnapshot: the store lacks one of the three.
    """
    await store.ready()
    for commit in (given.head, given.child_base, given.child_head):
        await store.tree_of(commit)
    merged = await store.merge(given.child_base, given.head, given.child_head)
    if isinstance(merged, Conflict):
        return MergeConflict(
            paths=merged.paths[:_SHOWN_PATHS],
            sides=await _sides(contract, given, store, merged.paths[:_SIDES]),
        )
    head = store.commit(merged.tree, [given.head, given.child_head], given.title)
    await store.set_ref(given.run.key, "head", head)
    changed = await store.changes(given.child_base, given.child_head)
    return Merged(
        head=head,
        changed=changed[:SHOWN_CHANGES],
        changed_omitted=max(len(changed) - SHOWN_CHANGES, 0),
    )


async def _sides(
    contract: TaskContract, given: MergeInput, store: SnapshotStore, paths: tuple[str, ...]
) -> str:
    """What each side did to each path since they parted; nothing of files that may not be read."""
    policy = await RunPolicies(store).policy(contract, given.run.key)
    parts: list[str] = []
    for path in paths:
        if policy.explain("read", path).effect != "allow":
            parts.append(f"{path}: not shown, the policy doesn't allow reading it")
            continue
        for side, commit in (("yours", given.head), ("the agent's", given.child_head)):
            diff = await _diff(store, given.child_base, commit, path)
            parts.append(f"--- {path}, {side}:\n{diff}")
    return "\n".join(parts)


async def _diff(store: SnapshotStore, old: str, new: str, path: str) -> str:
    raw, omitted = await store.git().capped(
        "--literal-pathspecs", "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff",
        "--no-textconv", "--no-color", old, new, "--", path, limit=_SIDE_BYTES,
    )  # fmt: skip
    more = f"\n… {omitted} bytes more" if omitted else ""
    return raw.decode(errors="replace").rstrip() + more
