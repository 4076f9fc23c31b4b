"""What a worker knows of a transcript without asking, and when it asks."""

from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from io_harness.activities.run_reader import RunReader
from io_harness.workflows.messages import (
    AssistantMessage,
    Message,
    ModelRef,
    Observation,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from io_harness.workflows.payloads import TranscriptMark
from io_harness.workflows.transcript import Transcript, TranscriptPage

GOAL = UserMessage(origin="goal", text="Fix the bug.")


class Run:
    """Stands for the connection to a workflow with this transcript."""

    def __init__(self, *messages: Message) -> None:
        self.transcript = Transcript(messages)
        self.queries = 0
        self._reader = RunReader()
        self._environment = ActivityEnvironment(client=cast(Client, self))

    def get_workflow_handle(self, *_: str, **__: Any) -> "Run":
        return self

    async def query(self, name: str, start: int, **_: Any) -> TranscriptPage:
        assert name == "transcript"
        self.queries += 1
        return self.transcript.page(start)

    async def read(self, mark: TranscriptMark | None = None) -> tuple[Message, ...]:
        mark = mark or self.transcript.mark
        return await self._environment.run(self._reader.transcript, mark)

    def expect(self, *messages: AssistantMessage | ToolMessage) -> None:
        for message in messages:
            self._environment.run(self._reader.expect, message)

    def append(self, *messages: Message) -> None:
        for message in messages:
            self.transcript.append(message)


def reply(*ids: str) -> AssistantMessage:
    calls = tuple(ToolCall(id=each, name="read_file", arguments={"path": each}) for each in ids)
    return AssistantMessage(
        parts=(Text(text="I look."), *calls), served_by=ModelRef(provider="p", name="m")
    )


def result(call: str, text: str = "content") -> ToolMessage:
    return ToolMessage(call_id=call, name="read_file", observation=Observation(text=text))


async def test_a_worker_that_made_the_messages_does_not_ask_for_them() -> None:
    run = Run(GOAL)
    assert await run.read() == (GOAL,)
    assert run.queries == 1
    for turn in range(3):
        said, a, b = reply(f"{turn}a", f"{turn}b"), result(f"{turn}a"), result(f"{turn}b")
        run.append(said, a, b)
        run.expect(said, b, a)  # b's call ended first
        assert await run.read() == run.transcript.messages
    assert run.queries == 1


async def test_a_call_may_read_its_reply_while_another_has_its_result() -> None:
    run = Run(GOAL)
    await run.read()
    said = reply("a", "b")
    run.append(said)
    run.expect(said, result("b"))
    assert await run.read() == (GOAL, said)
    run.append(result("a"), result("b"))
    run.expect(result("a"))
    assert await run.read() == run.transcript.messages
    assert run.queries == 1


async def test_a_worker_asks_where_the_workflow_says_something_else() -> None:
    run = Run(GOAL)
    await run.read()
    said, noted = reply("a"), result("a", "(A human changed the arguments.)\ncontent")
    run.append(said, noted)
    run.expect(said, result("a"))
    assert await run.read() == (GOAL, said, noted)
    assert run.queries == 2
    nudge = UserMessage(origin="nudge", text="Go on.")
    run.append(reply("b"), result("b"), nudge)
    run.expect(reply("b"), result("b"))
    assert (await run.read())[-1] == nudge
    assert run.queries == 3


async def test_a_worker_that_saw_only_a_part_asks() -> None:
    run = Run(GOAL, reply("a"))
    run.expect(result("a"))
    run.append(result("a"))
    assert await run.read() == run.transcript.messages
    assert run.queries == 1


async def test_what_is_expected_makes_no_mark_true() -> None:
    run = Run(GOAL)
    run.expect(reply("a"))
    with pytest.raises(ApplicationError, match="digest"):
        await run.read(TranscriptMark(upto=2, digest="0" * 64))
