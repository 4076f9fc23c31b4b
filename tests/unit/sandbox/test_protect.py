"""Covers of absent protected paths, and what becomes of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from io_harness.sandbox import Plan, protected_in
from io_harness.sandbox.linux.protect import protecting
from io_harness.sandbox.linux.view import Bind
from io_harness.sandbox.plan import PROTECTED_NAMES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX file calls")


def plan(workspace: Path, *names: str, mode: str = "workspace_write") -> Plan:
    return Plan(
        argv=("true",),
        cwd=workspace,
        workspace=workspace,
        mode=mode,  # type: ignore[arg-type]
        protected=tuple(workspace / name for name in names),
    )


def test_absent_paths_are_covered_and_uncovered(tmp_path: Path) -> None:
    with protecting(plan(tmp_path, ".envrc", ".git/hooks")) as binds:
        assert {bind.at.name for bind in binds} == {".envrc", ".git"}
        assert not any(bind.writable for bind in binds)
        assert sorted(os.listdir(tmp_path)) == [".envrc", ".git"]
    assert os.listdir(tmp_path) == []


def test_two_commands_share_a_cover(tmp_path: Path) -> None:
    with protecting(plan(tmp_path, ".envrc")):
        with protecting(plan(tmp_path, ".envrc")) as binds:
            assert [bind.at.name for bind in binds] == [".envrc"]
        assert os.listdir(tmp_path) == [".envrc"]
    assert os.listdir(tmp_path) == []


def test_the_last_to_leave_removes_what_others_left(tmp_path: Path) -> None:
    """The covers of a directory are one file, on which a second command has a lock too."""
    with contextlib.ExitStack() as second:
        with protecting(plan(tmp_path, ".envrc", ".idea")):
            second.enter_context(protecting(plan(tmp_path, ".envrc")))
            assert (tmp_path / ".envrc").samefile(tmp_path / ".idea")
        assert sorted(os.listdir(tmp_path)) == [".envrc", ".idea"]
    assert os.listdir(tmp_path) == []


HOLD = """
import contextlib, sys
from pathlib import Path
from io_harness.sandbox import Plan
from io_harness.sandbox.linux.protect import protecting
here = Path(sys.argv[1])
plan = Plan(argv=("true",), cwd=here, workspace=here, protected=(here / ".envrc",))
with protecting(plan):
    print("covered", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_process(workspace: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a cover in this workspace. It leaves when its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(workspace)], stdin=PIPE, stdout=PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"covered\n"
        yield process


def test_two_processes_share_a_cover(tmp_path: Path) -> None:
    """Its removal would uncover the path in the other's sandbox."""
    with another_process(tmp_path) as other:
        with protecting(plan(tmp_path, ".envrc")):
            assert other.stdin is not None
            other.stdin.close()
            assert other.wait() == 0
            assert os.listdir(tmp_path) == [".envrc"]
        assert os.listdir(tmp_path) == []


def test_a_killed_process_leaves_a_cover_only_until_the_next_command(tmp_path: Path) -> None:
    with another_process(tmp_path) as other:
        other.kill()
    assert os.listdir(tmp_path) == [".envrc"]
    with protecting(plan(tmp_path, ".envrc")) as binds:
        assert [bind.at.name for bind in binds] == [".envrc"]
    assert os.listdir(tmp_path) == []


def test_an_empty_file_of_someone_else_stays(tmp_path: Path) -> None:
    own = tmp_path / ".envrc"
    own.touch(0o444)
    with protecting(plan(tmp_path, ".envrc")) as binds:
        assert binds == (Bind(own, own, owned=True),)
    assert own.exists()


def test_what_took_a_covers_place_stays(tmp_path: Path) -> None:
    with protecting(plan(tmp_path, ".envrc")):
        (tmp_path / "new").write_text("by the user's editor")
        (tmp_path / "new").rename(tmp_path / ".envrc")
    assert (tmp_path / ".envrc").read_text() == "by the user's editor"


def test_directories_on_the_way_become_mounts(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / ".git" / "config").touch()
    with protecting(plan(tmp_path, ".git/hooks", ".git/config")) as binds:
        git = tmp_path / ".git"
        assert binds == (
            Bind(git, git, writable=True, owned=True),
            Bind(git / "hooks", git / "hooks", owned=True),
            Bind(git / "config", git / "config", owned=True),
        )


def test_a_file_on_the_way_is_protected_itself(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /elsewhere\n")
    with protecting(plan(tmp_path, ".git/hooks")) as binds:
        assert binds == (Bind(tmp_path / ".git", tmp_path / ".git", owned=True),)


def test_what_a_link_leads_to_is_protected(tmp_path: Path) -> None:
    """Git follows it."""
    real = tmp_path / "repository"
    (real / "hooks").mkdir(parents=True)
    (tmp_path / ".git").symlink_to("repository")
    with protecting(plan(tmp_path, ".git/hooks", ".git/config")) as binds:
        assert set(binds) == {
            Bind(real, real, writable=True, owned=True),
            Bind(real / "config", real / "config", owned=True),
            Bind(real / "hooks", real / "hooks", owned=True),
        }
    assert os.listdir(real) == ["hooks"]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to("other")
    (tmp_path / "other").symlink_to(".git")
    with protecting(plan(tmp_path, ".git/hooks")) as binds:
        assert binds == ()


def test_the_repository_that_a_git_file_names_is_protected(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: ./.bare\n")
    assert tmp_path / ".bare" / "hooks" in protected_in(tmp_path)
    (tmp_path / ".git").write_text("no pointer\n")
    assert set(protected_in(tmp_path)) == {tmp_path / name for name in PROTECTED_NAMES}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_works_where_everything_absent_is_covered(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        done = subprocess.run(["git", *identity, *words], cwd=tmp_path, stdout=PIPE, check=True)
        return done.stdout.decode()

    git("init", "-q")
    with protecting(plan(tmp_path, *PROTECTED_NAMES)):
        (tmp_path / "file").write_text("text")
        git("add", "file")
        git("commit", "-q", "-m", "one")
        git("switch", "-q", "-c", "branch")
        assert git("log", "--format=%s").split() == ["one"]
        assert Path(git("rev-parse", "--git-common-dir").strip()).samefile(tmp_path / ".git")


@pytest.mark.parametrize("replacement", ["file", "directory", "link", "nothing"])
def test_a_changed_link_is_put_back(tmp_path: Path, replacement: str) -> None:
    link = tmp_path / ".envrc"
    link.symlink_to("original")
    with protecting(plan(tmp_path, ".envrc")) as binds:
        assert [bind.at.name for bind in binds] == ["original"]
        link.unlink()
        match replacement:
            case "file":
                link.write_text("planted")
            case "directory":
                (link / "deep").mkdir(parents=True)
            case "link":
                link.symlink_to("planted")
    assert os.readlink(link) == "original"


@pytest.mark.parametrize("mode", ["read_only", "overlay"])
def test_where_nothing_is_written_nothing_needs_protection(tmp_path: Path, mode: str) -> None:
    with protecting(plan(tmp_path, ".envrc", mode=mode)) as binds:
        assert binds == ()
        assert os.listdir(tmp_path) == []
