"""Whatever the transcript looks like, providers see turns that pair up."""

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.providers.pairing import (
    LOST_RESULT,
    AssistantTurn,
    Turn,
    UserTurn,
    fit_name,
    turns,
)
from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    MalformedToolCall,
    Message,
    ModelRef,
    Observation,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

SERVED = ModelRef(provider="a", name="m")

_texts = st.sampled_from(["", " ", "hello", "ünï"])
_ids = st.sampled_from(["", "c1", "c2", "ü!", "x" * 80])
_names = st.sampled_from(["read_file", "odd name!", ""])
_parts: st.SearchStrategy[AssistantPart] = st.one_of(
    st.builds(Text, text=_texts),
    st.builds(Reasoning, provider=st.sampled_from(["a", "b"]), data=st.just({"x": 1})),
    st.builds(ToolCall, id=_ids, name=_names, arguments=st.just({})),
    st.builds(MalformedToolCall, id=_ids, name=_names, raw=st.just("{"), error=st.just("cut")),
)
_messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        AssistantMessage,
        parts=st.lists(_parts, max_size=4).map(tuple),
        served_by=st.just(SERVED),
    ),
    st.builds(UserMessage, origin=st.just("nudge"), text=_texts),
    st.builds(
        ToolMessage,
        call_id=_ids,
        name=_names,
        observation=st.builds(Observation, text=_texts, is_error=st.booleans()),
    ),
)
_transcripts = st.lists(_messages, max_size=12)


def _calls(turn: Turn) -> list[ToolCall]:
    if isinstance(turn, UserTurn):
        return []
    return [part for part in turn.parts if isinstance(part, ToolCall)]


@given(_transcripts)
def test_each_call_has_exactly_one_result_in_the_next_turn(messages: Sequence[Message]) -> None:
    conversation = turns(messages, "a")
    ids: list[str] = []
    for position, turn in enumerate(conversation):
        asked = [call.id for call in _calls(turn)]
        ids += asked
        following = conversation[position + 1 : position + 2]
        answered = [r.call_id for t in following if isinstance(t, UserTurn) for r in t.results]
        if isinstance(turn, AssistantTurn):
            assert answered == asked
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one) for one in ids)


@given(_transcripts)
def test_nothing_empty_and_nothing_foreign_is_sent(messages: Sequence[Message]) -> None:
    for turn in turns(messages, "a"):
        match turn:
            case AssistantTurn():
                assert turn.parts
                for part in turn.parts:
                    assert not isinstance(part, Text) or part.text.strip()
                    assert not isinstance(part, Reasoning) or part.provider == "a"
                    assert not isinstance(part, ToolCall) or fit_name(part.name) == part.name
            case UserTurn():
                assert turn.results or turn.texts
                assert all(text.strip() for text in turn.texts)
                assert all(result.text.strip() for result in turn.results)


@given(_transcripts, _transcripts)
def test_a_prefix_stays_the_same_as_the_transcript_grows(
    messages: Sequence[Message], more: Sequence[Message]
) -> None:
    """Else no provider could cache it."""
    before = turns(messages, "a")
    after = turns([*messages, *more], "a")
    assert after[: max(0, len(before) - 1)] == before[:-1]


@given(_transcripts)
def test_no_result_is_lost(messages: Sequence[Message]) -> None:
    told = [
        text
        for turn in turns(messages, "a")
        if isinstance(turn, UserTurn)
        for text in (*(r.text for r in turn.results), *turn.texts)
    ]
    shown = [m.observation.text for m in messages if isinstance(m, ToolMessage)]
    assert all(any(text.strip() in line for line in told) for text in shown)


def _assistant(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(parts=parts, served_by=SERVED)


def _result(call_id: str, text: str) -> ToolMessage:
    return ToolMessage(call_id=call_id, name="t", observation=Observation(text=text))


def test_results_follow_the_order_of_the_calls() -> None:
    first, second = (ToolCall(id=i, name="t", arguments={}) for i in ("c1", "c2"))
    _, answers = turns([_assistant(first, second), _result("c2", "2"), _result("c1", "1")], "a")
    assert isinstance(answers, UserTurn)
    assert [(r.call_id, r.text) for r in answers.results] == [("c1", "1"), ("c2", "2")]


def test_two_calls_of_one_id_get_their_own_results() -> None:
    same = [ToolCall(id="c", name="t", arguments={"n": n}) for n in (1, 2)]
    made, answers = turns([_assistant(*same), _result("c", "one"), _result("c", "two")], "a")
    assert isinstance(answers, UserTurn)
    assert [c.id for c in _calls(made)] == [r.call_id for r in answers.results]
    assert [r.text for r in answers.results] == ["one", "two"]


def test_a_call_without_a_result_is_told_to_be_lost() -> None:
    call = ToolCall(id="c", name="t", arguments={})
    for following in ([], [UserMessage(origin="human", text="go on")]):
        _, answers = turns([_assistant(call), *following], "a")
        assert isinstance(answers, UserTurn)
        assert (answers.results[0].text, answers.results[0].is_error) == (LOST_RESULT, True)


def test_a_malformed_call_is_shown_as_it_was_written() -> None:
    call = MalformedToolCall(id="c", name="t", raw='{"a": ', error="cut")
    made, _ = turns([_assistant(call)], "a")
    assert _calls(made)[0].arguments == {"malformed_arguments": '{"a": '}
