"""Every backend against every attack, as this user and, when that is root, as an ordinary one."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from io_harness import sandbox

from .expected import expected_breaches
from .inside import CASES, load
from .suite import Outcomes, control, held, unproven

ROOT = Path(__file__).parents[2]
ORDINARY_UID = 61_000
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attacks are Linux'")


@functools.cache
def proven() -> Outcomes:
    load()
    return control()


def differences(backend: str, outcomes: Outcomes, *, root: bool) -> dict[str, str]:
    expected = expected_breaches(backend, root=root)
    wrong: dict[str, str] = {}
    for name, report in outcomes.items():
        wanted = "breached" if name in expected else "held"
        possible = proven()[name]["outcome"] == "breached"
        if report["outcome"] != wanted and (possible or report["outcome"] != "held"):
            wrong[name] = f"{report['outcome']}, expected {wanted}: {report['detail']}"
    return wrong


def test_there_are_enough_cases_of_each_kind() -> None:
    load()
    assert len(CASES) >= 120
    kinds = [case.kind for case in CASES.values()]
    assert all(kinds.count(kind) >= 10 for kind in set(kinds))


def test_every_attack_succeeds_where_nothing_holds_it() -> None:
    assert unproven(proven()) == {}


@pytest.mark.parametrize("backend", [n for n in sandbox.backend_names() if n.startswith("linux-")])
async def test_backend(backend: str) -> None:
    if reason := sandbox.objection(backend):
        pytest.skip(reason)
    outcomes = await held(backend)
    assert differences(backend, outcomes, root=os.geteuid() == 0) == {}


def as_ordinary_user(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        user=ORDINARY_UID,
        group=ORDINARY_UID,
        extra_groups=[],
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
    )


def ordinary_python() -> str:
    """A Python that an ordinary user can run."""
    check = "import sys; assert sys.version_info >= (3, 11); import io_harness.sandbox"
    for python in filter(None, (sys.executable, shutil.which("python3", path=os.defpath))):
        try:
            if as_ordinary_user(python, "-c", check).returncode == 0:
                return python
        except PermissionError:
            continue
    pytest.skip("no Python of 3.11 or newer can be run by an ordinary user")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user")
def test_backends_as_an_ordinary_user() -> None:
    done = as_ordinary_user(ordinary_python(), "-m", "tests.escape", "--no-control")
    assert done.returncode == 0, done.stderr
    runs: dict[str, Outcomes] = {}
    for line in done.stdout.splitlines():
        report = json.loads(line)
        runs.setdefault(report["backend"], {})[report["case"]] = report
    assert runs
    for backend, outcomes in runs.items():
        assert differences(backend, outcomes, root=False) == {}, backend
