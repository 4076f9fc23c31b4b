"""The activity `complete`, run outside of a worker."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from io_harness.activities import model as model_module
from io_harness.activities.model import ModelActivities
from io_harness.activities.providers.recording import load
from io_harness.activities.settings import Settings
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.messages import AssistantMessage, Message, Text, UserMessage
from io_harness.workflows.payloads import (
    CompleteInput,
    Completion,
    ModelFailure,
    RunScope,
    TranscriptMark,
)
from io_harness.workflows.result import Usage
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Answer, Call, Fail, Say
from tests.unit.providers.conftest import READ_FILE, model_at
from tests.unit.providers.conversation import PIXEL, everything

pytestmark = pytest.mark.usefixtures("key")
GOAL = UserMessage(origin="goal", text="Fix the bug.")


class Run:
    """Stands for the workflow that the activity reads by query."""

    def __init__(self, contract: TaskContract, messages: Sequence[Message]) -> None:
        self._contract = contract
        self._messages = tuple(messages)

    async def contract(self, scope: RunScope) -> TaskContract:
        return self._contract

    async def transcript(self, mark: TranscriptMark) -> tuple[Message, ...]:
        return self._messages[: mark.upto]

    def expect(self, message: AssistantMessage) -> None:
        self.expected = message


async def _blob(blob: str) -> bytes:
    return PIXEL


async def complete(
    fake: FakeProvider,
    *messages: Message,
    earlier: dict[str, Any] | None = None,
    record: Path | None = None,
    model: dict[str, object] | None = None,
    chain: int = 1,
    **call: Any,
) -> Completion:
    chosen = model_at("openai", fake, **(model or {}))
    contract = TaskContract.model_validate(
        {
            "goal": "g",
            "workspace": {"kind": "directory", "path": "/src"},
            "verification": {"kind": "none"},
            "model": chosen,
            "fallbacks": (chosen,) * (chain - 1),
        }
    )
    transcript = messages or (GOAL,)
    settings = Settings(data_dir=Path("/nowhere"), record=record)
    activities = ModelActivities(
        settings, Run(contract, transcript), lambda *_: (READ_FILE,), _blob
    )
    asked: dict[str, Any] = {
        "run": RunScope(key="k", contract_digest="d"),
        "step": 1,
        "transcript": TranscriptMark(upto=len(transcript), digest="d"),
        "model": 0,
        "max_output_tokens": 1000,
        **call,
    }
    environment = ActivityEnvironment()
    if earlier is not None:
        environment.info = _with_details(environment.info, earlier)
    try:
        return await environment.run(activities.complete, CompleteInput(**asked))
    finally:
        await activities.aclose()


def _with_details(info: Any, details: dict[str, Any]) -> Any:
    import dataclasses

    return dataclasses.replace(info, heartbeat_details=[details], attempt=2)


async def fail(*answers: Answer, **more: Any) -> ApplicationError:
    async with FakeProvider(*answers) as fake:
        with pytest.raises(ApplicationError) as caught:
            await complete(fake, **more)
    return caught.value


async def test_a_reply_becomes_a_completion() -> None:
    async with FakeProvider(Say("Hello", usage=Usage(input=100, output=10))) as fake:
        done = await complete(fake, model={"price": {"input": 1, "output": 10}})
    assert done.message.parts == (Text(text="Hello"),)
    assert done.message.served_by.name == "fake-model"
    assert (done.usage.total, done.retried.total) == (110, 0)
    assert done.cost_usd == Decimal("0.0002")


async def test_an_unknown_price_is_told_apart_from_nothing() -> None:
    async with FakeProvider(Say("Hello"), Say("Hello")) as fake:
        assert (await complete(fake)).cost_usd is None
        free = await complete(fake, model={"price": {"input": 0, "output": 0}})
    assert free.cost_usd == 0


async def test_what_earlier_attempts_used_is_added_apart() -> None:
    beat = {
        "received_bytes": 9,
        "usage": {"input": 50, "output": 5},
        "cost_usd": "0.5",
        "empty_replies": 1,
    }
    priced: dict[str, object] = {"price": {"input": 1, "output": 1}}
    async with FakeProvider(Say("ok", usage=Usage(input=100))) as fake:
        done = await complete(fake, earlier=beat, model=priced)
    assert (done.usage.total, done.retried.total) == (100, 55)
    assert done.cost_usd == Decimal("0.5001")
    error = await fail(Say(usage=Usage(input=7)), earlier=beat, model=priced)
    assert (error.type, error.non_retryable) == ("EmptyReply", True)  # it was the second
    (detail,) = error.details
    assert isinstance(detail, ModelFailure)
    assert detail.usage.total == 62


async def test_images_are_shown() -> None:
    request = everything("openai")
    async with FakeProvider(Say("ok")) as fake:
        await complete(fake, *request.messages)
    shown = [m["content"] for m in fake.requests[0].body["messages"] if m["role"] == "user"]
    kinds = [part["type"] for part in shown[1]]
    assert kinds == ["image_url", "image_url"]


async def test_a_fold_may_not_call_tools() -> None:
    said = Say("Summary.", (Call("read_file", {"path": "a"}),))
    async with FakeProvider(said) as fake:
        done = await complete(fake, purpose="fold")
    assert done.message.parts == (Text(text="Summary."),)
    body = fake.requests[0].body
    assert body["tool_choice"] == "none"
    assert body["tools"]
    assert "summary" in body["messages"][-1]["content"]


async def test_what_is_recorded_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    async with FakeProvider(Say("Hello")) as fake:
        done = await complete(fake, record=path, model={"price": {"input": 1, "output": 1}})
    (turn,) = load(str(path)).turns
    assert turn.reply.parts == done.message.parts
    assert turn.expect[0].text == "Fix the bug."
    assert turn.reply.cost_usd == done.cost_usd == Decimal("0.00012")


@pytest.mark.parametrize("step", [1, 3], ids=["folder missing", "earlier turns missing"])
async def test_a_recording_that_cannot_be_written(tmp_path: Path, step: int) -> None:
    path = tmp_path / "missing" / "r.yaml"
    error = await fail(Say("Hello"), record=path, step=step)
    assert (error.type, error.non_retryable) == ("BadRecording", True)
    assert str(path) in error.message


async def test_a_reply_too_large_for_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "COMPLETION_BYTES", 5_000)
    error = await fail(Say("x" * 6_000))
    assert (error.type, error.non_retryable) == ("ReplyTooLarge", True)


async def test_a_missing_key_fails_before_any_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    async with FakeProvider(Say("Hello")) as fake:
        with pytest.raises(ApplicationError, match="ANTHROPIC_API_KEY is not set") as caught:
            await complete(fake)
        assert fake.requests == []
    assert (caught.value.type, caught.value.non_retryable) == ("MissingCredential", True)


async def test_waits() -> None:
    asked = await fail(Fail(429, headers={"retry-after": "7"}))
    assert asked.next_retry_delay is not None
    assert 7 <= asked.next_retry_delay.total_seconds() <= 7.7
    own = await fail(Fail(500))
    assert own.next_retry_delay is not None
    assert 1 <= own.next_retry_delay.total_seconds() <= 2
    assert (await fail(Fail(400))).next_retry_delay is None


@pytest.mark.parametrize(("chain", "gives_up"), [(1, False), (2, True)])
async def test_a_long_wait_gives_way_to_a_fallback(chain: int, gives_up: bool) -> None:
    error = await fail(Fail(429, headers={"retry-after": "61"}), chain=chain)
    assert error.non_retryable is gives_up
    (detail,) = error.details
    assert detail.fallback_may_help
