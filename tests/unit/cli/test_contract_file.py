"""Each way in which a contract file is wrong has one line that names the field and says what to do."""

import json
from pathlib import Path

import pytest

from io_harness.contract_file import ContractError, read_contract

GOOD = """\
goal: make the tests pass
workspace:
  kind: directory
  path: src
verification:
  kind: command
  run: pytest -q
budget:
  steps: 20
model:
  provider: anthropic
  name: claude-sonnet-4-5
"""


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


def written(folder: Path, text: str, name: str = "task.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    contract = read_contract(written(tmp_path, GOOD))
    assert contract.workspace.kind == "directory"
    assert contract.workspace.path == str(tmp_path / "src")


def test_the_same_contract_as_json(tmp_path: Path) -> None:
    contract = read_contract(written(tmp_path, GOOD))
    file = written(tmp_path, contract.model_dump_json(), "task.json")
    assert read_contract(file) == contract


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("steps: 20", "stepz: 20", "line 9, budget.stepz: unknown field; did you mean 'steps'?"),
        ("steps: 20", "steps: many", 'line 9, budget.steps: "many": should be a valid integer'),
        ("steps: 20", "steps: 0", "budget.steps: 0: should be greater than or equal to 1"),
        ("steps: 20", "usd: -1", "budget.usd: -1: should be greater than 0 (US dollars."),
        ("  run: pytest -q\n", "", "line 5, verification.run: required, and not given"),
        ("  run: pytest -q", "  run: []", "verification.run: []: should have at least 1 item"),
        ("kind: command", "kind: comand", "kind 'comand' is none of command, tests,"),
        ("kind: command", "kind: comand", "did you mean 'command'?"),
        ("  kind: command\n", "", "line 5, verification: needs 'kind', one of"),
        ("goal: make the tests pass", "goal: ''", 'goal: "": should have at least 1 character'),
        ("goal: make the tests pass\n", "", "goal: required, and not given"),
        ("budget:\n  steps: 20", "budget: 3", "budget: must be a mapping with the fields steps,"),
        ("budget:", "landing: {mode: push}\nbudget:", "mode 'push' is none of apply, branch, patch"),
        ("budget:", "nope: 1\nbudget:", "nope: unknown field; the fields here are goal,"),
        ("  path: src", "  path: [1]", "workspace.path: [1]: should be a string"),
        ("kind: directory\n  path: src", "kind: git\n  url: x", "use {'mode': 'branch'}"),
        ("steps: 20", "working_seconds: 99999999999999", "should be less than or equal to 315360"),
        ("run: pytest -q", 'run: "a\\0"', "verification.run: \"a\\u0000\": holds a NUL character"),
        ("  name: c", "  options: {temperature: 3}\n  name: c", "temperature: 3: should be less"),
        ("  name: c", "  options: {reasoning_effort: x}\n  name: c", "'minimal', 'low', 'medium'"),
    ],
)  # fmt: skip
def test_a_wrong_field(tmp_path: Path, before: str, after: str, expected: str) -> None:
    assert before in GOOD
    file = written(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(ContractError) as raised:
        read_contract(file)
    assert str(raised.value).startswith(f"{file} is not a valid contract (1 problem):\n  ")
    assert expected in str(raised.value)


def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "  api_key: sk-very-secret\n")
    with pytest.raises(ContractError, match=r"model\.api_key") as raised:
        read_contract(file)
    assert "very-secret" not in str(raised.value)
    assert "env:ANTHROPIC_API_KEY" in str(raised.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD.replace("20", "0").replace("kind: directory", "kind: folder"))
    with pytest.raises(ContractError, match="2 problems") as raised:
        read_contract(file)
    assert "budget.steps" in str(raised.value)
    assert "workspace: kind 'folder'" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("goal: [", "task.yaml", "task.yaml:1:8: not valid YAML"),
        ("goal: a\ngoal: b\n", "task.yaml", "task.yaml:2:1: not valid YAML: the key 'goal'"),
        ('{"goal": 1,}', "task.json", "task.json: not valid JSON"),
        ('{"goal": 1, "goal": 2}', "task.json", "the key 'goal' is given twice"),
        ("- goal", "task.yaml", 'must be a mapping of contract fields, not ["goal"]'),
        ("", "task.yaml", "must be a mapping of contract fields, not null"),
        (
            "a: &a [*a]",
            "task.yaml",
            "not valid YAML: more than 100,000 values, aliases written out",
        ),
        (BOMB, "task.yaml", "not valid YAML: more than 100,000 values, aliases written out"),
        ("#" * 2_000_001, "task.yaml", "has more than 2,000,000 bytes"),
    ],
)
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str, name: str, expected: str) -> None:
    with pytest.raises(ContractError) as raised:
        read_contract(written(tmp_path, text, name))
    assert expected in str(raised.value)


@pytest.mark.parametrize("path", ['"a\\0b"', "~no-such-user-here/x"])
def test_a_path_that_is_none(tmp_path: Path, path: str) -> None:
    with pytest.raises(ContractError, match=r"workspace\.path: .* is no path"):
        read_contract(written(tmp_path, GOOD.replace("path: src", f"path: {path}")))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"nowhere\.yaml: can't be read: No such file"):
        read_contract(tmp_path / "nowhere.yaml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ContractError, match="not UTF-8 text"):
        read_contract(file)


def test_a_policy_file_is_read_in(tmp_path: Path) -> None:
    written(tmp_path, json.dumps({"preset": "read-only"}), "policy.json")
    contract = read_contract(written(tmp_path, GOOD + "policy: policy.json\n"))
    assert not isinstance(contract.policy, str)
    assert contract.policy.preset == "read-only"


def test_a_policy_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"policy\.yaml: can't be read"):
        read_contract(written(tmp_path, GOOD + "policy: policy.yaml\n"))
