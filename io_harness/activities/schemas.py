"""Checks values against JSON Schemas.

Those of MCP servers and of agents are untrusted, so the check is bounded: nothing is fetched, a schema
that multiplies itself by references is given up after so many steps, and regular expressions, of which
one can take for ever, are run only where the contract's author wrote them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from jsonschema import SchemaError, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_STEPS = 50_000
_MESSAGE = 500
_MAPS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"),
        *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_BY_PATTERN = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})


class BadSchema(ValueError):
    """It is no JSON Schema that can be checked."""


class Mismatch(ValueError):
    """The value isn't valid; the message names the place."""


class _TooComplex(Exception):
    pass


def check_schema(schema: Mapping[str, JsonValue]) -> None:
    """Raises:
    BadSchema: it isn't valid under its own draft (2020-12 where none is named), or too complex.
    """
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as error:
        raise BadSchema(f"not a valid JSON Schema: {error.message[:_MESSAGE]}") from None
    except RecursionError:
        raise BadSchema("nested too deeply") from None


def check_value(schema: Mapping[str, JsonValue], value: JsonValue) -> None:
    """Raises:
    Mismatch: the value is not valid under the schema.
    BadSchema: the schema can't be checked.
    """
    error = best_match(errors_of(without_patterns(schema), value))
    if error is not None:
        place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
        raise Mismatch(f"{place.lstrip('.') or 'the whole'}: {error.message[:_MESSAGE]}")


def errors_of(schema: Mapping[str, JsonValue], value: JsonValue) -> list[ValidationError]:
    """All that is wrong with the value; the schema's regular expressions are run.

    Raises:
        BadSchema: the schema can't be checked.
    """
    kind = validator_for(schema, default=Draft202012Validator)
    steps = iter(range(MAX_STEPS))
    counted = {name: _counted(check, steps) for name, check in kind.VALIDATORS.items()}
    # An empty registry: a reference resolves within the schema, or not at all.
    validator = cast(type[Validator], extend(kind, counted))(  # type: ignore[no-untyped-call]
        schema, registry=Registry()
    )
    try:
        return list(validator.iter_errors(value))
    except Unresolvable as failed:
        raise BadSchema(f"it refers to {failed.ref!r}, which is not in it") from None
    except re.error as failed:
        raise BadSchema(f"a pattern in it is no regular expression: {failed}") from None
    except (RecursionError, _TooComplex):
        raise BadSchema("its check takes too long") from None


def without_idle_nulls(
    schema: Mapping[str, JsonValue], value: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    """The arguments without each null that stands for an optional property of one plain type: models
    write them where they mean to leave the property out."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return value
    needed = required if isinstance(required, list) else []

    def idle(name: str) -> bool:
        declared = properties.get(name)
        return (
            isinstance(declared, dict)
            and name not in needed
            and isinstance(declared.get("type"), str)
            and declared["type"] != "null"
        )

    return {name: v for name, v in value.items() if v is not None or not idle(name)}


_Check = Callable[[Validator, Any, Any, Any], Iterator[ValidationError] | None]


def _counted(check: _Check, steps: Iterator[int]) -> _Check:
    def run(
        validator: Validator, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if next(steps, None) is None:
            raise _TooComplex
        yield from check(validator, value, instance, schema) or ()

    return run


def without_patterns(schema: Any) -> Any:
    """The schema without the keywords that run a regular expression, and without those whose meaning
    rests on them."""
    if not isinstance(schema, Mapping):
        return schema
    dropped = {"pattern", *(_BY_PATTERN if "patternProperties" in schema else ())}
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in dropped:
            continue
        if key in _MAPS and isinstance(value, Mapping):
            kept[key] = {name: without_patterns(inner) for name, inner in value.items()}
        elif isinstance(value, list) and (key in _LISTS or key == "items"):
            kept[key] = [without_patterns(inner) for inner in value]
        elif key in _SINGLE:
            kept[key] = without_patterns(value)
        elif key == "dependencies" and isinstance(value, Mapping):
            kept[key] = {name: without_patterns(inner) for name, inner in value.items()}
        else:
            kept[key] = value
    return kept
