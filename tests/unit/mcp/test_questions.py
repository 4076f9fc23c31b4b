"""A human's words as the form that a server asked for."""

import pytest
from pydantic import JsonValue

from io_harness.activities.mcp.questions import content_of


def form(**properties: JsonValue) -> dict[str, JsonValue]:
    return {"properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    ("words", "schema", "content"),
    [
        ("blue", form(colour={"type": "string"}), {"colour": "blue"}),
        (" 4 ", form(seats={"type": "integer"}), {"seats": 4}),
        ("0.5", form(part={"type": "number"}), {"part": 0.5}),
        ("Yes", form(sure={"type": "boolean"}), {"sure": True}),
        ("no", form(sure={"type": "boolean"}), {"sure": False}),
        ("perhaps", form(sure={"type": "boolean"}), None),
        ("many", form(seats={"type": "integer"}), None),
        ("red", form(colour={"type": "string", "enum": ["blue"]}), None),
        (
            '{"a": 1, "b": "x"}',
            form(a={"type": "integer"}, b={"type": "string"}),
            {"a": 1, "b": "x"},
        ),
        ('{"a": "1"}', form(a={"type": "integer"}, b={"type": "string"}), None),
        ("", form(a={"type": "integer", "default": 3}), {"a": 3}),
        ("", form(a={"type": "integer", "default": 3}, b={"type": "string"}), None),
        (
            '{"b": "x"}',
            form(a={"type": "integer", "default": 3}, b={"type": "string"}),
            {"a": 3, "b": "x"},
        ),
        ('{"a": 4}', form(a={"type": "integer", "default": 3}), {"a": 4}),
        ("", form(a={"type": "integer", "default": "no number"}), None),
        ("two fields", form(a={"type": "string"}, b={"type": "string"}), None),
    ],
)
def test_words_become_content_or_nothing(
    words: str, schema: dict[str, JsonValue], content: dict[str, JsonValue] | None
) -> None:
    assert content_of(words, schema) == content
