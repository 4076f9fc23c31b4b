"""What a source is becomes the first snapshot, byte for byte, and nothing of it runs."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.checkout import CopyPaths
from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace import open_copy

from .conftest import RUN, begin, contract_for, git


def root_of(settings: Settings) -> Path:
    return CopyPaths.of(settings, RUN).root


async def names(store: SnapshotStore, commit: str) -> list[str]:
    listed = await store.git().out("ls-tree", "-r", "-z", "--name-only", commit)
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


async def code_of(store: SnapshotStore, settings: Settings, **how: object) -> tuple[str, str]:
    with pytest.raises(ApplicationError) as caught:
        await begin(store, settings, contract_for(**how))  # type: ignore[arg-type]
    assert caught.value.non_retryable
    return caught.value.type or "", caught.value.message


async def test_uncommitted_and_untracked_files_are_part_of_it(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / "app.py").write_text("changed\n")
    git(source, "rm", "-q", "README.md")
    (source / "untracked.txt").write_text("new\n")
    base = await begin(store, settings, contract_for(source))
    assert await names(store, base) == ["app.py", "untracked.txt"]
    assert (root_of(settings) / "app.py").read_text() == "changed\n"


async def test_a_directory_without_git(
    store: SnapshotStore, settings: Settings, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    (plain / "sub" / "__pycache__").mkdir(parents=True)
    (plain / "sub" / "mod.py").write_text("x = 1\n")
    (plain / "sub" / "__pycache__" / "mod.pyc").write_bytes(b"\0")
    base = await begin(store, settings, contract_for(plain))
    assert await names(store, base) == ["sub/mod.py"]
    assert (root_of(settings) / "sub" / "__pycache__" / "mod.pyc").exists()
    assert not (plain / ".git").exists()


async def test_an_empty_directory(store: SnapshotStore, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    base = await begin(store, settings, contract_for(tmp_path / "empty"))
    assert await names(store, base) == []


async def test_bytes_survive_whatever_gitattributes_ask_for(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitattributes").write_text(
        "* text=auto eol=lf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n*.bin -text\n"
    )
    contents = {
        "crlf.txt": b"a\r\nb\r\n",
        "mixed.txt": b"a\r\nb\nc\r",
        "k.id": b"$Id$ and $Id: 1234 $\n",
        "latin.txt": b"caf\xe9\n",
        "w.u16": "\ufeffwide\r\n".encode("utf-16-le"),
        "not.u16": b"not utf-16",
        "nul.bin": bytes(range(256)),
        "noend.txt": b"no newline at the end",
        "bom.txt": b"\xef\xbb\xbfbom\r\n",
    }
    for name, content in contents.items():
        (source / name).write_bytes(content)
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    copied = root_of(settings)
    assert {name: (copied / name).read_bytes() for name in contents} == contents
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        for name in contents:
            (copied / name).unlink()
    async with open_copy(store, settings, RUN, contract, base) as copy:
        assert {name: (copied / name).read_bytes() for name in contents} == contents
        assert await copy.snapshot("nothing") == (base, ())


async def test_names_modes_and_links(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    odd = [
        b"with space", b"new\nline", b"quo\"te'", b"tab\there", b"-dash", b"back\\slash",
        b"\xff\xfe.txt", "übung".encode(), b"*star?[x]", b":colon", b"git~1", b".git.txt", b"!bang",
        b"#hash", b"trail. ",
    ]  # fmt: skip
    for name in odd:
        with open(os.path.join(os.fsencode(source), name), "wb") as file:  # noqa: ASYNC230
            file.write(name)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "out").symlink_to(secret)
    (source / "dangling").symlink_to("nowhere")
    (source / "inside").symlink_to("app.py")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "sock"))
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    copied = root_of(settings)
    found = set(os.listdir(os.fsencode(copied)))
    assert found == {*odd, b"app.py", b"README.md", b"run.sh", b"out", b"dangling", b"inside"}
    assert stat.S_IMODE((copied / "run.sh").stat().st_mode) & 0o111
    assert not stat.S_IMODE((copied / "app.py").stat().st_mode) & 0o111
    assert os.readlink(copied / "out") == str(secret)
    assert os.readlink(copied / "dangling") == "nowhere"
    assert "out/key" not in await names(store, base)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        os.unlink(os.path.join(os.fsencode(copied), b"\xff\xfe.txt"))
        _, changes = await copy.snapshot("remove")
    assert [(c.path, c.status) for c in changes] == [("\\xff\\xfe.txt", "deleted")]
    changes[0].model_dump_json()  # what history can carry


async def test_empty_directories_come_along_and_come_back(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / "logs" / "deep").mkdir(parents=True)
    (source / "also").mkdir()
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    copied = root_of(settings)
    assert (copied / "logs" / "deep").is_dir()
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copied / "also").rmdir()
    async with open_copy(store, settings, RUN, contract, base):
        assert (copied / "also").is_dir()
        assert (copied / "logs" / "deep").is_dir()


async def test_an_empty_directory_is_not_made_through_a_link(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (source / "logs" / "deep").mkdir(parents=True)
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    copied = root_of(settings)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copied / "logs" / "deep").rmdir()
        (copied / "logs").rmdir()
        (copied / "logs").symlink_to(outside)
        head, _ = await copy.snapshot("link")
        copy.begin_change()
    async with open_copy(store, settings, RUN, contract, head):
        assert (copied / "logs").is_symlink()
    assert list(outside.iterdir()) == []


async def test_nested_repositories_keep_their_files(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    for name in ("lib", "lib/deeper", "unborn", "hollow"):
        (source / name).mkdir(parents=True, exist_ok=True)
        git(source / name, "init", "-q")
        if name != "hollow":
            (source / name / "file").write_text(name)
    git(source / "lib", "add", "file")
    git(source / "lib", "commit", "-q", "-m", "inner")
    (source / "lib" / "uncommitted").write_text("x")
    base = await begin(store, settings, contract_for(source))
    assert await names(store, base) == [
        "README.md", "app.py", "lib/deeper/file", "lib/file", "lib/uncommitted", "unborn/file",
    ]  # fmt: skip
    assert not list(root_of(settings).rglob(".git"))


async def test_a_submodule_checkout_keeps_its_files(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "part").write_text("part")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "x")
    git(source, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    git(source, "commit", "-q", "-m", "submodule")
    base = await begin(store, settings, contract_for(source))
    assert "sub/part" in await names(store, base)


async def test_a_repository_that_the_agent_makes_loses_nothing(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    for step in range(3):
        async with open_copy(store, settings, RUN, contract, base) as copy:
            copy.begin_change()
            if step == 0:
                git(copy.root, "init", "-q", ".")
                git(copy.root, "init", "-q", "pkg")
            (copy.root / "pkg" / f"file{step}").write_text("x")
            if step == 1:
                git(copy.root / "pkg", "add", "-A")
                git(copy.root / "pkg", "commit", "-q", "-m", "inner")
            base, changes = await copy.snapshot("step")
            assert [c.path for c in changes] == [f"pkg/file{step}"]
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "pkg" / "file0").unlink()
    async with open_copy(store, settings, RUN, contract, base) as copy:
        assert (copy.root / "pkg" / "file0").exists()


async def test_tracked_files_are_kept_even_if_ignored(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("build/\n*.log\n")
    for name in (
        "build/keep.txt",
        "build/junk.txt",
        "node_modules/vendored.js",
        "__pycache__/x.pyc",
    ):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(name)
    git(source, "add", "-f", "build/keep.txt", "node_modules/vendored.js")
    git(source, "commit", "-q", "-m", "tracked though ignored")
    (source / "build" / "pipe").touch()
    git(source, "add", "-f", "build/pipe")
    (source / "build" / "pipe").unlink()
    os.mkfifo(source / "build" / "pipe")
    base = await begin(store, settings, contract_for(source))
    assert await names(store, base) == [
        ".gitignore", "README.md", "app.py", "build/keep.txt", "node_modules/vendored.js",
    ]  # fmt: skip
    assert (root_of(settings) / "build" / "junk.txt").read_text() == "build/junk.txt"


async def test_a_folder_of_a_repository_obeys_the_ignore_files_above_it(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("*.log\n/packages/one/dist\n/dist\npackages/*/out/\n")
    (source / ".git" / "info").mkdir(exist_ok=True)
    (source / ".git" / "info" / "exclude").write_text("private.txt\n")
    one = source / "packages" / "one"
    for name in ("code.py", "x.log", "dist/a", "out/b", "private.txt", "src/dist/c"):
        (one / name).parent.mkdir(parents=True, exist_ok=True)
        (one / name).write_text(name)
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "one")
    base = await begin(store, settings, contract_for(one))
    assert await names(store, base) == ["code.py", "src/dist/c"]


async def test_a_repository_above_that_tracks_nothing_here_is_not_asked(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("*\n")  # a home directory under version control
    project = source / "project"
    project.mkdir()
    (project / "code.py").write_text("x")
    base = await begin(store, settings, contract_for(project))
    assert await names(store, base) == ["code.py"]


async def test_a_linked_work_tree(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    git(source, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    base = await begin(store, settings, contract_for(tmp_path / "linked"))
    assert await names(store, base) == ["README.md", "app.py"]


async def test_excluded_paths_stay_behind(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / ".gitignore").write_text("cache/\n!big/\n")
    for name in ("big/data", "cache/a/1", "cache/b/2", "sp ace[1]/x"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    git(source, "add", "big/data")
    git(source, "commit", "-q", "-m", "tracked")
    contract = contract_for(source, workspace={"exclude": ["big", "cache/a", "sp ace[1]"]})
    base = await begin(store, settings, contract)
    assert await names(store, base) == [".gitignore", "README.md", "app.py"]
    assert not (root_of(settings) / "big").exists()
    assert not (root_of(settings) / "cache" / "a").exists()
    assert (root_of(settings) / "cache" / "b" / "2").exists()


async def test_a_data_directory_inside_the_source_is_not_imported(
    store: SnapshotStore, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    base = await begin(store, settings, contract_for(tmp_path))
    assert await names(store, base) == ["file"]
    assert not (root_of(settings) / "data").exists()


async def test_a_source_that_is_not_there_is_named(
    store: SnapshotStore, settings: Settings, tmp_path: Path
) -> None:
    code, message = await code_of(store, settings, source=tmp_path / "nowhere")
    assert code == "SourceNotFound"
    assert "nowhere" in message
    (tmp_path / "file").write_text("x")
    code, message = await code_of(store, settings, source=tmp_path / "file")
    assert (code, "not a directory" in message) == ("SourceNotFound", True)
    code, message = await code_of(store, settings, source=Path("relative"))
    assert (code, "absolute" in message) == ("SourceNotFound", True)


PLANTED = """
[core]
    fsmonitor = {mark}
    hooksPath = {hooks}
    pager = {mark}
[filter "evil"]
    clean = {mark}
    smudge = {mark}
    process = {mark}
    required = true
[diff "evil"]
    textconv = {mark}
    command = {mark}
[merge "evil"]
    driver = {mark}
[gpg]
    program = {mark}
[commit]
    gpgSign = true
"""


def plant(folder: Path, mark: Path, seen: Path) -> None:
    """Everything by which a repository makes a careless git run a program."""
    mark.write_text(f'#!/bin/sh\necho "$0 $@" >> {seen}\ncat\n')
    mark.chmod(0o755)
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-checkout", "post-index-change", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {seen}\n")
        (hooks / name).chmod(0o755)
    with open(folder / ".git" / "config", "a") as config:
        config.write(PLANTED.format(mark=mark, hooks=hooks))
    (folder / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")


async def test_nothing_planted_in_a_source_or_copy_runs(
    store: SnapshotStore, settings: Settings, source: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    plant(source, tmp_path / "mark", seen)
    contract = contract_for(source)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        git(copy.root, "init", "-q")
        plant(copy.root, tmp_path / "mark2", seen)
        (copy.root / "app.py").write_text("ONE\ntwo\n")
        head, _ = await copy.snapshot("change")
        await store.diff(base, head, 1000)
        await store.patch(base, head)
        await store.merge(base, head, head)
        copy.begin_change()
        (copy.root / "app.py").write_text("half")
    async with open_copy(store, settings, RUN, contract, head):
        pass
    assert not seen.exists()
    careless(source, "add", "-A")
    careless(source, "update-ref", "refs/heads/x", "HEAD")
    assert "mark" in seen.read_text()
    assert "reference-transaction" in seen.read_text()


def careless(folder: Path, *args: str) -> None:
    """The control: a user's own git runs what is planted, and may fail over it."""
    subprocess.run(["git", *args], cwd=folder, capture_output=True, check=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_unreadable_file_is_named(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / "closed.txt").write_text("x")
    (source / "closed.txt").chmod(0)
    code, message = await code_of(store, settings, source=source)
    assert code == "SourceUnreadable"
    assert "closed.txt" in message
