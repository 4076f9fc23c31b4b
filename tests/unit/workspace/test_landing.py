"""Landing delivers all or nothing, over what is there now, and the same however often it is tried."""

import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.git_url import remote
from io_harness.activities.landing import check_landing, land
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace import open_copy
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.payloads import Grant, LandInput, LandOutcome, NeedsApproval, RunScope
from io_harness.workflows.result import LandConflict, Landed, NothingToLand

from . import killed_landing
from .conftest import RUN, begin, contract_for, git

APP = "one\ntwo\nthree\nfour\nfive\n"


class Run:
    """A run whose agent has made a change."""

    def __init__(self, store: SnapshotStore, settings: Settings, contract: TaskContract) -> None:
        self.store, self.settings, self.contract = store, settings, contract

    async def begin(self, edits: dict[str, str | None], base: str | None = None) -> "Run":
        self.base = base or await begin(self.store, self.settings, self.contract)
        async with open_copy(self.store, self.settings, RUN, self.contract, self.base) as copy:
            copy.begin_change()
            for name, text in edits.items():
                file = copy.root / name
                if text is None:
                    file.unlink()
                else:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text)
            self.head, _ = await copy.snapshot("change")
        return self

    async def land(self, *grants: Grant) -> LandOutcome:
        return await land(self.contract, self.given(*grants), self.settings, self.store)

    def given(self, *grants: Grant) -> LandInput:
        return LandInput(
            run=RunScope(key=RUN, contract_digest=""),
            base=self.base,
            head=self.head,
            title="Mend it",
            verification="command passed: pytest exited with 0",
            grants=grants,
        )


@pytest.fixture
def run(store: SnapshotStore, settings: Settings, source: Path) -> Any:
    def make(edits: dict[str, str | None], where: Path | str = source, **fields: Any) -> Any:
        return Run(store, settings, contract_for(where, **fields)).begin(edits)

    return make


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts and path.suffix != ".tmp"
        if not path.parent.name.endswith(".tmp")
    }


# --- apply ----------------------------------------------------------------------------------------


async def test_apply_writes_only_what_changed(run: Any, source: Path) -> None:
    (source / "untouched.txt").write_text("x")
    before = (source / "untouched.txt").stat()
    made = await run({"app.py": APP.replace("two", "TWO"), "pkg/new.py": "n\n", "README.md": None})
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert not landed.mixed
    assert files(source) == {
        "app.py": APP.replace("two", "TWO"),
        "pkg/new.py": "n\n",
        "untouched.txt": "x",
    }
    after = (source / "untouched.txt").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert [(f.path, f.status) for f in landed.files] == [
        ("README.md", "deleted"), ("app.py", "modified"), ("pkg/new.py", "added"),
    ]  # fmt: skip
    assert "+TWO" in landed.diff
    assert landed.where == str(source)


async def test_apply_leaves_the_index_and_branches_alone(run: Any, source: Path) -> None:
    git(source, "add", "-A")
    made = await run({"app.py": "changed\n"})
    before = git(source, "rev-parse", "HEAD"), (source / ".git" / "index").read_bytes()
    await made.land()
    assert (git(source, "rev-parse", "HEAD"), (source / ".git" / "index").read_bytes()) == before
    assert git(source, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


async def test_apply_to_a_directory_without_git(run: Any, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a").write_text("a\n")
    await (await run({"a": "b\n"}, plain)).land()
    assert files(plain) == {"a": "b\n"}


async def test_nothing_to_land(run: Any, source: Path) -> None:
    made = await run({"app.py": APP})
    assert isinstance(await made.land(), NothingToLand)


async def test_modes_and_links(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    (source / "private.sh").write_text("#!/bin/sh\n")
    (source / "private.sh").chmod(0o700)
    (source / "secret.txt").write_text("x")
    (source / "secret.txt").chmod(0o600)
    contract = contract_for(source)
    run = await Run(store, settings, contract).begin({"private.sh": "#!/bin/sh\nexit\n"})
    async with open_copy(store, settings, RUN, contract, run.head) as copy:
        copy.begin_change()
        (copy.root / "secret.txt").write_text("y")
        (copy.root / "README.md").chmod(0o755)
        (copy.root / "app.py").unlink()
        (copy.root / "app.py").symlink_to("/etc/passwd")
        run.head, _ = await copy.snapshot("modes")
    assert isinstance(await run.land(), Landed)
    assert stat.S_IMODE((source / "private.sh").stat().st_mode) == 0o700
    assert stat.S_IMODE((source / "secret.txt").stat().st_mode) == 0o600
    assert (source / "README.md").stat().st_mode & 0o100
    assert os.readlink(source / "app.py") == "/etc/passwd"


async def test_a_file_becomes_a_folder_and_a_folder_a_file(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / "dir").mkdir()
    (source / "dir" / "x").write_text("x")
    contract = contract_for(source)
    run = await Run(store, settings, contract).begin({"dir/x": None, "app.py": None})
    async with open_copy(store, settings, RUN, contract, run.head) as copy:
        copy.begin_change()
        if (copy.root / "dir").exists():
            (copy.root / "dir").rmdir()
        (copy.root / "dir").write_text("now a file")
        (copy.root / "app.py").mkdir()
        (copy.root / "app.py" / "y").write_text("y")
        run.head, _ = await copy.snapshot("swap")
    assert isinstance(await run.land(), Landed)
    assert files(source) == {"README.md": "read me\n", "app.py/y": "y", "dir": "now a file"}


async def test_the_source_moved_and_the_change_merges(run: Any, source: Path) -> None:
    made = await run({"app.py": APP.replace("one", "ONE")})
    (source / "app.py").write_text(APP.replace("five", "FIVE"))
    (source / "users.txt").write_text("mine\n")
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert landed.mixed
    assert files(source) == {
        "README.md": "read me\n",
        "app.py": APP.replace("one", "ONE").replace("five", "FIVE"),
        "users.txt": "mine\n",
    }


async def test_a_conflict_lands_nothing_and_names_the_paths(run: Any, source: Path) -> None:
    made = await run({"app.py": APP.replace("one", "ONE"), "new.txt": "new\n", "README.md": None})
    (source / "app.py").write_text(APP.replace("one", "EINS"))
    (source / "README.md").write_text("mine\n")
    before = files(source)
    outcome = await made.land()
    assert isinstance(outcome, LandConflict)
    assert set(outcome.paths) == {"app.py", "README.md"}
    assert files(source) == before


async def test_both_made_the_same_change(run: Any, source: Path) -> None:
    made = await run({"app.py": "same\n"})
    (source / "app.py").write_text("same\n")
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert landed.files == ()


async def test_a_pipe_in_the_way_is_a_conflict_and_not_waited_for(run: Any, source: Path) -> None:
    made = await run({"new": "x\n"})
    os.mkfifo(source / "new")
    outcome = await made.land()
    assert isinstance(outcome, LandConflict)
    assert outcome.paths == ("new",)


async def test_an_ignored_file_in_the_way_is_a_conflict(run: Any, source: Path) -> None:
    (source / ".gitignore").write_text("*.log\n")
    made = await run({".gitignore": "", "a.log": "the agent's\n"})
    (source / "a.log").write_text("the user's\n")
    outcome = await made.land()
    assert isinstance(outcome, LandConflict)
    assert outcome.paths == ("a.log",)
    assert (source / "a.log").read_text() == "the user's\n"
    assert (source / ".gitignore").read_text() == "*.log\n"


@pytest.mark.parametrize("effects", range(5))
async def test_an_attempt_that_was_killed_is_completed_by_the_next(
    run: Any, source: Path, effects: int
) -> None:
    """Killed after so many effects on the source, in the middle of a merge with the user's edit."""
    for n in range(3):
        (source / f"f{n}.txt").write_text(APP)
    edits: dict[str, str | None] = {f"f{n}.txt": APP.replace("two", "TWO") for n in range(3)}
    made = await run({**edits, "README.md": None})
    (source / "f1.txt").write_text(APP.replace("four", "FOUR"))
    before = files(source)
    ended = await killed_landing.attempt(made.contract, made.given(), made.settings, effects)
    assert ended == (-signal.SIGKILL if effects < 4 else 0)
    assert (files(source) == before) is (effects == 0)
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert not list(source.glob(".io-harness*"))
    assert files(source) == {
        "app.py": APP,
        "f0.txt": APP.replace("two", "TWO"),
        "f1.txt": APP.replace("two", "TWO").replace("four", "FOUR"),
        "f2.txt": APP.replace("two", "TWO"),
    }
    assert [f.path for f in landed.files] == ["README.md", "f0.txt", "f1.txt", "f2.txt"]


async def test_landing_again_changes_nothing(run: Any, source: Path) -> None:
    made = await run({"app.py": APP.replace("one", "ONE")})
    first = await made.land()
    seen = (source / "app.py").stat().st_ino
    assert await made.land() == first
    assert (source / "app.py").stat().st_ino == seen


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
async def test_what_root_lands_belongs_to_the_owner(run: Any, source: Path) -> None:
    for path in (source, *source.rglob("*")):
        os.chown(path, 1001, 1001)
    made = await run({"app.py": "x\n", "new/file": "y\n"})
    assert isinstance(await made.land(), Landed)
    for name in ("app.py", "new", "new/file"):
        assert (source / name).stat().st_uid == 1001


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
async def test_a_read_only_folder_lands_nothing_and_says_so(run: Any, source: Path) -> None:
    (source / "closed").mkdir()
    (source / "closed" / "file").write_text("x")
    made = await run({"app.py": "changed\n", "closed/file": "y"})
    (source / "closed").chmod(0o500)
    before = files(source)
    with pytest.raises(ApplicationError, match="closed") as caught:
        await made.land()
    (source / "closed").chmod(0o700)
    assert caught.value.type == "LandingImpossible"
    assert files(source) == before


# --- branch ---------------------------------------------------------------------------------------


async def test_branch_commits_on_head_and_touches_nothing_else(run: Any, source: Path) -> None:
    (source / "draft.txt").write_text("the user's, not committed\n")
    made = await run({"app.py": APP.replace("two", "TWO")}, landing={"mode": "branch"})
    before = files(source), (source / ".git" / "index").read_bytes()
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert landed.where == "io-harness/run"
    assert landed.mixed, "verified with the draft, which the branch lacks"
    assert (files(source), (source / ".git" / "index").read_bytes()) == before
    assert git(source, "rev-parse", "io-harness/run^") == git(source, "rev-parse", "main")
    assert git(source, "diff", "--stat", "--name-only", "main", "io-harness/run") == "app.py"
    assert git(source, "log", "-1", "--format=%s", "io-harness/run") == "Mend it"
    assert git(source, "symbolic-ref", "HEAD") == "refs/heads/main"
    git(source, "fsck", "--strict")


async def test_branch_again_is_the_same_branch(run: Any, source: Path) -> None:
    made = await run({"app.py": "x\n"}, landing={"mode": "branch", "name": "fix"})
    await made.land()
    first = git(source, "rev-parse", "fix")
    git(source, "commit", "-q", "--allow-empty", "-m", "the user goes on")
    assert isinstance(await made.land(), Landed)
    assert git(source, "rev-parse", "fix") == first


async def test_branch_refuses_a_name_that_is_taken(run: Any, source: Path) -> None:
    made = await run({"app.py": "x\n"}, landing={"mode": "branch", "name": "main"})
    before = git(source, "rev-parse", "main")
    outcome = await made.land()
    assert isinstance(outcome, LandConflict)
    assert "main" in outcome.reason
    assert git(source, "rev-parse", "main") == before


async def test_branch_merges_with_commits_made_meanwhile(run: Any, source: Path) -> None:
    made = await run({"app.py": APP.replace("one", "ONE")}, landing={"mode": "branch", "name": "b"})
    (source / "app.py").write_text(APP.replace("five", "FIVE"))
    git(source, "commit", "-qam", "the user's")
    assert isinstance(await made.land(), Landed)
    merged = APP.replace("one", "ONE").replace("five", "FIVE").strip()
    assert git(source, "show", "b:app.py") == merged
    git(source, "fsck", "--strict")


async def test_branch_conflict(run: Any, source: Path) -> None:
    made = await run({"app.py": APP.replace("one", "ONE")}, landing={"mode": "branch", "name": "b"})
    (source / "app.py").write_text(APP.replace("one", "EINS"))
    git(source, "commit", "-qam", "the user's")
    outcome = await made.land()
    assert isinstance(outcome, LandConflict)
    assert outcome.paths == ("app.py",)
    assert git(source, "branch", "--list", "b") == ""


async def test_branch_of_a_folder_of_a_repository(run: Any, source: Path) -> None:
    (source / "pkg").mkdir()
    (source / "pkg" / "a.py").write_text("a\n")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "pkg")
    landing = {"mode": "branch", "name": "b"}
    made = await run({"a.py": "b\n"}, source / "pkg", landing=landing)
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert not landed.mixed
    assert git(source, "diff", "--name-only", "main", "b") == "pkg/a.py"


async def test_branch_in_a_repository_without_a_commit(run: Any, tmp_path: Path) -> None:
    young = tmp_path / "young"
    young.mkdir()
    git(young, "init", "-q", "-b", "main")
    (young / "a").write_text("a\n")
    made = await run({"a": "b\n"}, young, landing={"mode": "branch", "name": "b"})
    assert isinstance(await made.land(), Landed)
    assert git(young, "show", "b:a") == "b"


async def test_branch_lands_through_a_linked_work_tree(
    run: Any, source: Path, tmp_path: Path
) -> None:
    git(source, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    landing = {"mode": "branch", "name": "b"}
    made = await run({"app.py": "x\n"}, tmp_path / "linked", landing=landing)
    assert isinstance(await made.land(), Landed)
    assert git(source, "show", "b:app.py") == "x"


async def test_branch_runs_no_hook_of_the_repository(
    run: Any, source: Path, tmp_path: Path
) -> None:
    made = await run({"app.py": "x\n"}, landing={"mode": "branch", "name": "b"})
    hook = source / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    assert isinstance(await made.land(), Landed)
    assert not (tmp_path / "ran").exists()
    git(source, "branch", "control")
    assert (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
async def test_a_branch_that_root_lands_belongs_to_the_owner(run: Any, source: Path) -> None:
    for path in (source, *source.rglob("*")):
        os.chown(path, 1001, 1001)
    for folder in source.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(0o711)  # pytest's folders are closed to others
    made = await run({"app.py": "x\n"}, landing={"mode": "branch"})
    assert isinstance(await made.land(), Landed)
    owners = {path.stat().st_uid for path in (source / ".git").rglob("*")}
    assert owners == {1001}


# --- patch ----------------------------------------------------------------------------------------


async def test_patch_is_what_git_apply_reads(run: Any, source: Path, tmp_path: Path) -> None:
    landing = {"mode": "patch", "path": str(tmp_path / "out.patch")}
    (source / "binary").write_bytes(bytes(range(256)))
    made = await run(
        {"app.py": "x\n", "binary": "no longer", "new": "n", "README.md": None}, landing=landing
    )
    before = (source / "app.py").read_text()
    landed = await made.land()
    assert isinstance(landed, Landed)
    assert (source / "app.py").read_text() == before
    git(source, "apply", str(tmp_path / "out.patch"))
    assert files(source) == {"app.py": "x\n", "binary": "no longer", "new": "n"}
    assert await made.land() == landed


async def test_patch_keeps_a_file_that_is_there(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "out.patch"
    made = await run({"app.py": "x\n"}, landing={"mode": "patch", "path": str(file)})
    file.write_text("precious")
    assert isinstance(await made.land(), LandConflict)
    assert file.read_text() == "precious"
    file.rename(tmp_path / "kept")
    file.symlink_to(tmp_path / "elsewhere")
    assert isinstance(await made.land(), LandConflict)
    assert not (tmp_path / "elsewhere").exists()
    assert {each.name for each in tmp_path.iterdir()} == {"data", "kept", "out.patch", "source"}


# --- approval, checks before a run ----------------------------------------------------------------


async def test_landing_that_asks_shows_the_whole_change_first(run: Any, source: Path) -> None:
    landing = {"mode": "apply", "approve": "ask"}
    made = await run({"app.py": APP.replace("two", "TWO")}, landing=landing)
    asked = await made.land()
    assert isinstance(asked, NeedsApproval)
    (request,) = asked.requests
    assert request.act == "land"
    assert "+TWO" in request.preview
    assert "pytest exited with 0" in request.preview
    assert files(source)["app.py"] == APP
    assert isinstance(await made.land(Grant(digest="0" * 64)), NeedsApproval)
    assert isinstance(await made.land(Grant(digest=request.digest)), Landed)
    assert files(source)["app.py"] == APP.replace("two", "TWO")


async def test_a_yes_holds_for_the_change_that_was_shown(run: Any, source: Path) -> None:
    landing = {"mode": "apply", "approve": "ask"}
    made = await run({"app.py": "first\n"}, landing=landing)
    asked = await made.land()
    assert isinstance(asked, NeedsApproval)
    await made.begin({"app.py": "second\n"}, made.base)
    assert isinstance(await made.land(Grant(digest=asked.requests[0].digest)), NeedsApproval)


@pytest.mark.parametrize(
    ("landing", "words"),
    [
        ({"mode": "branch"}, "needs a git repository"),
        ({"mode": "branch", "name": "a..b"}, "no name that a branch can have"),
        ({"mode": "patch", "path": "relative.patch"}, "absolute"),
        ({"mode": "patch", "path": "/nonexistent/x.patch"}, "/nonexistent"),
        ({"mode": "patch", "path": "/tmp"}, "directory"),
    ],
)
async def test_an_impossible_landing_is_found_before_the_run(
    tmp_path: Path, store: SnapshotStore, landing: dict[str, str], words: str
) -> None:
    with pytest.raises(ApplicationError, match=words) as caught:
        await check_landing(contract_for(tmp_path, landing=landing), RUN, remote(store))
    assert caught.value.type == "LandingImpossible"
    assert caught.value.non_retryable


@pytest.mark.parametrize("by_url", [False, True])
async def test_a_branch_that_exists_is_found_before_the_run(
    source: Path, store: SnapshotStore, by_url: bool
) -> None:
    where: Path | str = f"file://{source}" if by_url else source
    taken = contract_for(where, landing={"mode": "branch", "name": "main"})
    with pytest.raises(ApplicationError, match="has a branch 'main' already") as caught:
        await check_landing(taken, RUN, remote(store))
    assert caught.value.type == "LandingImpossible"
    free = contract_for(where, landing={"mode": "branch", "name": "new"})
    await check_landing(free, RUN, remote(store))
