from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.prices import price_of
from io_harness.activities.providers.registry import catalogue_of
from io_harness.cli import task
from io_harness.contract_file import ContractError
from io_harness.workflows.contract import Apply, Model

FILE = """\
goal: from the file
workspace: {kind: directory, path: .}
verification: {kind: command, run: pytest, seconds: 5}
budget: {steps: 3, tokens: 1000}
model: {provider: anthropic, name: one, options: {temperature: 0.5}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "task.yaml"
    path.write_text(FILE)
    return path


def test_options_win_over_the_file(file: Path) -> None:
    contract = task.build(file, {"goal": "from the option"}, ["budget.steps=7"])
    assert contract.goal == "from the option"
    assert (contract.budget.steps, contract.budget.tokens) == (7, 1000)


def test_another_provider_replaces_the_whole_model(file: Path) -> None:
    contract = task.build(file, {"model": task.model_fields("openai/two")}, [])
    assert contract.model.options.temperature is None


def test_another_model_of_the_provider_keeps_its_options(file: Path) -> None:
    contract = task.build(file, {"model": task.model_fields("anthropic/two")}, [])
    assert (contract.model.name, contract.model.options.temperature) == ("two", 0.5)


def test_without_a_file_the_current_directory_is_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    contract = task.build(None, {"goal": "g", "model": task.model_fields("anthropic/one")}, [])
    assert contract.workspace.model_dump()["path"] == str(tmp_path)
    assert contract.verification.kind == "none"


def test_a_setting_names_its_field_when_it_is_wrong(file: Path) -> None:
    with pytest.raises(ContractError, match=r"budget\.usd: -1: should be greater than 0"):
        task.build(file, {}, ["budget.usd=-1"])


@pytest.mark.parametrize("setting", ["budget.steps", "goal: x", "goal=[1"])
def test_a_setting_that_is_none(file: Path, setting: str) -> None:
    with pytest.raises(ContractError, match="--set"):
        task.build(file, {}, [setting])


@pytest.mark.parametrize("usual", task.USUAL_MODELS, ids=lambda usual: usual.name)
def test_the_usual_models_have_a_known_price(usual: task.UsualModel) -> None:
    """So that a budget in USD holds, and a name that its vendor no longer lists is noticed."""
    model = Model(provider=usual.provider, name=usual.name)
    assert price_of(model, catalogue_of(model)) is not None


def test_the_usual_model_follows_from_the_key_that_is_there() -> None:
    assert task.usual_model({"OPENAI_API_KEY": "x"})["provider"] == "openai-responses"
    with pytest.raises(task.NoModel, match="--model provider/name"):
        task.usual_model({"OPENAI_API_KEY": ""})


@pytest.mark.parametrize("text", ["gpt", "/x", "openai/"])
def test_a_model_that_is_none(text: str) -> None:
    with pytest.raises(ContractError, match="provider/name"):
        task.model_fields(text)


def test_a_model_name_may_hold_slashes() -> None:
    assert task.model_fields("openrouter/a/b") == {"provider": "openrouter", "name": "a/b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apply", {"mode": "apply"}),
        ("branch", {"mode": "branch"}),
        ("branch:fix/it", {"mode": "branch", "name": "fix/it"}),
        ("patch:out.diff", {"mode": "patch", "path": "out.diff"}),
    ],
)
def test_ways_to_land(text: str, expected: dict[str, str]) -> None:
    assert task.landing_fields(text) == expected


@pytest.mark.parametrize("text", ["", "patch", "push", "apply:x"])
def test_ways_that_are_none(text: str) -> None:
    with pytest.raises(ContractError, match="--land"):
        task.landing_fields(text)


@pytest.mark.parametrize(
    ("flags", "settings", "told"),
    [
        ({"goal": ""}, [], r"--goal: goal:"),
        ({"verification": {"kind": "command", "run": ""}}, [], r"--verify: verification\.run:"),
        ({}, ["budget.steps=none"], r"--set budget\.steps=none: budget\.steps:"),
        ({}, ["budget.stepz=1"], r"--set budget\.stepz=1: budget\.stepz: unknown field"),
        ({}, ["budget={steps: 0}"], r"--set budget=\{steps: 0\}: budget\.steps:"),
    ],
)
def test_a_wrong_option_is_not_blamed_on_the_file(
    file: Path, flags: dict[str, JsonValue], settings: list[str], told: str
) -> None:
    with pytest.raises(ContractError, match=told) as caught:
        task.build(file, flags, settings)
    assert "with the options given" in str(caught.value)
    assert "line " not in str(caught.value)


def test_a_wrong_field_of_the_file_is_blamed_on_its_line(file: Path) -> None:
    file.write_text(FILE.replace("tokens: 1000", "tokens: none"))
    with pytest.raises(ContractError, match=r"line 4, budget\.tokens"):
        task.build(file, {"goal": "g"}, ["budget.steps=7"])


def test_who_is_asked_about_a_landing_may_be_set_alone(file: Path) -> None:
    contract = task.build(file, {}, ["landing.approve=ask"])
    assert contract.landing == Apply(approve="ask")
