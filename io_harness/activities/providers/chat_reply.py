"""Puts the chunks of a Chat Completions stream together."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from pydantic import JsonValue

from io_harness.workflows.messages import AssistantPart, Reasoning, Text
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage

from .base import CallProgress, Failure, ModelReply, ProviderError
from .failures import from_error_body
from .parts import parse_event, tool_call
from .sse import ServerEvent
from .wire import Amount, Count, Loose

_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "model_length": "context_overflow",  # Mistral: the window is full
    "content_filter": "content_filter",
}
_FAILED = {"error", "abort", "insufficient_system_resource"}


class _Function(Loose):
    name: str | None = None
    arguments: str | dict[str, JsonValue] | None = None


class _CallDelta(Loose):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()
    extra_content: JsonValue = None
    """Gemini: the signature of the thought that led to the call."""


class _Delta(Loose):
    content: str | list[JsonValue] | None = None
    refusal: str | None = None
    tool_calls: tuple[_CallDelta, ...] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: tuple[dict[str, JsonValue], ...] | None = None


class _Choice(Loose):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _InputDetails(Loose):
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class _OutputDetails(Loose):
    reasoning_tokens: Count | None = None


class _CostDetails(Loose):
    upstream_inference_cost: Amount | None = None


class _Usage(Loose):
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    total_tokens: Count | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None
    prompt_cache_hit_tokens: Count | None = None
    cost: Amount | None = None
    is_byok: bool | None = None
    cost_details: _CostDetails | None = None

    def neutral(self) -> Usage:
        """OpenAI counts cached tokens inside the prompt and reasoning inside the completion. xAI and
        Gemini count reasoning outside of it, in the total only: what the total has beyond the prompt
        is output."""
        details = self.prompt_tokens_details or _InputDetails()
        cached = details.cached_tokens or self.prompt_cache_hit_tokens or 0
        written = details.cache_write_tokens or 0
        beyond = 0 if self.total_tokens is None else self.total_tokens - self.prompt_tokens
        return Usage(
            input=max(0, self.prompt_tokens - cached - written),
            cached=cached,
            cache_write=written,
            output=max(self.completion_tokens, beyond),
            reasoning=(self.completion_tokens_details or _OutputDetails()).reasoning_tokens or 0,
        )

    def charged(self) -> Decimal | None:
        """OpenRouter's cost in US dollars; with a key of one's own, what its provider charges too."""
        if self.cost is None:
            return None
        upstream = self.cost_details.upstream_inference_cost if self.cost_details else None
        return self.cost + (upstream if self.is_byok and upstream else Decimal(0))


class _Chunk(Loose):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    error: JsonValue = None


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: JsonValue = None


class ChatReader:
    """One stream. Its end marker is `[DONE]`, after a choice with a finish reason."""

    def __init__(self, provider: str, progress: CallProgress) -> None:
        self._provider = provider
        self._progress = progress
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[dict[str, JsonValue]] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish: str | None = None
        self._done = False

    def take(self, event: ServerEvent) -> None:
        if event.data.strip() == "[DONE]":
            self._done = True
            return
        chunk = parse_event(_Chunk, event)
        if chunk.error is not None:
            raise from_error_body(chunk.error)
        if chunk.usage is not None:
            self._progress.usage = chunk.usage.neutral()
            self._progress.cost_usd = chunk.usage.charged()
        for choice in (chunk.choices or ())[:1]:
            self._take_delta(choice.delta)
            self._finish = choice.finish_reason or self._finish

    def _take_delta(self, delta: _Delta) -> None:
        said = _plain(delta.content)
        self._text.append(said)
        self._progress.said(said)
        self._refusal.append(delta.refusal or "")
        for name in ("reasoning", "reasoning_content"):
            thought: str | None = getattr(delta, name)
            if thought:
                self._thoughts.setdefault(name, []).append(thought)
        for detail in delta.reasoning_details or ():
            self._merge_detail(detail)
        for call in delta.tool_calls or ():
            self._take_call(call)

    def _take_call(self, delta: _CallDelta) -> None:
        """Pieces belong together by index. Some servers give no index, and some give every call the
        index 0: a new id with a name begins a new call then."""
        index = len(self._by_index) - 1 if delta.index is None else delta.index
        call = self._by_index.get(index)
        new_id = bool(delta.id) and call is not None and delta.id != call.id
        if call is None or (new_id and delta.function.name):
            call = _Call()
            self._calls.append(call)
            self._by_index[max(index, 0)] = call
        call.id = call.id or delta.id or ""
        call.name = call.name or delta.function.name or ""
        if isinstance(delta.function.arguments, dict):
            call.arguments.append(json.dumps(delta.function.arguments))
        else:
            call.arguments.append(delta.function.arguments or "")
        call.extra = delta.extra_content if delta.extra_content is not None else call.extra

    def _merge_detail(self, detail: dict[str, JsonValue]) -> None:
        """OpenRouter: pieces of one block have one index and type; their texts add up."""
        last = self._details[-1] if self._details else None
        if (
            last is None
            or detail.get("type") == "reasoning.encrypted"
            or any(last.get(k) != detail.get(k) for k in ("type", "index"))
        ):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            before = last.get(name)
            if name in ("text", "summary") and isinstance(value, str) and isinstance(before, str):
                last[name] = before + value
            elif value is not None:
                last[name] = value

    def reply(self) -> ModelReply:
        if self._finish is None or not self._done:
            raise ProviderError(
                Failure.STREAM_CUT, "the stream ended before its finish reason and [DONE]"
            )
        if self._finish in _FAILED:
            raise ProviderError(
                Failure.SERVER_ERROR, f"the server ended the reply with {self._finish!r}"
            )
        finish = _FINISH.get(self._finish)
        if finish is None:
            raise ProviderError(
                Failure.MALFORMED_REPLY, f"unknown finish reason {self._finish!r:.80}"
            )
        if self._calls and finish == "stop":
            finish = "tool_use"
        elif not self._calls and finish == "tool_use":
            finish = "stop"
        refusal = "".join(self._refusal)
        if refusal and finish == "stop":
            finish = "refusal"
        text = "".join(self._text) + refusal
        parts: list[AssistantPart] = [*self._reasoning()]
        if text:
            parts.append(Text(text=text))
        parts += [tool_call(c.id, c.name, "".join(c.arguments)) for c in self._calls]
        return ModelReply(tuple(parts), finish, self._progress.usage, self._progress.cost_usd)

    def _reasoning(self) -> list[Reasoning]:
        """What must come back unchanged, under the names under which it came."""
        data: dict[str, JsonValue] = {n: "".join(t) for n, t in self._thoughts.items()}
        shown = next((str(text) for text in data.values()), "")
        if self._details:
            data = {"reasoning_details": [*self._details]}
        extra: dict[str, JsonValue] = {
            str(i): call.extra for i, call in enumerate(self._calls) if call.extra is not None
        }
        if extra:
            data["extra_content"] = extra
        return [Reasoning(provider=self._provider, text=shown, data=data)] if data else []


def _plain(content: str | list[JsonValue] | None) -> str:
    """Mistral sends lists of parts, of which the texts are the reply."""
    if isinstance(content, list):
        return "".join(
            str(part.get("text", ""))
            for part in content
            if isinstance(part, dict) and part.get("type") == "text"
        )
    return content or ""
