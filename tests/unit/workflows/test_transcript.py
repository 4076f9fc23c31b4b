"""Digest chain, pages and folds of a transcript."""

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.workflows.fold import CARRIED_BYTES, cut_at, lightened
from io_harness.workflows.messages import (
    AssistantMessage,
    Image,
    Message,
    ModelRef,
    Observation,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from io_harness.workflows.stubs import stub
from io_harness.workflows.transcript import PAGE_BYTES, Transcript, TranscriptPage

REF = ModelRef(provider="p", name="m")


def turn(index: int, size: int = 10, calls: int = 1) -> list[Message]:
    ids = [f"{index}-{c}" for c in range(calls)]
    parts = tuple(ToolCall(id=i, name="read_file", arguments={"path": "a"}) for i in ids)
    results = [
        ToolMessage(call_id=i, name="read_file", observation=Observation(text="é" * size))
        for i in ids
    ]
    return [AssistantMessage(parts=(Text(text="t"), *parts), served_by=REF), *results]


def conversation(turns: int, size: int = 10) -> list[Message]:
    messages: list[Message] = [UserMessage(origin="goal", text="do it")]
    for index in range(turns):
        messages += turn(index, size, calls=1 + index % 3)
    return messages


def test_the_digest_of_what_a_worker_reads_back_is_the_workflows() -> None:
    transcript = Transcript(conversation(20))
    page = TranscriptPage.model_validate_json(transcript.page(0).model_dump_json())
    assert page.digests[-1] == transcript.mark.digest
    assert transcript.mark.upto == len(transcript) == len(page.digests)
    assert Transcript(page.messages).mark == transcript.mark
    assert len(set(page.digests)) == len(page.digests)


def test_pages_stay_under_the_servers_limit_and_lose_nothing() -> None:
    transcript = Transcript(conversation(60, size=16_000))
    read: list[Message] = []
    while len(read) < len(transcript):
        page = transcript.page(len(read))
        assert len(page.model_dump_json().encode()) < PAGE_BYTES * 1.5
        read += page.messages
    assert tuple(read) == transcript.messages


def test_a_message_larger_than_a_page_is_a_page_of_its_own() -> None:
    transcript = Transcript(turn(0, size=PAGE_BYTES))
    assert len(transcript.page(1).messages) == 1


@given(st.integers(1, 40), st.integers(1, 5_000), st.integers(100, 100_000))
def test_a_fold_never_splits_a_call_from_its_result(turns: int, size: int, keep: int) -> None:
    messages = tuple(conversation(turns, size))
    cut = cut_at(messages, keep)
    if cut is None:
        return
    assert isinstance(messages[cut], AssistantMessage)
    asked = {c.id for m in messages[cut:] if isinstance(m, AssistantMessage) for c in m.calls}
    answered = {m.call_id for m in messages[cut:] if isinstance(m, ToolMessage)}
    assert asked == answered
    assert cut > 2, "a fold must make the transcript shorter"
    tail = sum(len(m.model_dump_json()) for m in messages[cut:])
    starts = [i for i, m in enumerate(messages) if isinstance(m, AssistantMessage)]
    assert tail <= keep or cut == starts[-1]


def test_a_conversation_of_one_turn_cannot_be_folded() -> None:
    assert cut_at(tuple(conversation(1)), 1) is None
    assert cut_at(tuple(conversation(3)), 1) is not None


def test_a_packed_transcript_is_the_same_and_small() -> None:
    transcript = Transcript(conversation(50, size=4_000))
    packed = transcript.pack()
    assert Transcript.unpack(packed).mark == transcript.mark
    assert len(packed) < transcript.bytes / 4


def test_a_stub_says_where_the_whole_result_is() -> None:
    seen = Observation(text="é" * 2_000, spill="out-0123456789abcdef")
    long = ToolMessage(call_id="1", name="read_file", observation=seen)
    shorter = stub(long)
    assert isinstance(shorter, ToolMessage)
    assert "4,000 bytes" in shorter.observation.text
    assert 'read_output("out-0123456789abcdef")' in shorter.observation.text
    assert stub(shorter) == shorter
    for kept in (
        long.model_copy(update={"observation": Observation(text="é" * 2_000)}),
        long.model_copy(update={"observation": Observation(text="é", spill="out-1")}),
        UserMessage(origin="goal", text="é" * 2_000),
    ):
        assert stub(kept) == kept, "nothing is taken out that can't be read again"


def test_a_stub_holds_no_picture() -> None:
    picture = Image(media_type="image/png", blob="b", bytes=9)
    seen = ToolMessage(
        call_id="1", name="read_file", observation=Observation(text="a.png", images=(picture,))
    )
    shorter = stub(seen)
    assert isinstance(shorter, ToolMessage)
    assert shorter.observation.images == ()
    assert shorter.observation.text.startswith("a.png\n[1 image no longer shown")
    assert stub(shorter) == shorter


def outputs(texts: list[str]) -> Transcript:
    """Turns of one call each, whose outputs are kept on a worker."""
    messages = conversation(0)
    for index, text in enumerate(texts):
        said, result = turn(index)
        assert isinstance(result, ToolMessage)
        seen = Observation(text=text, spill=f"out-{index:016x}")
        messages += [said, result.model_copy(update={"observation": seen})]
    return Transcript(messages)


@pytest.mark.parametrize("turns", [20, 60, 160])
def test_what_hardly_compresses_crosses_continue_as_new_as_stubs(turns: int) -> None:
    noise = [base64.b64encode(random.Random(i).randbytes(3_072)).decode() for i in range(turns)]
    transcript = outputs(noise)
    shorter = lightened(transcript)
    assert len(shorter.pack()) < CARRIED_BYTES * 1.05
    assert (shorter is transcript) == (turns == 20)
    assert shorter.messages[-20:] == transcript.messages[-20:]
    for message in shorter.messages:
        if isinstance(message, ToolMessage) and message not in transcript.messages:
            assert f'read_output("{message.observation.spill}")' in message.observation.text


def test_text_crosses_continue_as_new_as_it_is() -> None:
    transcript = outputs([f"test_{i} PASSED in {i * 7 % 100} ms\n" * 120 for i in range(160)])
    assert transcript.bytes > 5 * CARRIED_BYTES
    assert lightened(transcript) is transcript
