"""The decoder gives the same events however the bytes are cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.providers.sse import ServerEvent, SseDecoder

# No CR or LF: those end lines. Everything else may stand in data, U+2028 and U+0085 too.
_text = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=30)
_names = st.sampled_from(["message", "error", "content_block_delta", "日本"])
_events = st.builds(
    ServerEvent, data=st.lists(_text, min_size=1, max_size=3).map("\n".join), event=_names
)
_noise = st.sampled_from([": a comment", ":", "id: 7", "retry: 100", "unknown", "data_x: y"])


@st.composite
def _streams(draw: st.DrawFn) -> tuple[list[ServerEvent], bytes]:
    """Events, and bytes that say them with any line end, comments and a byte order mark.

    One kind of line end per stream: a lone CR before a blank line's LF would read as one CRLF.
    """
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    events = draw(st.lists(_events, max_size=5))
    text = draw(st.sampled_from(["", "\ufeff"]))
    for event in events:
        lines = [f"event: {event.event}"]
        lines += [f"data: {line}" for line in event.data.split("\n")]
        lines.insert(draw(st.integers(0, len(lines))), draw(_noise))
        for line in [*lines, ""]:
            text += line + end
        if draw(st.booleans()):
            text += end  # a blank line between events says nothing
    return events, text.encode()


def _cuts(data: bytes, positions: list[int]) -> list[bytes]:
    edges = [0, *sorted({p % (len(data) + 1) for p in positions}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(_streams(), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_chunking_gives_the_events_that_were_sent(
    stream: tuple[list[ServerEvent], bytes], positions: list[int]
) -> None:
    events, data = stream
    decoder = SseDecoder()
    got = [event for chunk in _cuts(data, positions) for event in decoder.feed(chunk)]
    assert got == events


@given(_streams())
def test_byte_by_byte(stream: tuple[list[ServerEvent], bytes]) -> None:
    events, data = stream
    decoder = SseDecoder()
    assert [e for byte in data for e in decoder.feed(bytes([byte]))] == events


def test_an_event_without_its_blank_line_is_not_dispatched() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b'data: {"a": 1}\n') == []
    assert decoder.feed(b"\n") == [ServerEvent('{"a": 1}')]


def test_a_crlf_cut_in_two_ends_one_line() -> None:
    decoder = SseDecoder()
    got = [
        e for piece in (b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") for e in decoder.feed(piece)
    ]
    assert got == [ServerEvent("a\nb")]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert SseDecoder().feed(b"data:  x\ndata:y\n\n") == [ServerEvent(" x\ny")]


def test_an_event_without_data_is_nothing() -> None:
    assert SseDecoder().feed(b"event: ping\n\ndata: x\n\n") == [ServerEvent("x")]


def test_bytes_that_are_not_utf8_don_t_stop_the_stream() -> None:
    assert SseDecoder().feed(b"data: \xff\xfe\n\ndata: y\n\n") == [
        ServerEvent("\ufffd\ufffd"),
        ServerEvent("y"),
    ]
