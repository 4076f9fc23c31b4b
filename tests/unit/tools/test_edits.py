"""Edits around the file itself: links, owners, versions, sizes, several files at once."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.gate import Gate, Refused
from io_harness.activities.tools import loading
from io_harness.activities.tools.beneath import Beneath
from io_harness.activities.tools.context import AsksNeeded
from io_harness.activities.tools.errors import (
    AlreadyExists,
    BrokenLink,
    IsADirectory,
    NoMatch,
    NotADirectory,
    NotARegularFile,
    NotFound,
    OutsideWorkspace,
    StaleFile,
    TooLarge,
    ToolError,
)
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.workflows.payloads import Grant, arguments_digest
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Layer, Rule
from tests.unit.tools.conftest import Call, make_context

TWO = """\
--- a/one
+++ b/one
@@ -1 +1 @@
-1
+one
--- a/two
+++ b/two
@@ -1 +1 @@
-2
+two
"""


async def test_a_link_inside_is_followed_and_stays(root: Path, call: Call) -> None:
    (root / "d").mkdir()
    (root / "d/real").write_text("a\n")
    (root / "link").symlink_to("d/real")
    await call("edit_file", path="link", old="a", new="b")
    assert (root / "link").is_symlink()
    assert (root / "d/real").read_text() == "b\n"
    (root / "absolute").symlink_to(root / "d/real")
    await call("write_file", path="absolute", content="c\n")
    assert (root / "d/real").read_text() == "c\n"


@pytest.mark.parametrize("tool", ["edit_file", "write_file"])
async def test_a_link_outside_is_refused(tool: str, root: Path, tmp_path: Path, call: Call) -> None:
    outside = tmp_path / "outside"
    outside.write_text("a\n")
    (root / "link").symlink_to("../outside")
    (root / "dir").symlink_to(tmp_path)
    arguments = {"old": "a", "new": "b"} if tool == "edit_file" else {"content": "b\n"}
    for path in ("link", "dir/outside", "dir/new"):
        with pytest.raises(OutsideWorkspace):
            await call(tool, path=path, **arguments)
    assert outside.read_text() == "a\n"
    assert not (tmp_path / "new").exists()
    (root / "link").unlink()
    (root / "link").write_text("a\n")  # the control: without the link the same call works
    await call(tool, path="link", **arguments)
    assert (root / "link").read_text() == "b\n"


async def test_a_hard_link_to_an_outside_file_asks_and_is_cut(
    root: Path, tmp_path: Path, data_dir: Path, call: Call
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("a\n")
    os.link(outside, root / "f")
    arguments: dict[str, JsonValue] = {"path": "f", "old": "a", "new": "b"}
    with pytest.raises(AsksNeeded, match="read f"):
        await call("edit_file", **arguments)
    assert outside.read_text() == "a\n"
    granted = Gate(
        Policy(preset="unattended"),
        [Grant(of="arguments", digest=arguments_digest(arguments))],
    )
    context = replace(make_context(root, data_dir, "edit_file", arguments), gate=granted)
    await ToolRegistry().get("edit_file").call(arguments, context)
    assert outside.read_text() == "a\n"
    assert (root / "f").read_text() == "b\n"


async def test_dangling_and_looping_links(root: Path, call: Call) -> None:
    (root / "dangling").symlink_to("gone/file")
    (root / "loop").symlink_to("loop")
    with pytest.raises(BrokenLink, match="gone/file"):
        await call("edit_file", path="dangling", old="a", new="b")
    with pytest.raises(BrokenLink, match="40 links"):
        await call("edit_file", path="loop", old="a", new="b")
    await call("write_file", path="dangling", content="x")
    assert (root / "gone/file").read_text() == "x"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
async def test_owner_and_attributes_are_kept(root: Path, call: Call) -> None:
    file = root / "f"
    file.write_text("a\n")
    os.chown(file, 12345, 54321)
    file.chmod(0o4751)
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    await call("edit_file", path="f", old="a", new="b")
    status = file.stat()
    assert (status.st_uid, status.st_gid) == (12345, 54321)
    assert stat.S_IMODE(status.st_mode) == 0o4751
    assert os.getxattr(file, "user.note") == b"kept"


async def test_an_old_version_is_refused(root: Path, call: Call) -> None:
    file = root / "f"
    file.write_text("a\n")
    version = loading.version_of(b"a\n")
    with pytest.raises(StaleFile, match="read it again"):
        await call("write_file", path="f", content="x\n", if_version="0123456789")
    assert file.read_text() == "a\n"
    done = await call("write_file", path="f", content="b\n", if_version=version)
    assert loading.version_of(b"b\n") in done.text
    with pytest.raises(StaleFile):
        await call("edit_file", path="f", old="b", new="c", if_version=version)


def test_a_file_that_changes_under_the_edit_is_stale(root: Path) -> None:
    (root / "f").write_text("a\n")
    with Beneath(root).place("f") as place:
        status = place.regular()
        (root / "f").write_text("changed meanwhile\n")
        with pytest.raises(StaleFile):
            place.replace(b"b\n", status)
        with pytest.raises(StaleFile):
            place.remove(status)
    assert (root / "f").read_text() == "changed meanwhile\n"
    with Beneath(root).place("new") as place:
        (root / "new").write_text("appeared\n")
        with pytest.raises(StaleFile):
            place.replace(b"b\n", None)
    assert (root / "new").read_text() == "appeared\n"
    assert sorted(os.listdir(root)) == ["f", "new"]


def test_a_parent_swapped_for_a_link_leads_nowhere(root: Path, tmp_path: Path) -> None:
    (root / "d").mkdir()
    (root / "d/f").write_text("a\n")
    target = tmp_path / "target"
    target.mkdir()
    with Beneath(root).place("d/f") as place:
        status = place.regular()
        (root / "d").rename(root / "moved")
        (root / "d").symlink_to(target)
        place.replace(b"b\n", status)
    assert (root / "moved/f").read_text() == "b\n"
    assert list(target.iterdir()) == []


async def test_too_large(root: Path, call: Call) -> None:
    (root / "f").write_text("a\n")
    os.truncate(root / "f", loading.EDIT_BYTES + 1)
    with pytest.raises(TooLarge, match="10,485,761 bytes"):
        await call("edit_file", path="f", old="a", new="b")
    with pytest.raises(TooLarge):
        await call("write_file", path="g", content="x" * (loading.EDIT_BYTES + 1))
    assert not (root / "g").exists()


async def test_other_kinds_of_entries(root: Path, call: Call) -> None:
    os.mkfifo(root / "fifo")
    (root / "dir").mkdir()
    (root / "file").write_text("a")
    for path, error in (
        ("fifo", NotARegularFile),
        ("dir", IsADirectory),
        (".", IsADirectory),
        ("file/below", NotADirectory),
    ):
        with pytest.raises(error):
            await call("write_file", path=path, content="x")
        with pytest.raises(error):
            await call("edit_file", path=path, old="a", new="x")
    with pytest.raises(NotFound):
        await call("edit_file", path="none", old="a", new="x")


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (TWO.replace("-2\n", "-3\n"), "no_match"),
        (TWO + "--- a/three\n+++ b/three\n@@ -1 +1 @@\n-3\n+4\n", "not_found"),
        (TWO + "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-1\n+4\n", "invalid_patch"),
        (TWO + "--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+4\n", "outside_workspace"),
        (TWO.replace("+two", "+日"), "not_encodable"),
    ],
)
async def test_a_patch_that_fails_anywhere_changes_nothing(
    broken: str, code: str, root: Path, call: Call
) -> None:
    before = {"one": b"1\n", "two": b"2\n\xe9\n"}
    for name, data in before.items():
        (root / name).write_bytes(data)
    with pytest.raises(ToolError) as refusal:
        await call("apply_patch", patch=broken)
    assert refusal.value.code == code
    assert {p.name: p.read_bytes() for p in root.iterdir()} == before
    await call("apply_patch", patch=TWO)  # the control
    assert (root / "one").read_bytes() == b"one\n"
    assert (root / "two").read_bytes() == b"two\n\xe9\n"


async def test_a_write_that_fails_half_way_is_undone(
    root: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "one").write_text("1\n")
    (root / "two").write_text("2\n")
    replace = os.replace
    calls = 0

    def second_fails(*args: object, **more: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")
        replace(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", second_fails)
    with pytest.raises(ToolError, match="No space left"):
        await call("apply_patch", patch=TWO)
    assert {p.name: p.read_text() for p in root.iterdir()} == {"one": "1\n", "two": "2\n"}


GIT_PATCH = """\
From 0123 Mon Sep 17 00:00:00 2001
Subject: [PATCH] several things

---
diff --git a/old name b/new/name
similarity index 50%
rename from old name
rename to new/name
--- a/old name
+++ b/new/name
@@ -1,2 +1,2 @@
-a
+A
 b
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git "a/\\303\\274.sh" "b/\\303\\274.sh"
new file mode 100755
--- /dev/null
+++ "b/\\303\\274.sh"
@@ -0,0 +1 @@
+#!/bin/sh
diff --git a/run b/run
old mode 100644
new mode 100755
diff --git a/moved.bin b/kept.bin
similarity index 100%
rename from moved.bin
rename to kept.bin
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
--\x20
2.39.0
"""


async def test_renames_deletes_adds_and_modes(root: Path, call: Call) -> None:
    (root / "old name").write_bytes(b"a\r\nb\r\n")
    (root / "old name").chmod(0o750)
    (root / "gone").write_text("x\n")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "moved.bin").write_bytes(b"\0\1\2")
    await call("apply_patch", patch=GIT_PATCH)
    files = {str(p.relative_to(root)): p for p in root.rglob("*") if p.is_file()}
    assert {name: path.read_bytes() for name, path in files.items()} == {
        "new/name": b"A\r\nb\r\n",
        "ü.sh": b"#!/bin/sh\n",
        "run": b"#!/bin/sh\n",
        "kept.bin": b"\0\1\2",
        "empty": b"",
    }
    assert stat.S_IMODE(files["new/name"].stat().st_mode) == 0o750
    assert files["ü.sh"].stat().st_mode & 0o100
    assert files["run"].stat().st_mode & 0o100


async def test_v4a_over_several_files(root: Path, call: Call) -> None:
    (root / "a").write_text("1\n2\n")
    (root / "b").write_text("x\n")
    patch = (
        "*** Begin Patch\n*** Update File: a\n*** Move to: c/a\n@@\n 1\n-2\n+3\n\n"
        "*** Delete File: b\n*** Add File: d\n+new\n+file\n*** End Patch\n"
    )
    done = await call("apply_patch", patch=patch)
    assert done.text == "moved a to c/a\ndeleted b\nadded d"
    assert (root / "c/a").read_text() == "1\n3\n"
    assert (root / "d").read_text() == "new\nfile\n"
    assert sorted(p.name for p in root.iterdir()) == ["c", "d"]


async def test_a_patch_never_goes_over_what_is_there(root: Path, call: Call) -> None:
    (root / "a").write_text("1\n")
    (root / "b").write_text("2\n")
    move = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"
    with pytest.raises(AlreadyExists):
        await call("apply_patch", patch=move)
    delete = "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n"
    with pytest.raises(NoMatch):
        await call("apply_patch", patch=delete)
    assert (root / "a").read_text() == "1\n"
    assert (root / "b").read_text() == "2\n"


async def test_every_file_of_a_patch_is_asked_about_together(root: Path, call: Call) -> None:
    (root / "one").write_text("1\n")
    (root / "two").write_text("2\n")
    with pytest.raises(AsksNeeded) as asked:
        await call("apply_patch", Policy(preset="careful"), patch=TWO)
    assert [r.target for r in asked.value.requests] == ["one", "two"]
    assert "-1\n+one" in asked.value.requests[0].preview
    denying = Policy(
        preset="unattended",
        layers=(Layer(name="mine", rules=(Rule(effect="deny", act="write", target="two"),)),),
    )
    with pytest.raises(Refused):
        await call("apply_patch", denying, patch=TWO)
    assert (root / "one").read_text() == "1\n"


async def test_the_policy_sees_the_resolved_path(root: Path, call: Call) -> None:
    (root / "secret").mkdir()
    (root / "secret/f").write_text("a\n")
    (root / "harmless").symlink_to("secret/f")
    denying = Policy(
        preset="unattended",
        layers=(Layer(name="mine", rules=(Rule(effect="deny", act="write", target="secret/**"),)),),
    )
    with pytest.raises(Refused, match="secret/f"):
        await call("edit_file", denying, path="harmless", old="a", new="b")
    await call("edit_file", path="harmless", old="a", new="b")


async def test_an_edit_of_an_unreadable_file_tells_nothing_of_it(root: Path, call: Call) -> None:
    (root / ".env").write_text("KEY=abc\n")
    with pytest.raises(Refused):
        await call("edit_file", path=".env", old="KEY=", new="X=")
    patch = "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-KEY=\n+X=\n"
    with pytest.raises(Refused):
        await call("apply_patch", patch=patch)
