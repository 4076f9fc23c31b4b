"""OpenAI's Chat Completions API, and the dialects of it that others speak."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pydantic import JsonValue

from io_harness.workflows.messages import Image, Reasoning, Text, ToolCall

from .base import CallProgress, ModelReply, ModelRequest, OfferedModel, ToolSpec
from .chat_reply import ChatReader
from .pairing import AssistantTurn, Result, Turn, UserTurn, turns
from .parts import counted, is_strict, parse_document
from .wire import Endpoint, Loose, Wire


@dataclass(frozen=True)
class Dialect:
    """In what the servers that speak Chat Completions differ."""

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    nested_effort: bool = False
    """Reasoning effort as `reasoning.effort` instead of `reasoning_effort`."""
    cache_marks: tuple[str, ...] = ()
    """Prefixes of model names for which cache breakpoints must be set by the caller."""
    enforces: bool = False
    """Whether a tool may be marked as one whose schema is to be enforced."""
    extra: Mapping[str, JsonValue] | None = None
    """Further fields of every request."""


OPENAI = Dialect(max_tokens="max_completion_tokens", enforces=True)
COMPATIBLE = Dialect()


@dataclass(frozen=True)
class ChatCompletions:
    wire: Wire
    endpoint: Endpoint
    name: str
    dialect: Dialect = COMPATIBLE

    async def complete(self, request: ModelRequest, progress: CallProgress) -> ModelReply:
        sent = body(request, self.name, self.dialect)
        reader = ChatReader(self.name, progress)
        await self.wire.stream(
            self.endpoint,
            "chat/completions",
            sent,
            reader.take,
            idle_seconds=request.options.idle_seconds,
            progress=progress,
        )
        return counted(reader.reply(), sent, progress)

    async def models(self) -> tuple[OfferedModel, ...]:
        document = await self.wire.get(self.endpoint, "models")
        page = parse_document(_Models, document, "list of models")
        return tuple(model.offered for model in page.data)


def endpoint(base_url: str, key: str | None) -> Endpoint:
    return Endpoint(base_url, {"authorization": f"Bearer {key}"} if key else {}, secret=key)


class _Pricing(Loose):
    """OpenRouter: US dollars per token; negative where it depends on the route."""

    prompt: Decimal = Decimal(-1)
    completion: Decimal = Decimal(-1)


class _Model(Loose):
    id: str
    context_length: int | None = None
    max_model_len: int | None = None
    context_window: int | None = None
    pricing: _Pricing | None = None

    @property
    def offered(self) -> OfferedModel:
        window = self.context_length or self.max_model_len or self.context_window
        price = self.pricing or _Pricing()
        return OfferedModel(
            self.id,
            context_tokens=window,
            input_usd=None if price.prompt < 0 else price.prompt * 1_000_000,
            output_usd=None if price.completion < 0 else price.completion * 1_000_000,
        )


class _Models(Loose):
    data: tuple[_Model, ...]


# --- request --------------------------------------------------------------------------------------


def body(request: ModelRequest, provider: str, dialect: Dialect) -> dict[str, JsonValue]:
    """The request's JSON."""
    messages: list[JsonValue] = [{"role": "system", "content": request.system}]
    for turn in turns(request.messages, provider):
        messages += _messages(turn, request.images)
    if request.model.startswith(dialect.cache_marks):
        _mark_cached(messages)
    out: dict[str, JsonValue] = {
        "model": request.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        dialect.max_tokens: request.max_output_tokens,
        **(dialect.extra or {}),
    }
    if request.tools:
        out["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.input_schema),
                    **({"strict": True} if _is_enforced(tool, dialect) else {}),
                },
            }
            for tool in request.tools
        ]
        out["tool_choice"] = request.tool_choice
    if request.options.temperature is not None:
        out["temperature"] = request.options.temperature
    if request.options.reasoning_effort is not None:
        if dialect.nested_effort:
            out["reasoning"] = {"effort": request.options.reasoning_effort}
        else:
            out["reasoning_effort"] = request.options.reasoning_effort
    return out


def _is_enforced(tool: ToolSpec, dialect: Dialect) -> bool:
    return dialect.enforces and tool.enforced and is_strict(tool.input_schema)


def _messages(turn: Turn, images: Mapping[str, bytes]) -> list[JsonValue]:
    match turn:
        case AssistantTurn():
            return [_assistant(turn)]
        case UserTurn():
            # A tool's message holds text only: its pictures follow as the user's.
            pictures = [_image(i, images) for result in turn.results for i in result.images]
            shown: list[JsonValue] = [{"role": "user", "content": pictures}] if pictures else []
            results: list[JsonValue] = [_tool_message(result) for result in turn.results]
            texts: list[JsonValue] = [{"role": "user", "content": text} for text in turn.texts]
            return [*results, *shown, *texts]


def _tool_message(result: Result) -> dict[str, JsonValue]:
    # The format has no field for a failed call.
    text = f"Error: {result.text}" if result.is_error else result.text
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def _assistant(turn: AssistantTurn) -> dict[str, JsonValue]:
    texts = [part.text for part in turn.parts if isinstance(part, Text)]
    calls: list[JsonValue] = [
        {
            "id": part.id,
            "type": "function",
            "function": {"name": part.name, "arguments": json.dumps(part.arguments)},
        }
        for part in turn.parts
        if isinstance(part, ToolCall)
    ]
    out: dict[str, JsonValue] = {"role": "assistant", "content": "\n".join(texts) or None}
    if calls:
        out["tool_calls"] = calls
    for part in turn.parts:
        if isinstance(part, Reasoning) and isinstance(part.data, dict):
            _return_reasoning(part.data, out, calls)
    return out


def _return_reasoning(
    data: dict[str, JsonValue], message: dict[str, JsonValue], calls: list[JsonValue]
) -> None:
    """Put back what `ChatReader` took out, under the same names."""
    for name, value in data.items():
        if name != "extra_content":
            message[name] = value
            continue
        assert isinstance(value, dict)
        for position, extra in value.items():
            if int(position) < len(calls):
                call = calls[int(position)]
                assert isinstance(call, dict)
                call["extra_content"] = extra


def _image(image: Image, images: Mapping[str, bytes]) -> JsonValue:
    data = images.get(image.blob)
    if data is None:
        return {"type": "text", "text": f"(an image, {image.media_type}, is no longer shown)"}
    url = f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _mark_cached(messages: list[JsonValue]) -> None:
    """Breakpoints after the system prompt and after the last message, as content parts."""
    for message in (messages[0], messages[-1]):
        assert isinstance(message, dict)
        if isinstance(message["content"], str):
            message["content"] = [
                {
                    "type": "text",
                    "text": message["content"],
                    "cache_control": {"type": "ephemeral"},
                }
            ]
