"""What git ignores comes along, within a limit, and works from where it is then."""

import asyncio
import os
import stat
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.ignored import in_thread
from io_harness.activities.relocate import relocate
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.trees import copy_beneath, copy_file, remove_tree

from .conftest import RUN, begin, contract_for

GO_ON = threading.Event()


@pytest.fixture
def root(settings: Settings) -> Path:
    return CopyPaths.of(settings, RUN).root


async def test_ignored_files_come_along_with_times_modes_and_links(
    store: SnapshotStore, settings: Settings, source: Path, root: Path, tmp_path: Path
) -> None:
    (source / ".gitignore").write_text("env/\n*.o\n")
    (source / "env" / "bin").mkdir(parents=True)
    tool = source / "env" / "bin" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    os.utime(tool, (1_000_000_000, 1_000_000_000))
    (source / "env" / "python").symlink_to(sys.executable)
    (source / "env" / "lib").symlink_to("bin")
    (source / "env" / "empty").mkdir()
    os.mkfifo(source / "env" / "pipe")
    (source / "main.o").write_bytes(b"object")
    await begin(store, settings, contract_for(source))
    copied = root / "env" / "bin" / "tool"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o755
    assert copied.stat().st_mtime == 1_000_000_000
    assert os.readlink(root / "env" / "python") == sys.executable
    assert os.readlink(root / "env" / "lib") == "bin"
    assert (root / "env" / "empty").is_dir()
    assert not (root / "env" / "pipe").exists()
    assert (root / "main.o").read_bytes() == b"object"


async def test_they_can_be_left(
    store: SnapshotStore, settings: Settings, source: Path, root: Path
) -> None:
    (source / ".gitignore").write_text("*.o\n")
    (source / "main.o").write_bytes(b"object")
    await begin(store, settings, contract_for(source, workspace={"ignored": "leave"}))
    assert not (root / "main.o").exists()


async def test_too_much_is_an_error_that_names_the_largest(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("big/\nsmall/\n")
    for name, size in (("big", 3), ("small", 1)):
        (source / name).mkdir()
        with open(source / name / "data", "wb") as file:  # noqa: ASYNC230
            file.truncate(size << 20)
    with pytest.raises(ApplicationError) as caught:
        await begin(store, settings, contract_for(source, workspace={"ignored_limit_mb": 3}))
    assert (caught.value.type, caught.value.non_retryable) == ("IgnoredTooLarge", True)
    assert "big (3.0 MiB), small (1.0 MiB)" in caught.value.message
    assert "workspace.exclude" in caught.value.message
    within = {"ignored_limit_mb": 3, "exclude": ["small"]}
    await begin(store, settings, contract_for(source, workspace=within))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    source, target, outside = (tmp_path / name for name in ("source", "target", "outside"))
    for folder in (source / "a" / "b", source / "c", target, outside):
        folder.mkdir(parents=True)
    (source / "a" / "b" / "file").write_text("x")
    (source / "c" / "file").write_text("x")
    (target / "a").symlink_to(outside)
    (target / "c").symlink_to(outside)
    for name in (b"a/b", b"c", b"c/file"):
        copy_beneath(os.fsencode(source), os.fsencode(target), name, (), GO_ON)
    assert list(outside.iterdir()) == []
    (target / "c").unlink()  # the control
    copy_beneath(os.fsencode(source), os.fsencode(target), b"c", (), GO_ON)
    assert (target / "c" / "file").read_text() == "x"


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    for folder in ("source/d", "target/d"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "source/d/same").write_text("source")
    (tmp_path / "source/d/more").write_text("source")
    (tmp_path / "target/d/same").write_text("target")
    copy_beneath(
        os.fsencode(tmp_path / "source"), os.fsencode(tmp_path / "target"), b"d", (), GO_ON
    )
    assert (tmp_path / "target/d/same").read_text() == "target"
    assert (tmp_path / "target/d/more").read_text() == "source"


def test_a_large_file_is_copied_whole(tmp_path: Path) -> None:
    content = os.urandom(3 << 20) + b"end"
    (tmp_path / "a").write_bytes(content)
    copy_file(os.fsencode(tmp_path / "a"), os.fsencode(tmp_path / "b"), 0o4755)
    assert (tmp_path / "b").read_bytes() == content
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) & 0o7000 == 0


def test_a_tree_without_permissions_is_removed(tmp_path: Path) -> None:
    (tmp_path / "t" / "closed" / "deep").mkdir(parents=True)
    (tmp_path / "t" / "closed" / "deep" / "file").write_text("x")
    (tmp_path / "t" / "closed" / "deep").chmod(0)
    (tmp_path / "t" / "closed").chmod(0)
    remove_tree(tmp_path / "t")
    assert not (tmp_path / "t").exists()
    remove_tree(tmp_path / "t")  # again is no error


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    folder = os.open(tmp_path / "t", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    remove_tree(tmp_path / "t")
    assert not (tmp_path / "t").exists()


async def test_a_cancelled_copy_has_stopped_when_it_returns() -> None:
    ended: list[float] = []

    def work(stop: threading.Event) -> None:
        assert stop.wait(30)
        time.sleep(0.2)
        ended.append(time.monotonic())

    task = asyncio.create_task(in_thread(work))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


# --- environments that know where they were made --------------------------------------------------


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an environment in which it is installed as editable."""
    project = tmp_path_factory.mktemp("my project")
    (project / "pkg").mkdir()
    (project / "pkg" / "__init__.py").write_text("VALUE = 'old'\n")
    (project / ".gitignore").write_text(".venv/\n")
    venv.create(project / ".venv", with_pip=False, symlinks=True)
    (site,) = (project / ".venv").glob("lib/python*/site-packages")
    (site / "__editable__.pkg.pth").write_text(f"{project}\n")
    script = project / ".venv" / "bin" / "show"
    script.write_text(f"#!{project}/.venv/bin/python\nimport pkg\nprint(pkg.VALUE)\n")
    script.chmod(0o755)
    return project


async def test_an_editable_install_imports_the_copys_code(
    store: SnapshotStore, settings: Settings, root: Path, editable: Path
) -> None:
    await begin(store, settings, contract_for(editable))
    (root / "pkg" / "__init__.py").write_text("VALUE = 'new'\n")
    python = root / ".venv" / "bin" / "python"
    assert shown(python, "-c", "import pkg; print(pkg.VALUE)") == "new"
    assert f"#!{root}/.venv/bin/python" in (root / ".venv" / "bin" / "show").read_text()
    original = editable / ".venv" / "bin" / "python"
    assert shown(original, "-c", "import pkg; print(pkg.VALUE)") == "old"
    assert str(root) not in (editable / ".venv" / "bin" / "show").read_text()


def shown(*command: Path | str) -> str:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_only_whole_names_and_text_are_rewritten(tmp_path: Path) -> None:
    target = tmp_path / "copy"
    (target / ".venv" / "bin").mkdir(parents=True)
    (target / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    contents = {
        "script": (b"#!/src/.venv/bin/python\n/src2 /src'", b"#!%s/.venv/bin/python\n/src2 %s'"),
        "binary": (b"\0/src/.venv", b"\0/src/.venv"),
        "other": (b"#!/bin/sh\n", b"#!/bin/sh\n"),
    }
    for name, (before, _) in contents.items():
        (target / ".venv" / "bin" / name).write_bytes(before)
    (target / ".venv" / "README").write_bytes(b"/src/")
    relocate(os.fsencode(target), [b".venv"], b"/src", GO_ON)
    for name, (_, after) in contents.items():
        wanted = after.replace(b"%s", os.fsencode(target))
        assert (target / ".venv" / "bin" / name).read_bytes() == wanted
    assert (target / ".venv" / "README").read_bytes() == b"/src/"
