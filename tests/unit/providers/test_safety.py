"""A cut or malformed reply never becomes an action."""

import pytest

from io_harness.activities.providers.base import Failure, ModelReply, ProviderError
from io_harness.activities.providers.safety import safe_parts
from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    MalformedToolCall,
    ModelRef,
    Reasoning,
    Text,
    ToolCall,
    UserMessage,
)
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage
from tests.unit.providers.conftest import ask

READ = ToolCall(id="c1", name="read_file", arguments={"path": "a"})


def reply(*parts: AssistantPart, finish: FinishReason = "tool_use") -> ModelReply:
    return ModelReply(parts, finish, Usage())


def test_a_whole_reply_is_left_as_it_is() -> None:
    parts = (Text(text="I look."), READ)
    assert safe_parts(reply(*parts), ask()) == parts


@pytest.mark.parametrize("finish", ["length", "refusal", "content_filter", "context_overflow"])
def test_calls_of_a_reply_that_did_not_end_well(finish: FinishReason) -> None:
    text, call = safe_parts(reply(Text(text="I"), READ, finish=finish), ask())
    assert text == Text(text="I")
    assert isinstance(call, MalformedToolCall)
    assert "nothing of it was executed" in call.error
    assert (call.id, call.raw) == ("c1", '{"path": "a"}')


@pytest.mark.parametrize("name", ["rm -rf /", "", "read_file ", "functions.read_file", "Ünknown"])
def test_tools_that_do_not_exist_are_told(name: str) -> None:
    (call,) = safe_parts(reply(ToolCall(id="c", name=name, arguments={})), ask())
    assert isinstance(call, MalformedToolCall)
    assert "there is no tool of this name; tools are: read_file" in call.error


def test_ids_become_unique_within_the_run() -> None:
    said = AssistantMessage(parts=(READ,), served_by=ModelRef(provider="x", name="y"))
    request = ask(UserMessage(origin="goal", text="go"), said)
    nameless = READ.model_copy(update={"id": ""})
    parts = safe_parts(reply(READ, READ, nameless, nameless), request)
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    assert ids == ["c1-2", "c1-3", "call", "call-2"]


@pytest.mark.parametrize(
    "parts",
    [(), (Text(text=" \n"),), (Reasoning(provider="a", data={}),)],
    ids=["nothing", "blank", "reasoning only"],
)
def test_a_reply_that_says_nothing_is_a_failure(parts: tuple[AssistantPart, ...]) -> None:
    with pytest.raises(ProviderError) as caught:
        safe_parts(reply(*parts, finish="stop"), ask())
    assert caught.value.failure is Failure.EMPTY_REPLY


def test_a_refusal_without_words_is_no_empty_reply() -> None:
    assert safe_parts(reply(finish="refusal"), ask()) == ()


def test_where_no_call_is_allowed_none_is_left() -> None:
    parts = safe_parts(reply(Text(text="So far"), READ), ask(tool_choice="none"))
    assert parts == (Text(text="So far"),)
    with pytest.raises(ProviderError):
        safe_parts(reply(READ), ask(tool_choice="none"))
