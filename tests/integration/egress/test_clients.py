"""Real programs through the proxy: the table of `client_cases`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .client_cases import CASES, ClientCase
from .namespaces import in_new, why_not

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    command = in_new(sys.executable, "-m", "tests.integration.egress.client_world")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_program_gets_what_the_rules_allow(case: ClientCase, outcomes: dict[str, Any]) -> None:
    if shutil.which(case.command[0]) is None:
        pytest.skip(f"{case.command[0]} is not installed")
    outcome = outcomes[case.name]
    assert (outcome["code"] == 0) is case.succeeds, outcome
    reasons = {reason for allowed, reason, *_ in outcome["rows"] if not allowed}
    if case.succeeds:
        assert "hello" in outcome["out"] or "refs/heads/main" in outcome["out"], outcome
        # git asks without credentials first where a proxy wants some.
        assert reasons <= {"bad_token"}, outcome
        ways = {via for allowed, _, via, *_ in outcome["rows"] if allowed}
        captured = {"captured_http", "captured_tls"}
        assert (ways <= captured) if case.mode == "captured" else not (ways & captured), outcome
    else:
        assert reasons == ({case.reason} if case.reason else set()), outcome
        assert "hello" not in outcome["out"], outcome
