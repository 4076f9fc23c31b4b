"""The policy that holds in a run: the contract's, narrowed by what the workspace itself asks for."""

from collections import OrderedDict

from io_harness.policy_file import PolicyFileError, parse_policy
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.policy import Policy, policy_of

from .failure import failure
from .store import SnapshotStore

WORKSPACE_POLICY = ".io-harness/policy.yaml"
"""Rules that come with the source. They are read from the run's first snapshot, so that the agent
can't change them, and can only narrow."""

_KEPT = 4_096
"""Runs whose policy file is remembered: more than a worker has at once, for one costs git processes."""


async def workspace_policy(store: SnapshotStore, base: str) -> Policy | None:
    """The policy file of the snapshot `base`.

    Raises:
        ApplicationError: `BadPolicy`, if it isn't a valid policy.
    """
    entry = await store.entry(base, WORKSPACE_POLICY)
    if entry is None:
        return None
    mode, blob = entry
    if not mode.startswith("100"):
        raise failure("BadPolicy", f"{WORKSPACE_POLICY} in the workspace is not an ordinary file")
    try:
        return parse_policy(await store.get_blob(blob), WORKSPACE_POLICY)
    except PolicyFileError as error:
        raise failure("BadPolicy", f"the workspace's policy file is not valid: {error}") from None


def narrowed(contract: TaskContract, found: Policy | None) -> Policy:
    """The contract's policy, narrowed by the workspace's own, if it has one."""
    own = policy_of(contract.policy)
    return own if found is None else own.narrowed(found)


class RunPolicies:
    """The policies of runs. One per worker."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._found: OrderedDict[str, Policy | None] = OrderedDict()

    async def policy(self, contract: TaskContract, run_key: str) -> Policy:
        """The contract's policy, narrowed by the policy file of the run's first snapshot.

        Raises:
            UnknownSnapshot: the store has no first snapshot of the run.
            ApplicationError: as `workspace_policy`.
        """
        if run_key not in self._found:
            base, notes = await self._store.first(run_key)
            self._found[run_key] = await workspace_policy(self._store, notes.root or base)
        self._found.move_to_end(run_key)
        while len(self._found) > _KEPT:
            self._found.popitem(last=False)
        return narrowed(contract, self._found[run_key])
