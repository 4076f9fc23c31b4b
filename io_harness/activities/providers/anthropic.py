"""Anthropic's Messages API (version 2023-06-01)."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from io_harness.workflows.messages import AssistantPart, Image, Reasoning, Text, ToolCall
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage

from .base import (
    CallProgress,
    Failure,
    ModelReply,
    ModelRequest,
    OfferedModel,
    ProviderError,
    ToolSpec,
)
from .failures import from_error_body
from .pairing import AssistantTurn, Result, Turn, UserTurn, turns
from .parts import counted, is_strict, parse_document, parse_event, tool_call
from .sse import ServerEvent
from .wire import Count, Endpoint, Loose, Wire

VERSION = "2023-06-01"
"""The oldest one: every Claude and every server that speaks like Anthropic knows it."""

_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "pause_turn": "paused",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_overflow",
}

# Models before 4.6 think within a budget of tokens; later ones decide themselves how much, and
# refuse a budget.
_BUDGETED = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[015])?(-20\d{6})?$)")
# Models before Opus 4.1 and the 4.5 generation refuse a tool whose schema is to be enforced.
_UNENFORCED = re.compile(r"claude-(2|3|instant|(opus|sonnet)-4(-0|-20\d{6})?$)")
_THINKING_TOKENS = {"minimal": 1024, "low": 4096, "medium": 10_240, "high": 24_576}
_LEAST_THINKING_TOKENS = 1024
_CACHED: dict[str, JsonValue] = {"type": "ephemeral"}


@dataclass(frozen=True)
class Anthropic:
    wire: Wire
    endpoint: Endpoint
    name: str = "anthropic"

    async def complete(self, request: ModelRequest, progress: CallProgress) -> ModelReply:
        sent = body(request, self.name)
        reader = _Reader(self.name, progress)
        await self.wire.stream(
            self.endpoint,
            "v1/messages",
            sent,
            reader.take,
            idle_seconds=request.options.idle_seconds,
            progress=progress,
        )
        return counted(reader.reply(), sent, progress)

    async def models(self) -> tuple[OfferedModel, ...]:
        document = await self.wire.get(self.endpoint, "v1/models?limit=1000")
        page = parse_document(_Models, document, "list of models")
        return tuple(OfferedModel(m.id, context_tokens=m.max_input_tokens) for m in page.data)


def endpoint(base_url: str, key: str | None) -> Endpoint:
    headers = {"anthropic-version": VERSION}
    if key:
        headers["x-api-key"] = key
    return Endpoint(base_url, headers, secret=key)


# --- request --------------------------------------------------------------------------------------


def body(request: ModelRequest, provider: str) -> dict[str, JsonValue]:
    """The request's JSON. Cache breakpoints: one after tools and system prompt, one after each of
    the last two user turns, so that a turn reads what the turn before it wrote."""
    conversation = turns(request.messages, provider)
    messages: list[JsonValue] = [_message(turn, request) for turn in conversation]
    _mark_cached(messages)
    out: dict[str, JsonValue] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "stream": True,
        "system": [{"type": "text", "text": request.system, "cache_control": _CACHED}],
        "messages": messages,
    }
    if request.tools:
        out["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": dict(tool.input_schema),
                **({"strict": True} if _is_enforced(tool, request.model) else {}),
            }
            for tool in request.tools
        ]
        choice = "any" if request.tool_choice == "required" else request.tool_choice
        out["tool_choice"] = {"type": choice}
    if request.options.temperature is not None:
        out["temperature"] = request.options.temperature
    return out | _thinking(request, conversation)


def _is_enforced(tool: ToolSpec, model: str) -> bool:
    return tool.enforced and is_strict(tool.input_schema) and not _UNENFORCED.match(model)


def _thinking(request: ModelRequest, conversation: tuple[Turn, ...]) -> dict[str, JsonValue]:
    effort = request.options.reasoning_effort
    if effort is None:
        return {}
    if not _BUDGETED.match(request.model):
        level = "low" if effort == "minimal" else effort
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
    tokens = min(_THINKING_TOKENS[effort], request.max_output_tokens // 2)
    if tokens < _LEAST_THINKING_TOKENS or _tool_loop_without_thinking(conversation):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _tool_loop_without_thinking(conversation: tuple[Turn, ...]) -> bool:
    """With a thinking budget the API refuses results for a turn that doesn't begin with thinking,
    which is so when another provider made that turn."""
    last = next((t for t in reversed(conversation) if isinstance(t, AssistantTurn)), None)
    return (
        last is not None
        and any(isinstance(p, ToolCall) for p in last.parts)
        and not isinstance(last.parts[0], Reasoning)
    )


def _message(turn: Turn, request: ModelRequest) -> dict[str, JsonValue]:
    match turn:
        case AssistantTurn():
            return {"role": "assistant", "content": [_assistant_block(p) for p in turn.parts]}
        case UserTurn():
            results = [_result_block(r, request.images) for r in turn.results]
            texts: list[JsonValue] = [{"type": "text", "text": text} for text in turn.texts]
            return {"role": "user", "content": [*results, *texts]}


def _assistant_block(part: Text | Reasoning | ToolCall) -> JsonValue:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Reasoning():
            return part.data
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}


def _result_block(result: Result, images: Mapping[str, bytes]) -> JsonValue:
    pictures = [_image_block(image, images) for image in result.images]
    content: list[JsonValue] = [{"type": "text", "text": result.text}, *pictures]
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": content,
        "is_error": result.is_error,
    }


def _image_block(image: Image, images: Mapping[str, bytes]) -> JsonValue:
    data = images.get(image.blob)
    if data is None:
        return {"type": "text", "text": f"(an image, {image.media_type}, is no longer shown)"}
    encoded = base64.b64encode(data).decode()
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": image.media_type, "data": encoded},
    }


def _mark_cached(messages: list[JsonValue]) -> None:
    users = [m for m in messages if isinstance(m, dict) and m["role"] == "user"]
    for message in users[-2:]:
        content = message["content"]
        assert isinstance(content, list)
        last = content[-1]
        assert isinstance(last, dict)
        last["cache_control"] = _CACHED


# --- reply ----------------------------------------------------------------------------------------


class _Usage(Loose):
    input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    output_tokens: Count | None = None
    output_tokens_details: "_OutputDetails | None" = None


class _OutputDetails(Loose):
    thinking_tokens: Count = 0


class _Message(Loose):
    usage: _Usage = _Usage()


class _Block(Loose):
    type: str
    id: str = ""
    name: str = ""
    text: str = ""
    input: dict[str, JsonValue] | None = None
    thinking: str = ""
    signature: str = ""
    data: str = ""


class _Delta(Loose):
    type: str = ""
    text: str = ""
    partial_json: str = ""
    thinking: str = ""
    signature: str = ""
    stop_reason: str | None = None


class _Event(Loose):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta = _Delta()
    usage: _Usage | None = None
    error: dict[str, JsonValue] | None = None


class _Model(Loose):
    id: str
    max_input_tokens: int | None = None


class _Models(Loose):
    data: tuple[_Model, ...]


@dataclass
class _Open:
    """A content block as its deltas arrive."""

    start: _Block
    text: list[str] = field(default_factory=list)
    json: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    stopped: bool = False


class _Reader:
    """Puts the events of one stream together."""

    def __init__(self, provider: str, progress: CallProgress) -> None:
        self._provider = provider
        self._progress = progress
        self._blocks: dict[int, _Open] = {}
        self._stop_reason: str | None = None
        self._ended = False

    def take(self, event: ServerEvent) -> None:
        parsed = parse_event(_Event, event)
        match parsed.type:
            case "message_start" if parsed.message is not None:
                self._count(parsed.message.usage)
            case "content_block_start" if parsed.content_block is not None:
                self._blocks[parsed.index] = _Open(parsed.content_block)
            case "content_block_delta":
                self._extend(parsed.index, parsed.delta)
            case "content_block_stop":
                self._block(parsed.index).stopped = True
            case "message_delta":
                self._stop_reason = parsed.delta.stop_reason or self._stop_reason
                self._count(parsed.usage or _Usage())
            case "message_stop":
                self._ended = True
            case "error":
                raise from_error_body(parsed.error)
            case _:
                pass  # ping, and kinds of events that the API may add

    def _block(self, index: int) -> _Open:
        try:
            return self._blocks[index]
        except KeyError:
            raise ProviderError(
                Failure.MALFORMED_REPLY, f"the stream goes on with a block {index} it never began"
            ) from None

    def _extend(self, index: int, delta: _Delta) -> None:
        block = self._block(index)
        block.text.append(delta.text)
        self._progress.said(delta.text)
        block.json.append(delta.partial_json)
        block.thinking.append(delta.thinking)
        block.signature.append(delta.signature)

    def _count(self, seen: _Usage) -> None:
        """Counts are cumulative; the provider's input excludes what the cache read or wrote."""
        old = self._progress.usage
        details = seen.output_tokens_details
        self._progress.usage = Usage(
            input=_newer(seen.input_tokens, old.input),
            cached=_newer(seen.cache_read_input_tokens, old.cached),
            cache_write=_newer(seen.cache_creation_input_tokens, old.cache_write),
            output=_newer(seen.output_tokens, old.output),
            reasoning=details.thinking_tokens if details else old.reasoning,
        )

    def reply(self) -> ModelReply:
        if not self._ended or self._stop_reason is None:
            raise ProviderError(Failure.STREAM_CUT, "the stream ended before its message_stop")
        finish = _FINISH.get(self._stop_reason)
        if finish is None:
            raise ProviderError(
                Failure.MALFORMED_REPLY, f"unknown stop reason {self._stop_reason!r:.80}"
            )
        parts = tuple(
            part
            for _, block in sorted(self._blocks.items())
            if (part := self._part(block)) is not None
        )
        return ModelReply(parts, finish, self._progress.usage)

    def _part(self, block: _Open) -> AssistantPart | None:
        start = block.start
        match start.type:
            case "text":
                text = start.text + "".join(block.text)
                return Text(text=text) if text else None
            case "thinking":
                thought = start.thinking + "".join(block.thinking)
                signature = start.signature + "".join(block.signature)
                data: JsonValue = {
                    "type": "thinking", "thinking": thought, "signature": signature,
                }  # fmt: skip
                return Reasoning(provider=self._provider, text=thought, data=data)
            case "redacted_thinking":
                hidden: JsonValue = {"type": "redacted_thinking", "data": start.data}
                return Reasoning(provider=self._provider, data=hidden)
            case "tool_use":
                raw = "".join(block.json)
                if not raw and start.input:
                    return ToolCall(id=start.id, name=start.name, arguments=start.input)
                return tool_call(start.id, start.name, raw)
            case _:
                return None  # blocks of tools that the provider runs; none is asked for


def _newer(seen: int | None, old: int) -> int:
    return old if seen is None else seen
