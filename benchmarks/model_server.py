"""The model of all contestants: one OpenAI-compatible server without latency, which answers by script.

It speaks Chat Completions, streamed or whole. It counts a conversation's requests instead of reading
them, so that its own time doesn't grow with the transcript, and notes when each one arrived: a turn is
the time from one request to the next.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

_MODEL = "scripted"


@dataclass(frozen=True)
class Say:
    """A reply: one tool call, or text that ends the conversation."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, str] = field(default_factory=dict)

    def message(self, number: int) -> dict[str, object]:
        if not self.tool:
            return {"role": "assistant", "content": self.text}
        function = {"name": self.tool, "arguments": json.dumps(self.arguments)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


class Script(Protocol):
    """Gives the reply to a conversation's request of that number, from 0."""

    def __call__(self, number: int) -> Say: ...


@dataclass
class Conversation:
    script: Script
    arrivals: list[float] = field(default_factory=list)
    """Seconds of a monotonic clock."""
    request_bytes: list[int] = field(default_factory=list)

    def turns(self) -> list[float]:
        """Seconds from each request to the next."""
        return [b - a for a, b in zip(self.arrivals, self.arrivals[1:], strict=False)]


class ModelServer:
    """Conversations by name. A contestant finds its own at `url(name)`."""

    def __init__(self) -> None:
        self.conversations: dict[str, Conversation] = {}
        self._port = 0

    def open(self, name: str, script: Script) -> str:
        """Begin a conversation; gives the base URL at which it is held."""
        self.conversations[name] = Conversation(script)
        return f"http://127.0.0.1:{self._port}/{name}/v1"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ModelServer"]:
        routes = [Route("/{name}/v1/chat/completions", self._complete, methods=["POST"])]
        config = uvicorn.Config(
            Starlette(routes=routes),
            lifespan="off",
            log_level="warning",
            access_log=False,
            timeout_keep_alive=600,
            backlog=4096,
        )
        server = uvicorn.Server(config)
        # Of a socket that doesn't name its protocol asyncio doesn't know that it may switch off Nagle's
        # algorithm, which would cost each reply 40 ms.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind(("127.0.0.1", 0))
            self._port = listener.getsockname()[1]
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield self
            finally:
                server.should_exit = server.force_exit = True
                await serving

    async def _complete(self, request: Request) -> Response:
        arrived = time.perf_counter()
        conversation = self.conversations[request.path_params["name"]]
        body = await request.body()
        if b'"tool_choice":"none"' in body:  # asks for a summary of what it folds; no turn
            number, say = -1, Say("So far all went by the script.")
        else:
            number = len(conversation.arrivals)
            conversation.arrivals.append(arrived)
            conversation.request_bytes.append(len(body))
            say = conversation.script(number)
        message, finish = say.message(number), "tool_calls" if say.tool else "stop"
        usage = _usage(len(body))
        if b'"stream":true' in body or b'"stream": true' in body:
            return StreamingResponse(
                _chunks(message, finish, usage), media_type="text/event-stream"
            )
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return JSONResponse(_envelope("chat.completion", [choice]) | {"usage": usage})


def _usage(request_bytes: int) -> dict[str, int]:
    """About what a tokenizer would count: four bytes to a token."""
    prompt = request_bytes // 4
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}


def _chunks(message: dict[str, object], finish: str, usage: dict[str, int]) -> Iterator[bytes]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        message = message | {"tool_calls": [{"index": 0, **call} for call in calls]}
    for delta, reason in ((message, None), ({}, finish)):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        yield _event(_envelope("chat.completion.chunk", [choice]))
    yield _event(_envelope("chat.completion.chunk", []) | {"usage": usage})
    yield b"data: [DONE]\n\n"


def _envelope(kind: str, choices: list[dict[str, object]]) -> dict[str, object]:
    return {"id": "c", "object": kind, "created": 0, "model": _MODEL, "choices": choices}


def _event(data: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"
