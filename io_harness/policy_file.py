"""Reads a policy from a YAML or JSON file, with its rules' own tests, or says where it is wrong."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from io_harness.workflows.policy import Policy

_Path = tuple[str | int, ...]

MAX_BYTES = 256 * 1024
_MAX_DEPTH = 50


class PolicyFileError(ValueError):
    """A policy file can't be read or isn't valid. One line per problem: file, line, field, remedy."""


def read_policy(file: Path) -> Policy:
    """Read and validate a policy file: `.json`, else YAML.

    Raises:
        PolicyFileError: it can't be read or parsed, a field is wrong, a pattern can't be meant as
            written, or a rule doesn't do what its `match` and `no_match` say.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise PolicyFileError(f"{file}: can't be read: {error.strerror}") from None
    return parse_policy(data, str(file))


def parse_policy(data: bytes, name: str) -> Policy:
    """As `read_policy`, from the bytes of the file `name`."""
    if len(data) > MAX_BYTES:
        raise PolicyFileError(f"{name}: has more than {MAX_BYTES:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise PolicyFileError(f"{name}: not UTF-8 text") from None
    fields, lines = _json(text, name) if name.endswith(".json") else _yaml(text, name)
    if not isinstance(fields, dict):
        raise PolicyFileError(
            f"{name}: must be a mapping, with the fields preset, defaults, layers"
        )
    try:
        return Policy.model_validate(fields)
    except ValidationError as error:
        raise PolicyFileError("\n".join(_problems(error, fields, lines, name))) from None


def _json(text: str, name: str) -> tuple[Any, dict[_Path, int]]:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates), {}
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name}: not valid JSON: {error}") from None


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _yaml(text: str, name: str) -> tuple[Any, dict[_Path, int]]:
    lines: dict[_Path, int] = {}
    try:
        _check_events(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _collect(root, (), lines)
        return yaml.safe_load(text), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}" if mark else name
        quote = "; put a pattern that begins with * in quotes" if "alias" in str(error) else ""
        raise PolicyFileError(f"{at}: not valid YAML: {error.problem}{quote}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise PolicyFileError(f"{name}: not valid YAML: {error}") from None


def _check_events(text: str) -> None:
    """Refuse what makes a small file large or deep, before anything is built of it."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not taken; put a pattern that begins with * in quotes")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise ValueError(f"nested more than {_MAX_DEPTH} deep")


def _collect(node: yaml.Node, path: _Path, lines: dict[_Path, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _collect(item, (*path, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            at = (*path, str(key.value))
            if at in lines:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            lines[at] = key.start_mark.line + 1
            _collect(value, at, lines)


def _problems(
    error: ValidationError, data: Any, lines: Mapping[_Path, int], name: str
) -> list[str]:
    found: dict[_Path, list[str]] = {}
    for problem in error.errors(include_url=False):
        path = _existing(problem["loc"], data)
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = "unknown field"
        elif problem["type"] == "missing":
            message = f"the field {problem['loc'][-1]!r} is missing"
        found.setdefault(path, []).append(message)
    return [
        f"{name}{_line(path, lines)}: {_shown(path)}{' or '.join(dict.fromkeys(messages))}"
        for path, messages in found.items()
    ]


def _existing(loc: _Path, data: Any) -> _Path:
    """pydantic's location without the names of union members and of fields that are not there."""
    path: list[str | int] = []
    for part in loc:
        items: Any = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(items, dict) and part in items:
            data = items[part]
            path.append(part)
    return tuple(path)


def _line(path: _Path, lines: Mapping[_Path, int]) -> str:
    known = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)
    return f":{known}" if known else ""


def _shown(path: _Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{text.lstrip('.')}: " if path else ""
