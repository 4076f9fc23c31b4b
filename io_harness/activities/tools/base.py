"""What a tool is: a name, a description, arguments, an effect class, and the function that runs it."""

import functools
import json
from abc import ABC, abstractmethod
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, ValidationError

from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import Effect

from .context import ToolContext
from .errors import InvalidArguments


class Args(BaseModel):
    """Base of every tool's arguments: exact types, no unknown field."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


A = TypeVar("A", bound=Args)

_MOST_WORD_BYTES = 120_000  # Linux takes 128 KiB


def _passable(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which no program can receive")
    if len(text.encode()) > _MOST_WORD_BYTES:
        raise ValueError(f"has more than {_MOST_WORD_BYTES:,} bytes; write it to a file first")
    return text


Word = Annotated[str, AfterValidator(_passable)]
"""A text that can be an argument of a program."""


class AnyTool(ABC):
    """What the registry and the activity need of a tool, whatever its arguments are made of."""

    name: str
    description: str
    effect: Effect

    def effect_under(self, contract: TaskContract) -> Effect:
        """The effect class under a contract; `effect` unless a tool says otherwise."""
        return self.effect

    @abstractmethod
    def input_schema(self) -> dict[str, JsonValue]:
        """JSON Schema of the arguments."""

    @abstractmethod
    async def call(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> Observation:
        """Validate and run.

        Raises:
            ToolError: for everything the model did or could mend.
            Refused, AsksNeeded: from the gate; the call then had no effect.
        """


class Tool(AnyTool, Generic[A]):
    """Base class of tools whose arguments are a pydantic model."""

    Args: type[A]

    @abstractmethod
    async def run(self, args: A, ctx: ToolContext) -> Observation:
        """Do it. Raises `ToolError` for what the model should hear."""

    async def call(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> Observation:
        return await self.run(parse_arguments(self.name, self.Args, arguments), ctx)

    def input_schema(self) -> dict[str, JsonValue]:
        return schema_of(self.Args)


def parse_arguments(tool: str, model: type[A], arguments: dict[str, JsonValue]) -> A:
    """Arguments as the tool's own type.

    Raises:
        InvalidArguments: naming each field that is wrong.
    """
    try:
        # Through JSON, so that strict mode takes a JSON array for a tuple.
        return model.model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_context=False)
        ]
        names = ", ".join(model.model_fields)
        raise InvalidArguments(f"{tool}: {'; '.join(faults)} (fields: {names})") from None


@functools.cache
def schema_of(model: type[BaseModel]) -> dict[str, JsonValue]:
    """JSON Schema for the model's list of tools, without what costs tokens and tells a model little.
    Arguments are checked against the whole. Made once per model, so it must not be changed."""
    schema = model.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})
    return _slim(_inlined(schema, definitions))


_UNTOLD = ("title", "additionalProperties", "minLength", "maxLength", "minimum", "maxItems")


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema with definitions in the place of references to them. Ours are never recursive."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}


def _slim(schema: dict[str, Any]) -> dict[str, JsonValue]:
    slim: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key in _UNTOLD and not isinstance(value, dict):
            continue
        if key == "description" and "properties" in schema:
            continue  # the tool's own description says it
        if key == "default" and value in (None, "", False, []):
            continue
        if key == "properties":
            slim[key] = {name: _slim_field(field) for name, field in value.items()}
        elif isinstance(value, dict):
            slim[key] = _slim(value)
        else:
            slim[key] = value
    return slim


def _slim_field(field: dict[str, Any]) -> dict[str, JsonValue]:
    branches = [b for b in field.get("anyOf", []) if b != {"type": "null"}]
    if "anyOf" in field and len(branches) == 1:
        field = {**{k: v for k, v in field.items() if k != "anyOf"}, **branches[0]}
    if isinstance(field.get("description"), str):
        field = {**field, "description": " ".join(field["description"].split())}
    return _slim(field)
