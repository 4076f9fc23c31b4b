"""The transcript as providers want it: turns that alternate, every tool call answered exactly once."""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    MalformedToolCall,
    Message,
    ModelRef,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

LOST_RESULT = (
    "The call was interrupted before it had a result. It may or may not have had an effect."
)
_RAW_CHARS = 2_000
_WIRE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_UNFIT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Result:
    call_id: str
    name: str
    text: str
    """Never empty."""
    is_error: bool
    images: tuple[Image, ...] = ()


@dataclass(frozen=True)
class UserTurn:
    results: tuple[Result, ...]
    """One for each call of the assistant's turn before, in the order of the calls."""
    texts: tuple[str, ...]


@dataclass(frozen=True)
class AssistantTurn:
    parts: tuple[Text | Reasoning | ToolCall, ...]
    """Ids and names fit every provider; a malformed call shows what was written as an argument."""
    served_by: ModelRef


Turn = UserTurn | AssistantTurn


def turns(messages: Iterable[Message], provider: str) -> tuple[Turn, ...]:
    """Turns of a conversation with `provider`.

    Reasoning of other providers is left out, and so is empty text. A call without a result gets one
    that says so. A result without a call (its call may have been folded away) is told as text. Ids
    that a provider would refuse, or that occur twice, are replaced; which id replaces which depends
    on earlier messages only, so that a prefix stays the same as the transcript grows.
    """
    ids = _WireIds()
    out: list[Turn] = []
    answered: deque[ToolCall] = deque()  # calls of the last assistant turn, wire ids
    waiting: dict[str, deque[str]] = {}
    results: dict[str, Result] = {}
    texts: list[str] = []

    def close_user_turn() -> None:
        paired = tuple(
            results.get(call.id) or Result(call.id, call.name, LOST_RESULT, is_error=True)
            for call in answered
        )
        if paired or texts:
            out.append(UserTurn(paired, tuple(texts)))
        answered.clear()
        waiting.clear()
        results.clear()
        texts.clear()

    for message in messages:
        match message:
            case AssistantMessage():
                close_user_turn()
                parts, waiting = _sendable(message, provider, ids)
                if parts:
                    out.append(AssistantTurn(parts, message.served_by))
                answered.extend(p for p in parts if isinstance(p, ToolCall))
            case ToolMessage():
                seen = message.observation
                text = seen.text if seen.text.strip() else "(no output)"
                pending = waiting.get(message.call_id)
                if pending:
                    wire = pending.popleft()
                    results[wire] = Result(
                        wire, fit_name(message.name), text, seen.is_error, seen.images
                    )
                else:
                    texts.append(f"Result of an earlier call of {message.name}: {text}")
            case UserMessage():
                if message.text.strip():
                    texts.append(message.text)
    close_user_turn()
    return tuple(out)


def _sendable(
    message: AssistantMessage, provider: str, ids: "_WireIds"
) -> tuple[tuple[Text | Reasoning | ToolCall, ...], dict[str, deque[str]]]:
    parts: list[Text | Reasoning | ToolCall] = []
    waiting: dict[str, deque[str]] = defaultdict(deque)
    for part in message.parts:
        sent = _sent(part, provider, ids)
        if sent is None:
            continue
        parts.append(sent)
        if isinstance(part, ToolCall | MalformedToolCall) and isinstance(sent, ToolCall):
            waiting[part.id].append(sent.id)
    return tuple(parts), waiting


def _sent(
    part: AssistantPart, provider: str, ids: "_WireIds"
) -> Text | Reasoning | ToolCall | None:
    match part:
        case Text():
            return part if part.text.strip() else None
        case Reasoning():
            return part if part.provider == provider else None
        case ToolCall():
            wire, name = ids.take(part.id), fit_name(part.name)
            if (wire, name) == (part.id, part.name):
                return part
            return ToolCall(id=wire, name=name, arguments=part.arguments)
        case MalformedToolCall():
            return ToolCall(
                id=ids.take(part.id),
                name=fit_name(part.name),
                arguments={"malformed_arguments": part.raw[:_RAW_CHARS]},
            )


def fit_name(name: str) -> str:
    """A tool's name as every provider accepts it."""
    return _UNFIT_IN_NAME.sub("_", name)[:64] or "unnamed"


class _WireIds:
    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, own: str) -> str:
        if _WIRE_ID.fullmatch(own) and own not in self._taken:
            self._taken.add(own)
            return own
        wire = "call_" + hashlib.sha256(f"{len(self._taken)} {own}".encode()).hexdigest()[:24]
        self._taken.add(wire)
        return wire
