"""From a contract to a first snapshot and a working copy."""

import dataclasses
from pathlib import PurePath
from urllib.parse import urlsplit

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from io_harness import sandbox
from io_harness.workflows.contract import DirectorySource, GitSource, Source, TaskContract
from io_harness.workflows.payloads import Origin, Prepared
from io_harness.workflows.policy import may_reach_network, policy_of
from io_harness.workflows.result import IsolationReport

from .checkout import CopyPaths, check_out, clear
from .child_copy import make_child_copy
from .fresh import set_up
from .gate import Gate
from .git_url import remote
from .ignored import bring_ignored
from .instructions import repository_instructions
from .landing.targets import check_landing
from .locks import FileLock, file_lock
from .network import RunNetwork
from .notes import to_note
from .settings import Settings
from .source import directory_of, import_source
from .staging import list_ignored, stage_all
from .store import SnapshotStore
from .workspace_policy import narrowed, workspace_policy


async def prepare(
    contract: TaskContract,
    run_key: str,
    settings: Settings,
    store: SnapshotStore,
    client: Client,
    network: RunNetwork,
    origin: Origin | None = None,
) -> Prepared:
    """Find out what can be known to be wrong on this host before a model is paid, and make the copy.

    Raises:
        ApplicationError: with a code that names what is wrong, and a message that says what to do.
    """
    isolation = await strong_enough(contract)
    await store.ready()
    if origin is not None:
        base, root = await make_child_copy(store, settings, contract, run_key, origin, network)
    else:
        await check_landing(contract, run_key, remote(store))
        paths = CopyPaths.of(settings, run_key)
        namespace = await namespace_id(client)
        async with file_lock(paths.lock) as lock:
            base = await make_copy(store, paths, contract, lock, namespace, network)
        await workspace_policy(store, base)
        root = base
    instructions = await repository_instructions(store, root)
    return Prepared(
        base=base,
        repo=repo_name(contract.workspace),
        instructions=instructions,
        isolation=IsolationReport(backend=isolation.backend, levels=dict(isolation.levels.items())),
        egress=network.take_counts(run_key),
    )


async def strong_enough(contract: TaskContract) -> sandbox.Isolation:
    """What holds commands here, when that is all that the contract requires."""
    isolation = await sandbox.probe()
    required = set(contract.sandbox.require)
    if "net_deny" in required and may_reach_network(policy_of(contract.policy)):
        required.add("egress_allowlist")  # without, a command could go round the proxy
    missing = isolation.missing(required)
    if missing:
        notes = "".join(f"\n  {note}" for note in isolation.notes)
        raise ApplicationError(
            f"sandbox.require: the best sandbox of this worker, {isolation.backend}, does not "
            f"enforce {', '.join(missing)}. Install bubblewrap (`apt install bubblewrap`) and see "
            f"`io-harness sandbox doctor`, or leave out of sandbox.require what you can do "
            f"without.{notes}",
            type="SandboxTooWeak",
            non_retryable=True,
        )
    return isolation


async def make_copy(
    store: SnapshotStore,
    paths: CopyPaths,
    contract: TaskContract,
    lock: FileLock,
    namespace: str | None = None,
    network: RunNetwork | None = None,
) -> str:
    """Import the source, fill the copy, set it up, and take what is there then as the base.

    Args:
        namespace: Id of the Temporal namespace, noted for the garbage collector.
        network: For the set-up; None lets it reach nothing.
    """
    paths.mark_dirty()
    git = paths.git(store, lock)
    scratch = dataclasses.replace(
        git,
        work_tree=None,
        index=paths.directory / "index.source",
        excludes=paths.directory / "excludes.source",
    )
    assert scratch.index is not None
    assert git.index is not None
    for stale in (scratch.index, git.index):
        stale.unlink(missing_ok=True)
    imported = await import_source(store, contract.workspace, paths.run_key, scratch)
    clear(paths.root)
    await check_out(git, imported.tree, imported.notes)
    if isinstance(contract.workspace, DirectorySource):
        directory = directory_of(contract.workspace)
        await bring_ignored(contract.workspace, directory, imported.tree, paths.root, scratch)
    found = await workspace_policy(store, imported.tree)
    gate = Gate(narrowed(contract, found), approval=contract.approval)
    await set_up(
        paths.root, contract, network.command(paths.run_key, gate) if network is not None else None
    )
    await stage_all(git)
    tree = await git.line("write-tree")
    notes = imported.notes.model_copy(
        update={
            "derived": tuple(to_note(name) for name in await list_ignored(git)),
            "namespace": namespace,
        }
    )
    base = store.commit(tree, [], notes.message())
    await store.set_ref(paths.run_key, "base", base)
    await store.set_ref(paths.run_key, "head", base)
    paths.mark_clean(base)
    return base


def repo_name(source: Source) -> str:
    """Short name of a source: the directory's own, or owner/name of a URL."""
    match source:
        case DirectorySource():
            return PurePath(source.path).name or source.path
        case GitSource():
            path = urlsplit(source.url).path if "://" in source.url else source.url.split(":")[-1]
            return "/".join(PurePath(path.removesuffix(".git")).parts[-2:]).lstrip("/")


async def namespace_id(client: Client) -> str | None:
    """Id of the client's namespace, unique among all clusters; None if the server doesn't tell."""
    try:
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace)
        )
    except RPCError:
        return None
    return described.namespace_info.id or None
