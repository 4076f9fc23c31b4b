"""What models and tools were told and said, in spans: only where it is asked for."""

import json
import os
from typing import Any, assert_never

from opentelemetry.util.types import AttributeValue

from io_harness.activities.providers.base import ModelRequest
from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    MalformedToolCall,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from io_harness.workflows.payloads import Completion, ToolDone

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable that OpenTelemetry's own instrumentations of model clients read."""

Attributes = dict[str, AttributeValue]


def captured() -> bool:
    return os.environ.get(CAPTURE, "").lower() in ("true", "span_only", "span_and_event")


def request(asked: ModelRequest) -> Attributes:
    if not captured():
        return {}
    return {
        "gen_ai.system_instructions": _json([_text(asked.system)]),
        "gen_ai.input.messages": _json([_message(each) for each in asked.messages]),
    }


def reply(completion: Completion) -> Attributes:
    if not captured():
        return {}
    message = _message(completion.message) | {"finish_reason": completion.finish}
    return {"gen_ai.output.messages": _json([message])}


def tool_arguments(call: ToolCall) -> Attributes:
    return {"gen_ai.tool.call.arguments": _json(call.arguments)} if captured() else {}


def tool_result(done: ToolDone) -> Attributes:
    return {"gen_ai.tool.call.result": done.observation.text} if captured() else {}


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage():
            return {"role": "user", "parts": [_text(message.text)]}
        case AssistantMessage():
            return {"role": "assistant", "parts": [_part(part) for part in message.parts]}
        case ToolMessage():
            response = {
                "type": "tool_call_response",
                "id": message.call_id,
                "response": message.observation.text,
            }
            return {"role": "tool", "parts": [response]}
        case _:
            assert_never(message)


def _part(part: AssistantPart) -> dict[str, Any]:
    match part:
        case Text():
            return _text(part.text)
        case Reasoning():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name,
                    "arguments": part.arguments}  # fmt: skip
        case MalformedToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.raw}
        case _:
            assert_never(part)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
