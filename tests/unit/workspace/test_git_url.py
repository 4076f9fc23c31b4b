"""A git URL as a source and as a place to land, served by a real repository."""

import os
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.git_url import check_url
from io_harness.activities.landing import land
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace import open_copy
from io_harness.workflows.contract import GitSource
from io_harness.workflows.payloads import LandInput, LandOutcome, RunScope
from io_harness.workflows.result import LandConflict, Landed

from .conftest import RUN, begin, contract_for, git

BRANCH = {"landing": {"mode": "branch", "name": "fix"}}


@pytest.fixture
def upstream(source: Path, tmp_path: Path) -> str:
    """A bare repository with three commits, a tag and a second branch."""
    (source / "app.py").write_text("second\n")
    git(source, "commit", "-qam", "second")
    git(source, "tag", "-a", "v2", "-m", "two")
    git(source, "checkout", "-q", "-b", "side")
    (source / "side.txt").write_text("side\n")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "side")
    git(source, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", "--bare", str(source), "upstream.git")
    return f"file://{tmp_path}/upstream.git"


async def names(store: SnapshotStore, commit: str) -> list[str]:
    return (await store.git().out("ls-tree", "-r", "--name-only", commit)).decode().split()


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("HEAD", "second\n"),
        ("side", "second\n"),
        ("v2", "second\n"),
        ("refs/heads/main", "second\n"),
    ],
)
async def test_a_ref_is_checked_out(
    store: SnapshotStore, settings: Settings, upstream: str, ref: str, text: str
) -> None:
    base = await begin(store, settings, contract_for(upstream, workspace={"ref": ref}, **BRANCH))
    entry = await store.entry(base, "app.py")
    assert entry is not None
    assert (await store.get_blob(entry[1])).decode() == text
    assert ("side.txt" in await names(store, base)) is (ref == "side")


async def test_a_commit_by_its_id(
    store: SnapshotStore, settings: Settings, upstream: str, source: Path
) -> None:
    for commit in (git(source, "rev-parse", "main^"), git(source, "rev-parse", "main^")[:10]):
        contract = contract_for(upstream, workspace={"ref": commit}, **BRANCH)
        base = await begin(store, settings, contract)
        entry = await store.entry(base, "app.py")
        assert entry is not None
        assert (await store.get_blob(entry[1])).startswith(b"one")
    kept = await store.git().out("for-each-ref", "--format=%(refname)")
    assert kept.decode().split() == [
        f"refs/io-harness/{RUN}/{n}" for n in ("base", "head", "upstream")
    ]


async def test_only_the_commit_is_fetched(
    store: SnapshotStore, settings: Settings, upstream: str
) -> None:
    await begin(store, settings, contract_for(upstream, **BRANCH))
    assert await store.git().line("rev-list", "--count", f"refs/io-harness/{RUN}/upstream") == "1"


@pytest.mark.parametrize(
    ("url", "ref", "code"),
    [
        ("{up}", "absent", "RefNotFound"),
        ("{up}", "--upload-pack=touch /tmp/x", "RefNotFound"),
        ("{up}", "a:b", "RefNotFound"),
        ("{up}", "0123456789012345678901234567890123456789", "RefNotFound"),
        ("file:///nonexistent/repo.git", "HEAD", "SourceNotFound"),
        ("/nonexistent/repo.git", "HEAD", "SourceNotFound"),
    ],
)
async def test_what_is_not_there_is_named(
    store: SnapshotStore, settings: Settings, upstream: str, url: str, ref: str, code: str
) -> None:
    contract = contract_for(url.format(up=upstream), workspace={"ref": ref}, **BRANCH)
    with pytest.raises(ApplicationError) as caught:
        await begin(store, settings, contract)
    assert (caught.value.type, caught.value.non_retryable) == (code, True)


async def test_a_directory_that_is_no_repository_is_told_how_to_write_it(
    store: SnapshotStore, settings: Settings, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(ApplicationError, match="no git repository; write it as") as caught:
        await begin(store, settings, contract_for(str(plain), **BRANCH))
    assert caught.value.type == "SourceNotFound"


async def test_a_host_that_does_not_answer_may_be_tried_again(
    store: SnapshotStore, settings: Settings
) -> None:
    contract = contract_for("http://127.0.0.1:9/repo.git", **BRANCH)
    with pytest.raises(ApplicationError) as caught:
        await begin(store, settings, contract)
    assert (caught.value.type, caught.value.non_retryable) == ("SourceUnreachable", False)


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% /tmp/x",
        "-upload-pack=x",
        "--foo",
        "https://u:secret@example.org/x",
        "fd::3",
    ],
)
def test_urls_that_would_run_or_leak_something_are_refused(url: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        check_url(url)
    assert caught.value.type == "SourceUrlRefused"
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/o/r.git",
        "ssh://git@example.org/r",
        "git@example.org:o/r.git",
        "/srv/r.git",
    ],
)
def test_ordinary_urls_are_taken(url: str) -> None:
    check_url(url)


# --- landing --------------------------------------------------------------------------------------


async def change(store: SnapshotStore, settings: Settings, url: str) -> tuple[GitSource, LandInput]:
    contract = contract_for(url, **BRANCH)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "app.py").write_text("mended\n")
        head, _ = await copy.snapshot("mend")
    assert isinstance(contract.workspace, GitSource)
    scope = RunScope(key=RUN, contract_digest="")
    return contract.workspace, LandInput(run=scope, base=base, head=head, title="Mend it")


async def land_it(
    store: SnapshotStore, settings: Settings, url: str, given: LandInput
) -> LandOutcome:
    return await land(contract_for(url, **BRANCH), given, settings, store)


async def test_the_branch_is_pushed_on_top_of_the_commit(
    store: SnapshotStore, settings: Settings, upstream: str, tmp_path: Path, source: Path
) -> None:
    _, given = await change(store, settings, upstream)
    bare = tmp_path / "upstream.git"
    landed = await land_it(store, settings, upstream, given)
    assert isinstance(landed, Landed)
    assert git(bare, "rev-parse", "fix^") == git(source, "rev-parse", "main")
    assert git(bare, "show", "fix:app.py") == "mended"
    pushed = git(bare, "rev-parse", "fix")
    assert await land_it(store, settings, upstream, given) == landed
    assert git(bare, "rev-parse", "fix") == pushed
    git(bare, "fsck", "--strict")


async def test_a_branch_that_is_there_is_not_overwritten(
    store: SnapshotStore, settings: Settings, upstream: str, tmp_path: Path
) -> None:
    _, given = await change(store, settings, upstream)
    bare = tmp_path / "upstream.git"
    git(bare, "branch", "fix", "side")
    before = git(bare, "rev-parse", "fix")
    assert isinstance(await land_it(store, settings, upstream, given), LandConflict)
    assert git(bare, "rev-parse", "fix") == before


async def test_a_server_that_refuses_is_no_reason_to_retry(
    store: SnapshotStore, settings: Settings, upstream: str, tmp_path: Path
) -> None:
    _, given = await change(store, settings, upstream)
    hook = tmp_path / "upstream.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho protected branch\nexit 1\n")
    os.chmod(hook, 0o755)
    with pytest.raises(ApplicationError) as caught:
        await land_it(store, settings, upstream, given)
    assert (caught.value.type, caught.value.non_retryable) == ("LandingImpossible", True)


async def test_submodules_leave_their_folder_to_the_agent(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    """The files of a submodule aren't in the repository; what the agent writes there must be kept."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "part").write_text("part")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "x")
    git(source, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    git(source, "commit", "-q", "-m", "submodule")
    contract = contract_for(f"file://{source}", **BRANCH)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "sub").mkdir(exist_ok=True)
        (copy.root / "sub" / "new").write_text("x")
        _, changes = await copy.snapshot("write")
    assert [c.path for c in changes] == ["sub/new"]
