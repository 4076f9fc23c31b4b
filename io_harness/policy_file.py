"""Reads a policy from a YAML or JSON file, with its rules' own tests, or says where it is wrong."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from io_harness.documents import DocumentError, Place, parse
from io_harness.workflows.policy import Policy

MAX_BYTES = 256 * 1024


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
    try:
        fields, lines = parse(text, name, aliases=False)
    except DocumentError as error:
        raise PolicyFileError(str(error)) from None
    if not isinstance(fields, dict):
        raise PolicyFileError(
            f"{name}: must be a mapping, with the fields preset, defaults, layers"
        )
    try:
        return Policy.model_validate(fields)
    except ValidationError as error:
        raise PolicyFileError("\n".join(_problems(error, fields, lines, name))) from None


def _problems(
    error: ValidationError, data: Any, lines: Mapping[Place, int], name: str
) -> list[str]:
    found: dict[Place, list[str]] = {}
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


def _existing(loc: Place, data: Any) -> Place:
    """pydantic's location without the names of union members and of fields that are not there."""
    path: list[str | int] = []
    for part in loc:
        items: Any = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(items, dict) and part in items:
            data = items[part]
            path.append(part)
    return tuple(path)


def _line(path: Place, lines: Mapping[Place, int]) -> str:
    known = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)
    return f":{known}" if known else ""


def _shown(path: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{text.lstrip('.')}: " if path else ""
