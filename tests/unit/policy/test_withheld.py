"""What was found before is never taken for what is there now."""

import os
import time
from pathlib import Path

import pytest

from io_harness.activities import stamps, withheld
from io_harness.activities.withheld import WithheldFiles
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Layer, Rule

SETTLED_SECONDS = 0.05


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each folder that is listed."""
    folders: list[str] = []
    really = withheld._listed
    monkeypatch.setattr(
        withheld, "_listed", lambda root, at, *rest: folders.append(at) or really(root, at, *rest)
    )
    monkeypatch.setattr(stamps, "_SETTLED_NS", SETTLED_SECONDS * 1e9)
    return folders


def test_only_changed_folders_are_read_again_and_nothing_escapes(
    tmp_path: Path, listed: list[str]
) -> None:
    root, files = tmp_path / "root", WithheldFiles()
    (root / "old" / "deep").mkdir(parents=True)
    (root / "aside").mkdir()
    (root / "aside" / "harmless").write_text("x")

    def found() -> list[str]:
        listed.clear()
        return [str(path.relative_to(root)) for path in files.find(root, Policy())]

    def settle() -> None:
        time.sleep(SETTLED_SECONDS * 1.5)
        found()

    settle()
    assert found() == []
    assert listed == []
    (root / "old" / "deep" / ".env").write_text("x")
    assert found() == ["old/deep/.env"]
    assert listed == ["old/deep"]

    settle()
    (root / "aside" / "harmless").rename(root / "aside" / "id_rsa")
    assert found() == ["aside/id_rsa", "old/deep/.env"]

    settle()
    before = (root / "old").stat()
    (root / "old" / "new").mkdir()
    (root / "old" / "new" / "key.pem").write_text("x")
    os.utime(root / "old", ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(root / "old" / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    everything = ["aside/id_rsa", "old/deep/.env", "old/new/key.pem"]
    assert found() == everything

    settle()
    (root / "old").rename(root / "moved")
    assert found() == ["aside/id_rsa", "moved/deep/.env", "moved/new/key.pem"]
    (root / "moved").rename(root / "old")
    assert found() == everything

    settle()
    (root / "old" / "deep" / ".env").unlink()
    assert found() == ["aside/id_rsa", "old/new/key.pem"]


def test_another_policy_is_asked_about_everything(tmp_path: Path, listed: list[str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "notes.txt").write_text("x")
    files = WithheldFiles()
    assert files.find(tmp_path, Policy()) == ()
    time.sleep(SETTLED_SECONDS * 1.5)
    rule = Rule(effect="deny", act="read", target="notes.txt")
    stricter = Policy().merge(Layer(name="own", rules=(rule,)))
    assert files.find(tmp_path, stricter) == (tmp_path / "a" / "notes.txt",)
    assert files.find(tmp_path, Policy()) == ()
