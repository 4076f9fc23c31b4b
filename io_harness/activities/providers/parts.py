"""Pieces that the readers of all providers' streams share."""

import dataclasses
import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from io_harness.workflows.messages import MalformedToolCall, ToolCall
from io_harness.workflows.result import Usage

from .base import CallProgress, Failure, ModelReply, ProviderError
from .sse import ServerEvent
from .wire import Loose

LooseT = TypeVar("LooseT", bound=Loose)


def parse_event(kind: type[LooseT], event: ServerEvent) -> LooseT:
    """The event's JSON.

    Raises:
        ProviderError: MALFORMED_REPLY, if it isn't what the provider's format says.
    """
    try:
        return kind.model_validate_json(event.data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(piece) for piece in first["loc"])
        raise ProviderError(
            Failure.MALFORMED_REPLY,
            f"a {event.event} event of the stream doesn't parse: {where} {first['msg']}",
        ) from error


def parse_document(kind: type[LooseT], document: JsonValue, what: str) -> LooseT:
    """A JSON document that was asked for.

    Raises:
        ProviderError: MALFORMED_REPLY, if it isn't `what`.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise ProviderError(
            Failure.MALFORMED_REPLY, f"the server answers no {what} in a known form"
        ) from error


def tool_call(call_id: str, name: str, raw: str) -> ToolCall | MalformedToolCall:
    """A call from the text of its arguments. No text at all counts as no arguments."""
    if not raw.strip():
        return ToolCall(id=call_id, name=name, arguments={})
    try:
        arguments: JsonValue = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        return MalformedToolCall(
            id=call_id, name=name, raw=raw, error=f"the arguments are not valid JSON: {error}"
        )
    if not isinstance(arguments, dict):
        return MalformedToolCall(
            id=call_id,
            name=name,
            raw=raw,
            error=f"the arguments must be a JSON object, not {_kind(arguments)}",
        )
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case list():
            return "an array"
        case str():
            return "a string"
        case _:
            return "a number"


def counted(reply: ModelReply, sent: Mapping[str, JsonValue], progress: CallProgress) -> ModelReply:
    """The reply with an estimate of its usage where the server counted nothing: a token for every
    two bytes, more than tokenizers make of text or code. Bytes of the reply are those of its stream,
    framing included."""
    if reply.usage.total:
        return reply
    usage = Usage(input=len(json.dumps(sent)) // 2, output=progress.received_bytes // 2)
    progress.usage = usage
    return dataclasses.replace(reply, usage=usage)


_ENFORCEABLE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf"}
    | {"title", "description"}
)
"""Keywords that both OpenAI and Anthropic enforce, and two that say nothing to them. A schema with any
other, even one that one of them knows, is only told."""


def is_strict(schema: JsonValue | Mapping[str, JsonValue]) -> bool:
    """Whether providers can hold a model to the schema: it uses what they know, and every object lists
    all its properties as required and allows no others."""
    if not isinstance(schema, Mapping) or not _ENFORCEABLE.issuperset(schema):
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return False
        if not isinstance(properties, dict) or not isinstance(required, list):
            return False
        if set(properties) != {str(name) for name in required}:
            return False
    elif not {"type", "anyOf", "enum"} & set(schema):
        return False  # anything at all
    inner = [*properties.values()] if isinstance(properties, dict) else []
    if schema.get("type") == "array":
        inner.append(schema.get("items"))
    choices = schema.get("anyOf", [])
    return isinstance(choices, list) and all(is_strict(part) for part in [*inner, *choices])
