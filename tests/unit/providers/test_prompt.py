"""The system prompt says what the contract says, and stays the same."""

from typing import Any

import pytest

from io_harness.activities.prompt import prompt_tokens, system_prompt
from io_harness.workflows.contract import TaskContract
from tests.unit.providers.conftest import READ_FILE


def contract(verification: dict[str, Any], **fields: object) -> TaskContract:
    return TaskContract.model_validate(
        {
            "goal": "g",
            "workspace": {"kind": "directory", "path": "/src"},
            "verification": verification,
            "model": {"provider": "anthropic", "name": "m"},
            **fields,
        }
    )


COMMAND: dict[str, Any] = {"kind": "command", "run": "pytest -q"}
CONTAINS: dict[str, Any] = {"kind": "file_contains", "path": "a.txt", "text": "hi"}


@pytest.mark.parametrize(
    ("verification", "told"),
    [
        (COMMAND, "`pytest -q` exits with 0"),
        ({"kind": "command", "run": ["make", "x y"]}, '`["make", "x y"]` exits with 0'),
        ({"kind": "tests", "files": {"t.py": "SECRET"}, "run": "pytest t.py"}, "you don't see"),
        (CONTAINS, "a.txt contains 'hi'"),
        ({"kind": "file_equals", "path": "a", "text": "x"}, "a is exactly 'x'"),
        ({"kind": "json_schema", "json_schema": {"type": "object"}}, '{"type": "object"}'),
        ({"kind": "all_of", "checks": [COMMAND, CONTAINS]}, "exits with 0 and a.txt contains"),
        ({"kind": "any_of", "checks": [COMMAND, CONTAINS]}, "exits with 0 or a.txt contains"),
        ({"kind": "none"}, "No automatic check follows"),
    ],
)
def test_the_criterion_is_told(verification: dict[str, Any], told: str) -> None:
    prompt = system_prompt(contract(verification))
    assert told in prompt
    assert "SECRET" not in prompt, "tests of the contract's own are hidden"


def test_the_answer_s_schema_is_told() -> None:
    assert '{"type": "string"}' in system_prompt(
        contract(COMMAND, output_schema={"type": "string"})
    )


def test_tokens_are_bounded_from_above() -> None:
    task = contract(COMMAND)
    bound = prompt_tokens(task, (READ_FILE,))
    assert bound >= len(system_prompt(task).encode())
    assert bound > prompt_tokens(task, ())


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("careful", "writing files: a human is asked first"),
        ("unattended", "writing files: allowed"),
        ("read-only", "running commands: refused"),
    ],
)
def test_the_prompt_says_what_the_policy_really_allows(policy: str, told: str) -> None:
    prompt = system_prompt(contract(COMMAND, policy=policy))
    assert told in prompt
    assert "network: refused" in prompt


def test_where_nobody_can_be_asked_the_prompt_says_refused() -> None:
    prompt = system_prompt(contract(COMMAND, approval={"seconds": 0}))
    assert "writing files: refused" in prompt


def test_the_sandboxs_limits_are_told() -> None:
    limits = {"limits": {"wall_seconds": 33, "memory_mb": 444}}
    prompt = system_prompt(contract(COMMAND, sandbox=limits))
    assert "33 s" in prompt
    assert "444 MiB" in prompt
