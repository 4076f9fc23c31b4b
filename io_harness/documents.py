"""Reads YAML and JSON that people write, and remembers on which line each field stands."""

import json
from collections.abc import Sequence

import yaml
from pydantic import JsonValue

Place = tuple[str | int, ...]
"""Keys and indexes that lead to a field."""
MAX_DEPTH = 50
MAX_NODES = 100_000
"""Values in one document, each alias counted with all that it stands for."""


class DocumentError(Exception):
    """The text is not a document. The message says where and why."""


def parse(text: str, name: str, *, aliases: bool = True) -> tuple[JsonValue, dict[Place, int]]:
    """The document, and the line (from 1) of each field where it is YAML; `name` decides by its ending
    and is named in errors.

    Args:
        aliases: Whether YAML's `*alias` is taken. A pattern that begins with * looks like one.

    Raises:
        DocumentError: it is not valid, gives a key twice, or is nested too deeply.
    """
    if name.endswith(".json"):
        try:
            return json.loads(text, object_pairs_hook=_without_duplicates), {}
        except (ValueError, RecursionError) as error:
            raise DocumentError(f"{name}: not valid JSON: {error}") from None
    lines: dict[Place, int] = {}
    try:
        _check_events(text, aliases=aliases)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            if _size(root, {}) > MAX_NODES:
                raise ValueError(f"more than {MAX_NODES:,} values, aliases written out")
            _collect(root, (), lines)
        return yaml.safe_load(text), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        hint = "" if aliases or "alias" not in str(error) else f"; {_QUOTE}"
        raise DocumentError(f"{at}: not valid YAML: {error.problem}{hint}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{name}: not valid YAML: {error}") from None


_QUOTE = "put a pattern that begins with * in quotes"


def _without_duplicates(pairs: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is given twice")
        found[key] = value
    return found


def _check_events(text: str, *, aliases: bool) -> None:
    """Refuse what makes a small file large or deep, before anything is built of it."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise ValueError(f"aliases are not taken; {_QUOTE}")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node holds, with itself; `known` by the id of each collection."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MAX_NODES + 1  # of a node that holds itself
        pairs = isinstance(node, yaml.MappingNode)
        inner = [each for pair in node.value for each in pair] if pairs else node.value
        known[id(node)] = 1 + sum(_size(each, known) for each in inner)
    return known[id(node)]


def _collect(node: yaml.Node, place: Place, lines: dict[Place, int]) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _collect(item, (*place, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            at = (*place, str(key.value))
            if at in lines:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            lines[at] = key.start_mark.line + 1
            _collect(value, at, lines)
