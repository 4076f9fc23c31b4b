"""Schemas of servers: both drafts, nothing fetched, no check without end."""

import time

import pytest
from pydantic import JsonValue

from io_harness.activities.schemas import (
    BadSchema,
    Mismatch,
    check_schema,
    check_value,
    without_idle_nulls,
    without_patterns,
)

DRAFT_07: dict[str, JsonValue] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "definitions": {"size": {"type": "integer", "exclusiveMinimum": 0}},
    "properties": {
        "pair": {"items": [{"type": "string"}, {"type": "integer"}], "type": "array"},
        "size": {"$ref": "#/definitions/size"},
    },
}
DRAFT_2020: dict[str, JsonValue] = {
    "type": "object",
    "$defs": {"size": {"type": "integer", "exclusiveMinimum": 0}},
    "properties": {
        "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "type": "array"},
        "size": {"$ref": "#/$defs/size"},
    },
    "required": ["size"],
    "unevaluatedProperties": False,
}


@pytest.mark.parametrize("schema", [DRAFT_07, DRAFT_2020])
def test_both_drafts_are_checked(schema: dict[str, JsonValue]) -> None:
    check_schema(schema)
    check_value(schema, {"pair": ["a", 1], "size": 3})
    with pytest.raises(Mismatch, match=r"^pair\[1\]: 'b' is not of type 'integer'"):
        check_value(schema, {"pair": ["a", "b"], "size": 3})
    with pytest.raises(Mismatch, match=r"^size: 0 is less than"):
        check_value(schema, {"size": 0})


def test_what_is_missing_and_what_is_too_much_is_named() -> None:
    with pytest.raises(Mismatch, match="'size' is a required property"):
        check_value(DRAFT_2020, {})
    with pytest.raises(Mismatch, match="'more' was unexpected"):
        check_value(DRAFT_2020, {"size": 1, "more": 1})


def test_a_reference_to_the_network_is_not_followed() -> None:
    schema: dict[str, JsonValue] = {"properties": {"a": {"$ref": "http://192.0.2.1/schema.json"}}}
    with pytest.raises(BadSchema, match="which is not in it"):
        check_value(schema, {"a": 1})


def test_an_invalid_schema_is_refused() -> None:
    with pytest.raises(BadSchema, match="not a valid JSON Schema"):
        check_schema({"type": "no such type"})


def test_a_schema_that_multiplies_itself_is_given_up() -> None:
    definitions: dict[str, JsonValue] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(40)
    }
    definitions["d40"] = {"type": "integer"}
    schema: dict[str, JsonValue] = {"$defs": definitions, "$ref": "#/$defs/d0"}
    with pytest.raises(BadSchema, match="takes too long"):
        check_value(schema, 1)


def test_a_schema_that_refers_to_itself_without_end_is_given_up() -> None:
    with pytest.raises(BadSchema, match="takes too long"):
        check_value({"$ref": "#"}, 1)


def test_a_regular_expression_that_backtracks_for_ever_is_not_run() -> None:
    began = time.monotonic()
    check_value({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!")
    check_value(
        {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False},
        {"a" * 40 + "!": "x"},
    )
    assert time.monotonic() - began < 5


def test_a_property_that_is_named_like_a_keyword_is_still_checked() -> None:
    schema: dict[str, JsonValue] = {
        "properties": {"pattern": {"type": "string"}, "patternProperties": {"type": "integer"}},
        "enum": [{"pattern": "x"}],
    }
    assert without_patterns(schema) == schema
    with pytest.raises(Mismatch, match="pattern: 1 is not of type"):
        check_value({"properties": schema["properties"]}, {"pattern": 1})


def test_a_null_for_an_optional_argument_is_left_out_and_no_other_is() -> None:
    schema: dict[str, JsonValue] = {
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["string", "null"]},
            "c": {"type": "null"},
            "d": {"anyOf": [{"type": "null"}]},
            "e": {"type": "string"},
        },
        "required": ["e"],
    }
    given: dict[str, JsonValue] = dict.fromkeys("abcdef")
    assert without_idle_nulls(schema, given) == dict.fromkeys("bcdef")
