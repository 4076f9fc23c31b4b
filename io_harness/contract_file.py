"""Reads a contract from a YAML or JSON file, or says field by field what is wrong with it."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from io_harness.documents import DocumentError, Place, parse
from io_harness.policy_file import PolicyFileError, read_policy
from io_harness.workflows.contract import TaskContract, contract_schema

_TAGS = ("kind", "mode")  # discriminators of the contract's unions
_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)
_SHOWN_VALUE = 60
MAX_BYTES = 2_000_000
"""A workflow's input may not have more."""


class ContractError(Exception):
    """A contract can't be read or isn't valid. The message names file, field, value and remedy."""


def read_contract(file: Path) -> TaskContract:
    """Read and validate one contract file (`.json`, else YAML). Relative paths in it are relative to
    the file's own directory, and `policy` may name a policy file.

    Raises:
        ContractError: The file can't be read or parsed, or isn't a valid contract.
    """
    fields, lines = contract_fields(file)
    return contract_from(fields, str(file), lines)


def contract_fields(file: Path) -> tuple[dict[str, JsonValue], dict[Place, int]]:
    """A contract file's fields, not yet validated, and the line of each.

    Raises:
        ContractError: The file can't be read or parsed.
    """
    data, lines = _parse(file)
    if not isinstance(data, dict):
        raise ContractError(f"{file}: must be a mapping of contract fields, not {_show(data)}")
    return anchored(data, file.absolute().parent), lines


def contract_from(
    data: Mapping[str, JsonValue], where: str, origins: Mapping[Place, int | str] | None = None
) -> TaskContract:
    """Validate contract fields.

    Args:
        where: Names the origin of all in error messages.
        origins: The line of each field, or the option that gave it, where known.

    Raises:
        ContractError: With one line per wrong field.
    """
    try:
        return TaskContract.model_validate(data)
    except ValidationError as error:
        problems = _problems(error.errors(include_url=False), data)
    shown = [_line(path, what, origins or {}) for path, what in problems.items()]
    count = "1 problem" if len(shown) == 1 else f"{len(shown)} problems"
    raise ContractError("\n  ".join([f"{where} is not a valid contract ({count}):", *shown]))


def anchored(data: Mapping[str, JsonValue], folder: Path) -> dict[str, JsonValue]:
    """The same fields with file paths made absolute, as a worker has another current directory, and
    with a named policy file read.

    Raises:
        ContractError: The policy file can't be read, or isn't a valid policy.
    """
    result = dict(data)
    policy = result.get("policy")
    if isinstance(policy, str) and policy.endswith((".yaml", ".yml", ".json")):
        try:
            read = read_policy(_absolute(folder, "policy", policy))
        except PolicyFileError as error:
            raise ContractError(str(error)) from None
        result["policy"] = read.model_dump(mode="json", exclude_defaults=True)
    for section, key in (("workspace", "path"), ("landing", "path"), ("model", "base_url")):
        fields = result.get(section)
        if not isinstance(fields, dict) or not isinstance(value := fields.get(key), str):
            continue
        if key == "base_url" and (fields.get("provider") != "replay" or value[:8] == "package:"):
            continue
        absolute = _absolute(folder, f"{section}.{key}", value)
        result[section] = {**fields, key: str(absolute)}
    return result


def _absolute(folder: Path, field: str, path: str) -> Path:
    try:
        return (folder / Path(path).expanduser()).resolve()
    except (ValueError, RuntimeError, OSError) as error:
        raise ContractError(f"{field}: {_show(path)} is no path: {error}") from None


# --- parsing --------------------------------------------------------------------------------------


def _parse(file: Path) -> tuple[JsonValue, dict[Place, int]]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ContractError(f"{file}: can't be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise ContractError(f"{file}: has more than {MAX_BYTES:,} bytes, more than a run takes")
    try:
        return parse(text, str(file))
    except DocumentError as error:
        raise ContractError(str(error)) from None


# --- explaining -----------------------------------------------------------------------------------


def _problems(
    errors: Sequence[ErrorDetails], data: JsonValue | Mapping[str, JsonValue]
) -> dict[Place, str]:
    """One sentence per wrong field. Alternatives of a plain union are one problem; a list that is
    empty only because its items are wrong is none."""
    found: dict[Place, list[ErrorDetails]] = {}
    for error in errors:
        found.setdefault(_data_path(error, data), []).append(error)
    inner = {path[:n] for path in found for n in range(len(path))}
    schema = contract_schema()
    return {
        path: _explain(group, _schema_at(schema, path, data))
        for path, group in found.items()
        if not (path in inner and path and all(e["type"] == "too_short" for e in group))
    }


def _data_path(error: ErrorDetails, data: Any) -> Place:
    """Where in the file the error is: pydantic's location without the names of union members."""
    path: list[str | int] = []
    for number, part in enumerate(error["loc"]):
        last = number == len(error["loc"]) - 1
        if isinstance(data, Mapping):
            absent = part not in data
            if absent and (part in {data.get(tag) for tag in _TAGS} or not last):
                continue
            if absent and error["type"] != "missing":
                continue
            path.append(part)
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            path.append(part)
            data = data[part]
    return tuple(path)


def _explain(errors: Sequence[ErrorDetails], field: "_Field") -> str:
    error = errors[0]
    value, ctx = error["input"], error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            close = difflib.get_close_matches(str(error["loc"][-1]), field.siblings, n=1)
            hint = f"did you mean {close[0]!r}?" if close else ""
            return f"unknown field; {hint or 'the fields here are ' + ', '.join(field.siblings)}"
        case "missing":
            return f"required, and not given{field.remedy}"
        case "union_tag_not_found":
            return f"needs {ctx['discriminator']}, one of {field.tags}"
        case "union_tag_invalid":
            tag = ctx["tag"]
            expected = ctx["expected_tags"].replace("'", "").split(", ")
            close = difflib.get_close_matches(tag, expected, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            name = ctx.get("discriminator", "").strip("'")
            return f"{name} {tag!r} is none of {', '.join(expected)}{hint}"
        case "model_attributes_type" | "model_type":
            kind = f", with kind one of {field.tags}" if field.tags else ""
            fields = f" with the fields {', '.join(field.own)}" if field.own else ""
            return f"must be a mapping{kind or fields}, not {_show(value)}"
        case "value_error":
            whole = isinstance(value, Mapping)
            what = error["msg"].removeprefix("Value error, ")
            return what if whole else f"{_masked(error, value)}: {what}"
        case _:
            # Of a plain union, alternatives of another type say nothing when one has the right type.
            fitting = [e for e in errors if not e["type"].endswith("_type")] or errors
            what = " or ".join(dict.fromkeys(_wanted(e["msg"]) for e in fitting))
            return f"{_masked(error, value)}: should {what}{field.remedy}"


def _wanted(message: str) -> str:
    message = re.sub(r"^\w+ should |, unable to .*| after validation.*", "", message)
    return message.replace("valid tuple", "list").replace("valid string", "string")


def _masked(error: ErrorDetails, value: object) -> str:
    secret = any(_SECRET.search(str(part)) for part in error["loc"] if part != "[key]")
    return "(value not shown)" if secret else _show(value)


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_VALUE else text[: _SHOWN_VALUE - 1] + "…"


def _line(path: Place, what: str, origins: Mapping[Place, int | str]) -> str:
    name = "".join(f".{p}" if str(p).isidentifier() else f"[{_show(p)}]" for p in path).lstrip(".")
    longest = (path[:n] for n in range(len(path), 0, -1))
    match next((origins[place] for place in longest if place in origins), None):
        case int(line):
            at = f"line {line}, "
        case str(option):
            at = f"{option}: "
        case None:
            at = ""
    return f"{at}{name or 'contract'}: {what}"


# --- what the published schema says about a field ---------------------------------------------------


class _Field:
    """The schema's view of one place in the contract."""

    def __init__(self, own: Mapping[str, Any], parent: Mapping[str, Any]) -> None:
        self.siblings = list(parent.get("properties", {}))
        self.own = list(own.get("properties", {}))
        self.tags = ", ".join(own.get("discriminator", {}).get("mapping", {}))
        self.description = " ".join(str(own.get("description", "")).split())

    @property
    def remedy(self) -> str:
        return f" ({self.description.rstrip('.')})" if self.description else ""


def _schema_at(schema: dict[str, Any], path: Place, data: Any) -> _Field:
    here, parent = _resolve(schema, schema, data), {}
    for part in path:
        parent = here
        data = _item(data, part)
        if isinstance(part, int):
            here = _resolve(here.get("items", {}), schema, data)
        else:
            below = here.get("properties", {}).get(part) or here.get("additionalProperties")
            here = _resolve(below if isinstance(below, dict) else {}, schema, data)
    return _Field(here, parent)


def _item(data: Any, part: str | int) -> Any:
    if isinstance(data, Mapping):
        return data.get(part)
    return data[part] if isinstance(data, list) and isinstance(part, int) else None


def _resolve(node: Mapping[str, Any], root: dict[str, Any], data: Any) -> dict[str, Any]:
    """Follow references, and a union's tag where the data has one; the outer description wins."""
    described = {"description": node["description"]} if "description" in node else {}
    if "$ref" in node:
        target = root["$defs"][node["$ref"].rpartition("/")[2]]
        return {**_resolve(target, root, data), **described}
    mapping = node.get("discriminator", {}).get("mapping", {})
    tag = (
        data.get(node["discriminator"]["propertyName"])
        if mapping and isinstance(data, Mapping)
        else None
    )
    if tag in mapping:
        return {**_resolve({"$ref": mapping[tag]}, root, data), **described}
    return dict(node)
