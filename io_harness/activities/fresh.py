"""A checkout made from nothing: a snapshot's files, the source's ignored files, and the set-up."""

import dataclasses
from pathlib import Path

from io_harness.workflows.contract import DirectorySource, TaskContract

from .checkout import check_out, clear
from .commands import describe_end, run_command
from .failure import failure
from .git import Git
from .ignored import bring_ignored
from .network import CommandNetwork, OpenNetwork, nowhere
from .notes import SourceNotes
from .source import directory_of

_SHOWN = 4000


async def fresh_copy(
    git: Git,
    commit: str,
    base: str,
    notes: SourceNotes,
    contract: TaskContract,
    network: OpenNetwork = nowhere,
) -> None:
    """Fill git's work tree, whatever it held, with `commit`, and prepare it.

    Args:
        base: The run's first snapshot; what it holds is not brought along as an ignored file.

    Raises:
        ApplicationError: SetupFailed, IgnoredTooLarge, SourceNotFound, SourceUnreadable.
    """
    assert git.work_tree is not None
    assert git.index is not None
    clear(git.work_tree)
    git.index.unlink(missing_ok=True)
    await check_out(git, commit, notes)
    source = contract.workspace
    if isinstance(source, DirectorySource):
        scratch = dataclasses.replace(git, index=git.index.with_name(git.index.name + ".source"))
        await bring_ignored(source, directory_of(source), base, git.work_tree, scratch)
    await set_up(git.work_tree, contract, network())


async def set_up(root: Path, contract: TaskContract, network: CommandNetwork | None) -> None:
    """Run the contract's set-up command.

    Raises:
        ApplicationError: SetupFailed.
    """
    source = contract.workspace
    if source.setup is None:
        return
    completed = await run_command(source.setup, root, contract, source.setup_seconds, network)
    if not completed.ok:
        output = completed.stdout.text(_SHOWN).strip() or "(no output)"
        if network is not None and (refused := network.refusals()):
            output += (
                f"\n{refused}What the set-up needs must be allowed by the policy (act net); what the "
                "policy asks about is denied to it."
            )
        raise failure(
            "SetupFailed",
            f"workspace.setup: the command {describe_end(completed)}; its output was:\n{output}",
            retry=completed.cause == "signalled",  # by somebody else: it says nothing of the set-up
        )
