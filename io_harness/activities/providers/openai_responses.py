"""OpenAI's Responses API, used without its server-side state: each request carries the whole
conversation, reasoning comes back encrypted and returns unchanged."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from io_harness.workflows.messages import AssistantPart, Image, Reasoning, Text, ToolCall
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage

from .base import CallProgress, Failure, ModelReply, ModelRequest, OfferedModel, ProviderError
from .failures import from_error_body
from .openai_chat import ChatCompletions
from .pairing import AssistantTurn, Result, Turn, UserTurn, turns
from .parts import counted, is_strict, parse_event, tool_call
from .sse import ServerEvent
from .wire import Count, Endpoint, Loose, Wire

# Models that don't reason refuse to be asked for encrypted reasoning.
_NO_REASONING = re.compile(r"(ft:)?(gpt-3|gpt-4|chatgpt-4)")


@dataclass(frozen=True)
class Responses:
    wire: Wire
    endpoint: Endpoint
    name: str

    async def complete(self, request: ModelRequest, progress: CallProgress) -> ModelReply:
        sent = body(request, self.name)
        reader = _Reader(self.name, progress)
        await self.wire.stream(
            self.endpoint,
            "responses",
            sent,
            reader.take,
            idle_seconds=request.options.idle_seconds,
            progress=progress,
        )
        return counted(reader.reply(), sent, progress)

    async def models(self) -> tuple[OfferedModel, ...]:
        return await ChatCompletions(self.wire, self.endpoint, self.name).models()


# --- request --------------------------------------------------------------------------------------


def body(request: ModelRequest, provider: str) -> dict[str, JsonValue]:
    """The request's JSON."""
    reasons = not _NO_REASONING.match(request.model)
    items: list[JsonValue] = []
    # A model that doesn't reason has no use for what another of the chain thought.
    for turn in turns(request.messages, provider if reasons else ""):
        items += _items(turn, request.images)
    out: dict[str, JsonValue] = {
        "model": request.model,
        "instructions": request.system,
        "input": items,
        "max_output_tokens": request.max_output_tokens,
        "stream": True,
        "store": False,
    }
    if reasons:
        out["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        out["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.input_schema),
                "strict": tool.enforced and is_strict(tool.input_schema),
            }
            for tool in request.tools
        ]
        out["tool_choice"] = request.tool_choice
    if request.options.temperature is not None:
        out["temperature"] = request.options.temperature
    if request.options.reasoning_effort is not None:
        out["reasoning"] = {"effort": request.options.reasoning_effort}
    return out


def _items(turn: Turn, images: Mapping[str, bytes]) -> list[JsonValue]:
    match turn:
        case AssistantTurn():
            return _assistant(turn)
        case UserTurn():
            results: list[JsonValue] = [_result(result, images) for result in turn.results]
            texts: list[JsonValue] = [{"role": "user", "content": text} for text in turn.texts]
            return [*results, *texts]


def _assistant(turn: AssistantTurn) -> list[JsonValue]:
    parts = list(turn.parts)
    while parts and isinstance(parts[-1], Reasoning):
        parts.pop()  # the API refuses reasoning that nothing follows
    return [item for part in parts if (item := _item(part)) is not None]


def _item(part: Text | Reasoning | ToolCall) -> JsonValue:
    match part:
        case Text():
            return {"role": "assistant", "content": part.text}
        case ToolCall():
            return {
                "type": "function_call",
                "call_id": part.id,
                "name": part.name,
                "arguments": json.dumps(part.arguments),
            }
        case Reasoning():
            # Without its encrypted content the server, which keeps nothing, can't look it up.
            data = part.data
            return data if isinstance(data, dict) and data.get("encrypted_content") else None


def _result(result: Result, images: Mapping[str, bytes]) -> JsonValue:
    text = f"Error: {result.text}" if result.is_error else result.text
    output: JsonValue = text
    if result.images:
        pictures = [_image(image, images) for image in result.images]
        output = [{"type": "input_text", "text": text}, *pictures]
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _image(image: Image, images: Mapping[str, bytes]) -> JsonValue:
    data = images.get(image.blob)
    if data is None:
        return {
            "type": "input_text",
            "text": f"(an image, {image.media_type}, is no longer shown)",
        }
    url = f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


# --- reply ----------------------------------------------------------------------------------------


class _InputDetails(Loose):
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0


class _OutputDetails(Loose):
    reasoning_tokens: Count = 0


class _Usage(Loose):
    input_tokens: Count = 0
    output_tokens: Count = 0
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None

    def neutral(self) -> Usage:
        """Cached tokens count inside the input, reasoning inside the output."""
        details = self.input_tokens_details or _InputDetails()
        return Usage(
            input=max(0, self.input_tokens - details.cached_tokens - details.cache_write_tokens),
            cached=details.cached_tokens,
            cache_write=details.cache_write_tokens,
            output=self.output_tokens,
            reasoning=(self.output_tokens_details or _OutputDetails()).reasoning_tokens,
        )


class _Incomplete(Loose):
    reason: str | None = None


class _Response(Loose):
    status: str = ""
    error: JsonValue = None
    incomplete_details: _Incomplete | None = None
    output: tuple[dict[str, JsonValue], ...] = ()
    usage: _Usage | None = None


class _Event(Loose):
    type: str
    output_index: int = 0
    item: dict[str, JsonValue] | None = None
    response: _Response | None = None
    code: str | None = None
    message: str | None = None
    error: JsonValue = None
    delta: JsonValue = None


class _Content(Loose):
    type: str
    text: str = ""
    refusal: str = ""


class _Item(Loose):
    type: str
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    content: tuple[_Content, ...] | None = None
    summary: tuple[_Content, ...] | None = None


class _Reader:
    """Puts the events of one stream together. Its end markers are `response.completed` and
    `response.incomplete`."""

    def __init__(self, provider: str, progress: CallProgress) -> None:
        self._provider = provider
        self._progress = progress
        self._items: dict[int, dict[str, JsonValue]] = {}
        self._end: _Response | None = None

    def take(self, event: ServerEvent) -> None:
        if event.data.strip() == "[DONE]":
            return  # some compatible servers end with it too
        parsed = parse_event(_Event, event)
        match parsed.type:
            case "response.output_text.delta" if isinstance(parsed.delta, str):
                self._progress.said(parsed.delta)
            case "response.output_item.done" if parsed.item is not None:
                self._items[parsed.output_index] = parsed.item
            case "response.completed" | "response.incomplete" if parsed.response is not None:
                self._end = parsed.response
                self._count(parsed.response)
            case "response.failed" if parsed.response is not None:
                self._count(parsed.response)
                raise from_error_body(parsed.response.error)
            case "error":
                raise from_error_body(
                    parsed.error or {"code": parsed.code, "message": parsed.message}
                )
            case _:
                pass  # other deltas, which the finished items repeat, and kinds the API may add

    def _count(self, response: _Response) -> None:
        if response.usage is not None:
            self._progress.usage = response.usage.neutral()

    def reply(self) -> ModelReply:
        if self._end is None:
            raise ProviderError(
                Failure.STREAM_CUT, "the stream ended before its response.completed"
            )
        raw = [item for _, item in sorted(self._items.items())] or list(self._end.output)
        parsed = [(item, _parsed(item)) for item in raw]
        parts = tuple(part for item, kind in parsed for part in self._parts(item, kind))
        return ModelReply(parts, self._finish(kind for _, kind in parsed), self._progress.usage)

    def _finish(self, items: Iterable[_Item]) -> FinishReason:
        assert self._end is not None
        if self._end.status == "incomplete":
            details = self._end.incomplete_details or _Incomplete()
            match details.reason:
                case "max_output_tokens":
                    return "length"
                case "content_filter":
                    return "content_filter"
                case other:
                    raise ProviderError(
                        Failure.MALFORMED_REPLY, f"the response is incomplete: {other!r:.80}"
                    )
        finish: FinishReason = "stop"
        for item in items:
            if item.type == "function_call":
                finish = "tool_use"
            elif any(c.type == "refusal" for c in item.content or ()) and finish == "stop":
                finish = "refusal"
        return finish

    def _parts(self, raw: dict[str, JsonValue], item: _Item) -> list[AssistantPart]:
        match item.type:
            case "message":
                text = "".join(c.text or c.refusal for c in item.content or ())
                return [Text(text=text)] if text else []
            case "function_call":
                return [tool_call(item.call_id, item.name, item.arguments)]
            case "reasoning":
                shown = "\n".join(c.text for c in item.summary or item.content or ())
                return [Reasoning(provider=self._provider, text=shown, data=raw)]
            case _:
                return []  # items of tools that the provider runs; none is asked for


def _parsed(item: dict[str, JsonValue]) -> _Item:
    return parse_event(_Item, ServerEvent(json.dumps(item), "response.output_item.done"))
