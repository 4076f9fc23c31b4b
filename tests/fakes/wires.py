"""Replies in the format of each API, event by event. The official SDKs read them in the tests."""

import json
from collections.abc import Iterator

from .script import Fail, Say

Event = tuple[str | None, str]
"""Name of the event (None where the API names none) and its data."""


def encode(event: Event) -> bytes:
    name, data = event
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data}\n\n".encode()


def events(path: str, say: Say) -> Iterator[Event]:
    if path.endswith("/messages"):
        return _messages(say)
    if path.endswith("/chat/completions"):
        return _chat(say)
    if path.endswith("/responses"):
        return _responses(say)
    raise AssertionError(f"the fake speaks nothing at {path}")


def error_event(path: str, code: str) -> Event:
    """An error in mid-stream."""
    if path.endswith("/messages"):
        error = {"type": f"{code}_error", "message": f"{code} in mid-stream"}
        return "error", json.dumps({"type": "error", "error": error})
    if path.endswith("/responses"):
        body = {"type": "error", "code": code, "message": f"{code} in mid-stream", "param": None}
        return "error", json.dumps({**body, "sequence_number": 99})
    return None, json.dumps({"error": {"code": code, "message": f"{code} in mid-stream"}})


def error_body(path: str, fail: Fail) -> bytes:
    if fail.body is not None:
        return fail.body
    if path.endswith("/messages"):
        error: object = {"type": fail.code, "message": fail.message}
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    error = {"message": fail.message, "type": "invalid_request_error", "code": fail.code}
    return json.dumps({"error": error}).encode()


def _pieces(text: str) -> list[str]:
    """Split in three, so that every reader must put deltas together."""
    third = max(1, len(text) // 3)
    return [text[i : i + third] for i in range(0, len(text), third)]


# --- Anthropic Messages ---------------------------------------------------------------------------

_ANTHROPIC_STOP = {
    "stop": "end_turn",
    "tool_use": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "paused": "pause_turn",
    "context_overflow": "model_context_window_exceeded",
}


def _messages(say: Say) -> Iterator[Event]:
    usage = {
        "input_tokens": say.usage.input,
        "cache_read_input_tokens": say.usage.cached,
        "cache_creation_input_tokens": say.usage.cache_write,
        "output_tokens": min(1, say.usage.output),
    }
    message: dict[str, object] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield _named({"type": "message_start", "message": message})
    yield _named({"type": "ping"})
    for index, (start, deltas) in enumerate(_anthropic_blocks(say)):
        yield _named({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": _ANTHROPIC_STOP[say.finish_reason], "stop_sequence": None}
    final = {"output_tokens": say.usage.output}
    yield _named({"type": "message_delta", "delta": stop, "usage": final})
    yield _named({"type": "message_stop"})


def _anthropic_blocks(say: Say) -> Iterator[tuple[dict[str, object], list[dict[str, str]]]]:
    if say.thinking:
        deltas = [{"type": "thinking_delta", "thinking": p} for p in _pieces(say.thinking)]
        deltas.append({"type": "signature_delta", "signature": "c2lnbmF0dXJl"})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if say.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in _pieces(say.text)],
        )
    for call in say.calls:
        start: dict[str, object] = {
            "type": "tool_use", "id": call.id, "name": call.name, "input": {},
        }  # fmt: skip
        yield (
            start,
            [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(call.raw)],
        )


def _named(data: dict[str, object]) -> Event:
    return str(data["type"]), json.dumps(data, ensure_ascii=False)


# --- OpenAI Chat Completions ----------------------------------------------------------------------

_CHAT_FINISH = {
    "stop": "stop",
    "tool_use": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "stop",
}


def _chat(say: Say) -> Iterator[Event]:
    yield _chunk({"role": "assistant", "content": ""})
    for piece in _pieces(say.thinking):
        yield _chunk({"reasoning_content": piece})
    field = "refusal" if say.finish == "refusal" else "content"
    for piece in _pieces(say.text):
        yield _chunk({field: piece})
    for index, call in enumerate(say.calls):
        head = {"name": call.name, "arguments": ""}
        start = {"index": index, "id": call.id, "type": "function", "function": head}
        yield _chunk({"tool_calls": [start]})
        for piece in _pieces(call.raw):
            part = {"index": index, "function": {"arguments": piece}}
            yield _chunk({"tool_calls": [part]})
    yield _chunk({}, finish=_CHAT_FINISH[say.finish_reason])
    used = say.usage
    prompt = used.input + used.cached + used.cache_write
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": used.output,
        "total_tokens": prompt + used.output,
        "prompt_tokens_details": {
            "cached_tokens": used.cached, "cache_write_tokens": used.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }  # fmt: skip
    yield None, json.dumps({**_CHUNK, "choices": [], "usage": usage})
    yield None, "[DONE]"


_CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake"}


def _chunk(delta: dict[str, object], finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return None, json.dumps({**_CHUNK, "choices": [choice]}, ensure_ascii=False)


# --- OpenAI Responses -----------------------------------------------------------------------------


def _responses(say: Say) -> Iterator[Event]:
    number = iter(range(1_000_000))

    def event(kind: str, **data: object) -> Event:
        return _named({"type": kind, "sequence_number": next(number), **data})

    yield event("response.created", response=_response("in_progress"))
    items = _response_items(say)
    for index, item in enumerate(items):
        place: dict[str, object] = {"output_index": index, "item_id": item["id"]}
        started = {**item, "status": "in_progress"}
        match item["type"]:
            case "message":
                yield event(
                    "response.output_item.added",
                    output_index=index,
                    item={**started, "content": []},
                )
                place["content_index"] = 0
                empty = {"type": "output_text", "text": "", "annotations": []}
                yield event("response.content_part.added", **place, part=empty)
                for piece in _pieces(say.text):
                    yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
                yield event("response.output_text.done", **place, text=say.text, logprobs=[])
            case "function_call":
                yield event(
                    "response.output_item.added",
                    output_index=index,
                    item={**started, "arguments": ""},
                )
                for piece in _pieces(str(item["arguments"])):
                    yield event("response.function_call_arguments.delta", **place, delta=piece)
                yield event(
                    "response.function_call_arguments.done",
                    **place,
                    name=item["name"],
                    arguments=item["arguments"],
                )
            case _:
                yield event("response.output_item.added", output_index=index, item=started)
        yield event("response.output_item.done", output_index=index, item=item)
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(say.finish_reason)
    status = "incomplete" if reason else "completed"
    details = {"reason": reason} if reason else None
    whole = _response(status, output=items, incomplete_details=details, usage=_responses_usage(say))
    yield event(f"response.{status}", response=whole)


def _response(status: str, **more: object) -> dict[str, object]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "fake", "status": status,
        "output": [], "error": None, "incomplete_details": None, "instructions": None,
        "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto",
        "tools": [], "top_p": 1.0, "usage": None, **more,
    }  # fmt: skip


def _responses_usage(say: Say) -> dict[str, object]:
    used = say.usage
    return {
        "input_tokens": used.input + used.cached + used.cache_write,
        "input_tokens_details": {
            "cached_tokens": used.cached, "cache_write_tokens": used.cache_write,
        },
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.total,
    }  # fmt: skip


def _response_items(say: Say) -> list[dict[str, object]]:
    items: list[dict[str, object]] = []
    if say.thinking:
        summary = [{"type": "summary_text", "text": say.thinking}]
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"}
        )
    if say.text:
        part: dict[str, object] = (
            {"type": "refusal", "refusal": say.text}
            if say.finish == "refusal"
            else {"type": "output_text", "text": say.text, "annotations": []}
        )
        items.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [part]}
        )  # fmt: skip
    for position, call in enumerate(say.calls):
        items.append(
            {"type": "function_call", "id": f"fc_{position}", "call_id": call.id,
             "name": call.name, "arguments": call.raw, "status": "completed"}
        )  # fmt: skip
    return items
