"""Recordings: written, read back, and refused where the conversation departs from them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.providers.base import CallProgress, Failure, ModelReply, ProviderError
from io_harness.activities.providers.recording import RecordingError, load, normalise
from io_harness.activities.providers.replay import Replay, record
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
from io_harness.workflows.result import Usage
from tests.unit.providers.conftest import ask

SERVED = ModelRef(provider="anthropic", name="claude")
GOAL = UserMessage(origin="goal", text="Fix the bug.\n\nKeep to this:\n- one: two\n---\nend ")
CALL = ToolCall(id="c1", name="read_file", arguments={"path": "a.py", "n": None, "s": "no"})
FIRST = ModelReply((Text(text="I look.\n"), CALL), "tool_use", Usage(input=9, output=4), None)
RESULT = ToolMessage(
    call_id="c1",
    name="read_file",
    observation=Observation(text="1 failed in 0.12s, /tmp/pytest-1/x.py, commit 3f2a9bc"),
)
LAST = ModelReply((Text(text="Done."),), "stop", Usage(input=20, output=2), None)


def _conversation() -> list[Message]:
    return [GOAL, AssistantMessage(parts=FIRST.parts, served_by=SERVED), RESULT]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    record(path, ask(GOAL, turn=0), FIRST, SERVED)
    record(path, ask(*_conversation(), turn=1), LAST, SERVED)
    return path


async def _replay(path: Path | str, *messages: Message, turn: int) -> ModelReply:
    return await Replay(str(path)).complete(ask(*messages, turn=turn), CallProgress())


async def test_what_was_recorded_is_replayed(recorded: Path) -> None:
    assert await _replay(recorded, GOAL, turn=0) == FIRST
    assert await _replay(recorded, *_conversation(), turn=1) == LAST


async def test_durations_paths_and_ids_may_differ(recorded: Path) -> None:
    other = RESULT.model_copy(
        update={
            "observation": Observation(text="1 failed in 3.9s, /tmp/elsewhere/y.py, commit 77aa1cd")
        }
    )
    *before, _ = _conversation()
    assert await _replay(recorded, *before, other, turn=1) == LAST


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"observation": Observation(text="2 failed")}, "got:\n2 failed"),
        ({"observation": Observation(text=RESULT.observation.text, is_error=True)}, "is_error"),
        ({"call_id": "c9"}, "expected the result of call c1, got that of c9"),
    ],
)
async def test_a_departure_shows_both_sides(
    recorded: Path, change: dict[str, object], told: str
) -> None:
    *before, _ = _conversation()
    with pytest.raises(ProviderError) as caught:
        await _replay(recorded, *before, RESULT.model_copy(update=change), turn=1)
    assert caught.value.failure is Failure.REPLAY_DIVERGED
    assert not caught.value.retryable
    assert told in str(caught.value)
    assert f"turn 2 of {recorded}" in str(caught.value)


async def test_a_message_too_many_or_too_few(recorded: Path) -> None:
    extra = UserMessage(origin="human", text="hurry")
    for messages in ([*_conversation(), extra], _conversation()[:-1]):
        with pytest.raises(ProviderError, match="expected 1 messages since the last reply"):
            await _replay(recorded, *messages, turn=1)


async def test_a_conversation_longer_than_the_record(recorded: Path) -> None:
    with pytest.raises(ProviderError, match="ends after turn 2, and turn 3 is asked for"):
        await _replay(recorded, *_conversation(), turn=2)


async def test_a_turn_recorded_again_replaces_the_first_try(recorded: Path) -> None:
    again = ModelReply((Text(text="Done again."),), "stop", Usage(), None)
    record(recorded, ask(*_conversation(), turn=1), again, SERVED)
    assert await _replay(recorded, *_conversation(), turn=1) == again
    assert len(load(str(recorded)).turns) == 2


async def test_a_new_run_begins_the_file_anew(recorded: Path) -> None:
    record(recorded, ask(GOAL, turn=0), LAST, SERVED)
    assert len(load(str(recorded)).turns) == 1


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.text(max_size=60))
def test_any_text_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, seen: str, said: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    said = said.encode("utf-8", "replace").decode()
    reply = ModelReply((Text(text=said),), "stop", Usage(), None)
    record(path, ask(UserMessage(origin="goal", text=seen), turn=0), reply, SERVED)
    (turn,) = load(str(path)).turns
    assert turn.reply.parts == (Text(text=said),)
    assert normalise(turn.expect[0].text or "") == normalise(seen)


@given(st.text(max_size=200))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the recording is empty"),
        ("format: 2\n---\nexpect: []\n", "header.format"),
        ("format: 1\n", "turns"),
        ("format: 1\n---\nexpect: []\n", "turns.0.reply"),
        (
            "format: 1\n---\nexpect: [{role: user}]\nreply: {parts: [], finish: stop}\n",
            "give either `text` or `contains`",
        ),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_bad_recording_names_file_and_field(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(RecordingError) as caught:
        load(str(path))
    assert told in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_recording_that_is_not_there() -> None:
    with pytest.raises(RecordingError, match=r"/nowhere/x\.yaml"):
        load("/nowhere/x.yaml")
    with pytest.raises(RecordingError, match="package:io_harness/nothing"):
        load("package:io_harness/nothing.yaml")
    with pytest.raises(RecordingError, match="package:no_such_package"):
        load("package:no_such_package/x.yaml")
