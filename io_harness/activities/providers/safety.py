"""What a reply may cause: a cut or malformed piece of it never becomes an action."""

import json
from collections.abc import Iterable

from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    MalformedToolCall,
    Message,
    Text,
    ToolCall,
)
from io_harness.workflows.payloads import FinishReason

from .base import Failure, ModelReply, ModelRequest, ProviderError

_INCOMPLETE: dict[FinishReason, str] = {
    "length": "the reply reached its limit of output tokens, so the call may be cut; "
    "nothing of it was executed. Do it in smaller steps",
    "context_overflow": "the reply filled the context window, so the call may be cut; "
    "nothing of it was executed",
    "refusal": "the reply ended in a refusal; nothing of it was executed",
    "content_filter": "a content filter ended the reply; nothing of it was executed",
}


def safe_parts(reply: ModelReply, request: ModelRequest) -> tuple[AssistantPart, ...]:
    """The reply's parts as they may be acted on.

    Calls of a reply that didn't end well, and calls of tools that don't exist, become
    `MalformedToolCall`; where no call was allowed, they go. Ids are made unique within the run.
    Empty text goes.

    Raises:
        ProviderError: EMPTY_REPLY, if the reply ended well and says nothing.
    """
    parts = [p for p in reply.parts if not (isinstance(p, Text) and not p.text.strip())]
    if request.tool_choice == "none":
        parts = [p for p in parts if not isinstance(p, ToolCall | MalformedToolCall)]
    says = any(isinstance(p, Text | ToolCall | MalformedToolCall) for p in parts)
    if not says and reply.finish in ("stop", "tool_use"):
        raise ProviderError(Failure.EMPTY_REPLY, "the reply has neither text nor a tool call")
    names = frozenset(tool.name for tool in request.tools)
    taken = _ids(request.messages)
    return tuple(_unique(_safe(part, reply.finish, names), taken) for part in parts)


def _safe(part: AssistantPart, finish: FinishReason, names: frozenset[str]) -> AssistantPart:
    if not isinstance(part, ToolCall):
        return part
    error = _INCOMPLETE.get(finish)
    if error is None and part.name not in names:
        known = ", ".join(sorted(names)) or "none"
        error = f"there is no tool of this name; tools are: {known}"
    if error is None:
        return part
    raw = json.dumps(part.arguments, ensure_ascii=False)
    return MalformedToolCall(id=part.id, name=part.name, raw=raw, error=error)


def _ids(messages: Iterable[Message]) -> set[str]:
    return {
        call.id
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
    }


def _unique(part: AssistantPart, taken: set[str]) -> AssistantPart:
    if not isinstance(part, ToolCall | MalformedToolCall):
        return part
    own = part.id or "call"
    unique, count = own, 1
    while unique in taken:
        count += 1
        unique = f"{own}-{count}"
    taken.add(unique)
    return part if unique == part.id else part.model_copy(update={"id": unique})
