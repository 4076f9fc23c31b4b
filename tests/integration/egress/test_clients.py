"""Real programs through the proxy: the table of `client_cases`."""

import shutil
from typing import Any

import pytest

from .client_cases import CASES, ClientCase
from .conftest import SECONDS, Table
from .namespaces import why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.timeout(SECONDS + 50),
]


@pytest.fixture(scope="module")
def outcomes(table: Table) -> dict[str, Any]:
    return table("client_world")


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
