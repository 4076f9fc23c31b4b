"""Provider-neutral messages. The transcript of a run is a list of these, each in history once."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .model import Record


class Text(Record):
    kind: Literal["text"] = "text"
    text: str


class Reasoning(Record):
    """A provider's own reasoning block. It goes back unchanged to the provider that made it, and to
    no other."""

    kind: Literal["reasoning"] = "reasoning"
    provider: str
    """Registry name of the provider that made it."""
    text: str = ""
    """What may be shown to a person; may be empty."""
    data: JsonValue
    """The block as the provider sent it (signature, encrypted content)."""


class ToolCall(Record):
    """A well-formed request of the model to use a tool."""

    kind: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, JsonValue]


class MalformedToolCall(Record):
    """A request whose arguments are not a JSON object. It is never executed; the model is told."""

    kind: Literal["malformed_tool_call"] = "malformed_tool_call"
    id: str
    name: str
    raw: str
    error: str


AssistantPart = Annotated[
    Text | Reasoning | ToolCall | MalformedToolCall, Field(discriminator="kind")
]


class ModelRef(Record):
    """Which provider and model served a reply."""

    provider: str
    name: str


class AssistantMessage(Record):
    role: Literal["assistant"] = "assistant"
    parts: tuple[AssistantPart, ...]
    served_by: ModelRef

    @property
    def text(self) -> str:
        return "\n".join(p.text for p in self.parts if isinstance(p, Text))

    @property
    def calls(self) -> tuple[ToolCall | MalformedToolCall, ...]:
        return tuple(p for p in self.parts if isinstance(p, ToolCall | MalformedToolCall))


class UserMessage(Record):
    """A message to the model that is not a tool's result."""

    role: Literal["user"] = "user"
    origin: Literal["goal", "verification", "nudge", "human", "fold", "agent"]
    text: str


class Image(Record):
    """A picture that a tool read. The bytes are a blob of the snapshot store."""

    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    blob: str
    """Git object id of the bytes."""
    bytes: int


class Observation(Record):
    """What a tool call showed. Capped before it leaves the activity."""

    text: str
    is_error: bool = False
    omitted_bytes: int = 0
    """How much of the full output `text` leaves out."""
    spill: str | None = None
    """Handle for `read_output`, where a long output is kept whole; None if `text` is all of it."""
    images: tuple[Image, ...] = ()


class ToolMessage(Record):
    """The one result of one tool call."""

    role: Literal["tool"] = "tool"
    call_id: str
    name: str
    observation: Observation


Message = Annotated[AssistantMessage | UserMessage | ToolMessage, Field(discriminator="role")]
