"""The macOS backend as far as it can be tested elsewhere: its profile, and the words around it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from io_harness.sandbox import NetHost, NetNone, Plan, protected_in
from io_harness.sandbox.backend import Stdio
from io_harness.sandbox.macos import sandbox_exec
from io_harness.sandbox.macos.profile import render

from .sbpl import Profile, parse

WORKSPACE = Path("/work/project")
TMP = Path("/tmp/private")


def plan(**fields: object) -> Plan:
    given: dict[str, object] = {
        "argv": ("make",),
        "cwd": WORKSPACE,
        "workspace": WORKSPACE,
        "read_only_roots": (Path("/tools"),),
        "writable_roots": (Path("/cache"),),
        "hidden": (WORKSPACE / "keys",),
        "protected": protected_in(WORKSPACE),
    }
    return Plan(**(given | fields))  # type: ignore[arg-type]


def profile(port: int | None = None, **fields: object) -> Profile:
    text, parameters = render(plan(**fields), TMP, port)
    return Profile(parse(text), parameters)


FILES = [
    ("file-read-data", "/usr/bin/make", True),
    ("file-read-data", "/Users/me/.ssh/id_ed25519", False),
    ("file-read-data", "/private/etc/master.passwd", False),
    ("file-read-data", "/tools/bin/tool", True),
    ("file-write-create", "/tools/bin/tool", False),
    ("file-read-data", "/work/project/src/main.py", True),
    ("file-write-data", "/work/project/src/main.py", True),
    ("file-write-create", "/work/project-sibling/x", False),
    ("file-read-data", "/work/project-sibling/x", False),
    ("file-write-create", "/work/other", False),
    ("file-write-create", "/cache/x", True),
    ("file-write-create", "/tmp/private/x", True),
    ("file-write-create", "/tmp/x", False),
    ("file-read-data", "/work/project/keys/a", False),
    ("file-write-create", "/work/project/keys/b", False),
    ("file-write-create", "/work/project/.git/hooks/pre-commit", False),
    ("file-write-data", "/work/project/.git/config", False),
    ("file-write-unlink", "/work/project/.git", False),
    ("file-write-create", "/work/project/.git/refs/heads/x", True),
    ("file-write-create", "/work/project/.envrc", False),
    ("file-write-create", "/work/project/.vscode/tasks.json", False),
    ("file-write-data", "/dev/null", True),
    ("network-outbound", "localhost:3128", False),
    ("mach-lookup", "com.apple.pasteboard.1", False),
    ("process-exec", "/work/project/run", True),
]


@pytest.mark.parametrize(("operation", "target", "allowed"), FILES)
def test_workspace_write(operation: str, target: str, allowed: bool) -> None:
    assert profile().allows(operation, target) is allowed


def test_read_only_mode_writes_nothing_in_the_workspace() -> None:
    assert not profile(mode="read_only").allows("file-write-data", "/work/project/src/main.py")
    assert profile(mode="read_only").allows("file-read-data", "/work/project/src/main.py")


def test_full_mode_still_protects_and_hides() -> None:
    full = profile(mode="full")
    assert full.allows("file-write-create", "/anywhere")
    assert not full.allows("file-write-create", "/work/project/.git/hooks/x")
    assert not full.allows("file-read-data", "/work/project/keys/a")


def test_network() -> None:
    assert not profile(net=NetNone()).allows("network-outbound", "example.org:443")
    door = profile(5000)
    assert door.allows("network-outbound", "localhost:5000")
    assert not door.allows("network-outbound", "localhost:5001")
    assert profile(net=NetHost()).allows("network-outbound", "example.org:443")


def test_no_path_can_become_a_rule() -> None:
    evil = Path('/work/a") (allow default) ("')
    text, parameters = render(plan(workspace=evil, cwd=evil), TMP, None)
    assert "allow default" not in text
    assert str(evil) in parameters.values()


def test_golden() -> None:
    text, parameters = render(plan(hidden=(), protected=()), TMP, 4000)
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert lines[-5:] == [
        '(allow file-read* (subpath (param "READ_3")))',
        '(allow file-write* (subpath (param "WRITE_0")))',
        '(allow file-write* (subpath (param "WRITE_1")))',
        '(allow file-write* (subpath (param "WRITE_2")))',
        '(allow network-outbound (remote ip "localhost:4000"))',
    ]
    assert parameters["READ_2"] == "/work/project"


RECORDER = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    -p) printf '%s' "$2" > "$RECORD/profile"; shift 2;;
    -D) printf '%s\\n' "$2" >> "$RECORD/parameters"; shift 2;;
    *) break;;
  esac
done
exec "$@"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the recorder is a shell script")
async def test_the_command_runs_behind_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = tmp_path / "sandbox-exec"
    recorder.write_text(RECORDER)
    recorder.chmod(0o755)
    monkeypatch.setattr(sandbox_exec, "PROGRAM", recorder)
    asked = Plan(
        argv=("sh", "-c", "echo here; exit 4"),
        cwd=tmp_path,
        workspace=tmp_path,
        env={"PATH": os.defpath, "RECORD": str(tmp_path), "TMPDIR": "/tmp"},
    )
    near, far = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    running = await sandbox_exec.SandboxExec().start(asked, Stdio(nothing, far, far))
    ended = await running.wait()
    await running.close()
    os.close(far)
    os.close(nothing)
    with os.fdopen(near, "rb") as output:
        assert output.read() == b"here\n"
    assert ended.code == 4
    given = dict(line.split("=", 1) for line in (tmp_path / "parameters").read_text().splitlines())
    recorded = Profile(parse((tmp_path / "profile").read_text()), given)
    assert recorded.allows("file-write-create", str(tmp_path.resolve() / "x"))
    assert not recorded.allows("file-write-create", "/etc/x")
