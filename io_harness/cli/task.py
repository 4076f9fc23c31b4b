"""From the options of `run` to a contract."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from io_harness.contract_file import ContractError, anchored, contract_fields, contract_from
from io_harness.documents import DocumentError, Place, parse
from io_harness.workflows.contract import TaskContract


class UsualModel(NamedTuple):
    """The model taken when none is named and its key is there."""

    variable: str
    provider: str
    name: str


USUAL_MODELS = (
    UsualModel("ANTHROPIC_API_KEY", "anthropic", "claude-sonnet-5-5"),
    UsualModel("OPENAI_API_KEY", "openai-responses", "gpt-5.5"),
    UsualModel("OPENROUTER_API_KEY", "openrouter", "anthropic/claude-sonnet-5.5"),
)


_OPTIONS = {
    "goal": "--goal",
    "verification": "--verify",
    "workspace": "--workspace",
    "model": "--model",
    "policy": "--policy",
    "landing": "--land",
}
"""Which option gives which section of the contract."""


class NoModel(ContractError):
    """No model is named, and no key of a known provider is there."""


def usual_model(environment: Mapping[str, str] = os.environ) -> dict[str, JsonValue]:
    """The first provider whose key is in the environment.

    Raises:
        NoModel: there is none.
    """
    for usual in USUAL_MODELS:
        if environment.get(usual.variable):
            return {"provider": usual.provider, "name": usual.name}
    names = ", ".join(usual.variable for usual in USUAL_MODELS)
    raise NoModel(f"no model is named and none of {names} is set; give --model provider/name")


def build(
    file: Path | None, flags: Mapping[str, JsonValue], settings: Sequence[str]
) -> TaskContract:
    """The contract of a file, of command-line options, or of both: options win.

    Args:
        flags: Contract fields from options, by section.
        settings: `field.path=value` each, the value in YAML; they win over all.

    Raises:
        ContractError: A field is wrong, or no model is known.
    """
    here = Path.cwd()
    fields, lines = contract_fields(file) if file else ({}, {})
    overrides: dict[str, JsonValue] = dict(flags)
    origins: dict[Place, int | str] = {**lines}
    for section, value in flags.items():
        origins |= dict.fromkeys(_places(value, (section,)), _OPTIONS[section])
    for setting in settings:
        place = _set(overrides, setting)
        origins |= dict.fromkeys(_places(_at(overrides, place), place), f"--set {setting}")
    merged = _merged(fields, anchored(overrides, here))
    if file is None:
        merged.setdefault("workspace", {"kind": "directory", "path": str(here)})
        merged.setdefault("verification", {"kind": "none"})
        if "model" not in merged:
            merged["model"] = usual_model()
    where = "the command line"
    if file is not None:
        where = f"{file} with the options given" if overrides else str(file)
    return contract_from(merged, where, origins)


def flag_fields(
    goal: str | None,
    verify: str | None,
    workspace: str | None,
    model: str | None,
    policy: str | None,
    land: str | None,
) -> dict[str, JsonValue]:
    """The contract's fields that options of `run` give; None where an option is absent.

    Raises:
        ContractError: a model or a landing is not written as it must be.
    """
    fields: dict[str, JsonValue] = {}
    if goal is not None:
        fields["goal"] = goal
    if verify is not None:
        fields["verification"] = {"kind": "command", "run": verify}
    if workspace is not None:
        fields["workspace"] = {"kind": "directory", "path": workspace}
    if model is not None:
        fields["model"] = model_fields(model)
    if policy is not None:
        fields["policy"] = policy
    if land is not None:
        fields["landing"] = landing_fields(land)
    return fields


def model_fields(text: str) -> dict[str, JsonValue]:
    """`provider/name` as the contract's section."""
    provider, slash, name = text.partition("/")
    if not slash or not provider or not name:
        raise ContractError(f"--model {text!r}: write it as provider/name")
    if provider == "replay":
        return {"provider": provider, "name": Path(name).stem, "base_url": name}
    return {"provider": provider, "name": name}


def landing_fields(text: str) -> dict[str, JsonValue]:
    """`apply`, `branch[:NAME]` or `patch:FILE` as the contract's section."""
    mode, _, rest = text.partition(":")
    match mode:
        case "apply" if not rest:
            return {"mode": "apply"}
        case "branch":
            return {"mode": "branch", "name": rest} if rest else {"mode": "branch"}
        case "patch" if rest:
            return {"mode": "patch", "path": rest}
        case _:
            raise ContractError(f"--land {text!r}: write apply, branch, branch:NAME or patch:FILE")


def _set(fields: dict[str, JsonValue], setting: str) -> Place:
    """Set the field, and say which it was."""
    path, equals, text = setting.partition("=")
    if not equals:
        raise ContractError(f"--set {setting!r}: write it as field=value, like budget.usd=1.5")
    try:
        value, _ = parse(text, f"--set {setting!r}")
    except DocumentError as error:
        raise ContractError(str(error)) from None
    *parents, last = path.strip().split(".")
    here = fields
    for parent in parents:
        below = here.get(parent)
        here[parent] = below = dict(below) if isinstance(below, dict) else {}
        here = below
    here[last] = value
    return (*parents, last)


def _at(fields: Mapping[str, JsonValue], place: Place) -> JsonValue:
    here: JsonValue = dict(fields)
    for part in place:
        assert isinstance(here, dict)
        here = here[str(part)]
    return here


def _places(value: JsonValue, place: Place) -> Iterator[Place]:
    """The place of a value and of all that is in it."""
    yield place
    match value:
        case dict():
            for key, inner in value.items():
                yield from _places(inner, (*place, key))
        case list():
            for index, inner in enumerate(value):
                yield from _places(inner, (*place, index))


def _merged(base: Mapping[str, JsonValue], over: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """`over` wins, section by section. A section of another kind takes the place of the whole."""
    result = dict(base)
    for key, value in over.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and not _replaces(before, value):
            result[key] = _merged(before, value)
        else:
            result[key] = value
    return result


def _replaces(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> bool:
    return any(
        tag in after and after[tag] != before.get(tag) for tag in ("kind", "mode", "provider")
    )
