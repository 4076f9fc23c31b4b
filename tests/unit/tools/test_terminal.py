"""What a terminal would show in the end, whatever the pieces in which the output came."""

import os
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from io_harness.activities.tools.terminal import Terminal


def shown(data: bytes, cuts: tuple[int, ...] = ()) -> str:
    terminal = Terminal()
    out = b""
    bounds = [0, *sorted(c for c in cuts if c < len(data)), len(data)]
    for begin, end in pairwise(bounds):
        out += terminal.feed(data[begin:end])
    return (out + terminal.finish()).decode()


CASES = {
    "plain": (b"a\nb\n", "a\nb\n"),
    "CRLF": (b"a\r\nb\r\n", "a\nb\n"),
    "progress on one line": (b"  1%\r 50%\r100%\ndone\n", "100%\ndone\n"),
    "progress, then silence": (b"  1%\r 50%\r", " 50%"),
    "progress that clears its line": (b"working...\r\x1b[Kdone\n", "done\n"),
    "progress that clears before it returns": (b"working...\x1b[2K\rdone\n", "done\n"),
    "progress over several lines": (
        b"a: 1%\nb: 1%\n\x1b[2Aa: 50%\nb: 50%\n\x1b[2A\x1b[Ka: ok\n\x1b[Kb: ok\nend\n",
        "a: ok\nb: ok\nend\n",
    ),
    "a return without anything drawn": (b"abc\rdef\r\x1b[5C\n", "def\n"),
    "colours": (b"\x1b[1;31merror\x1b[0m: \x1b[38;5;12mx\x1b[m\n", "error: x\n"),
    "title and link": (
        b"\x1b]0;title\x07a \x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\\n",
        "a link\n",
    ),
    "charset and keypad": (b"\x1b(B\x1b=a\x1b>\x1b7\x1b8\n", "a\n"),
    "a stray escape before a title": (b"\x1b\x1b]0;t\x07a\n", "a\n"),
    "a stray escape before a colour": (b"\x1b[\x1b[31mAb\n", "[Ab\n"),
    "backspace": (b"abc\x08\x08X\n", "aX\n"),
    "bell": (b"a\x07b\n", "ab\n"),
    "other controls are escaped": (b"a\x00b\x01\x7f\n", "a\\x00b\\x01\\x7f\n"),
    "C1 controls are escaped": ("a\x9bb\n".encode(), "a\\x9bb\n"),
    "tab": (b"a\tb\n", "a\tb\n"),
    "invalid UTF-8": (b"caf\xe9 \xff\n", "caf\\xe9 \\xff\n"),
    "UTF-8": ("größe 🎉\n".encode(), "größe 🎉\n"),
    "an escape that never ends": (b"a\x1b[", "a["),
    "an escape before text": (b"a\x1b\xc3\xa4\n", "aä\n"),
    "unknown cursor movements": (b"a\x1b[5Cb\x1b[?25l\n", "ab\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_shown(name: str) -> None:
    data, expected = CASES[name]
    assert shown(data) == expected


PIECES = st.lists(
    st.sampled_from(
        [
            b"a",
            b"bc",
            b"\n",
            b"\r",
            b"\r\n",
            b"\x1b[K",
            b"\x1b[2A",
            b"\x1b[31m",
            b"\xc3\xa4",
            b"\xff",
            b"\x08",
            b"\x1b]0;t\x07",
            b"\x1b",
            b"\x00",
            b"[",
            b"A",
        ]
    ),
    max_size=30,
).map(b"".join)


@settings(max_examples=500)
@given(PIECES, st.lists(st.integers(0, 60), max_size=5))
def test_the_pieces_do_not_matter(data: bytes, cuts: list[int]) -> None:
    assert shown(data, tuple(cuts)) == shown(data)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_give_printable_text(data: bytes, cuts: list[int]) -> None:
    text = shown(data, tuple(cuts))
    assert text == shown(data)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in text)


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\n")))
def test_plain_text_is_unchanged(text: str) -> None:
    assert shown(text.encode()) == text


@pytest.mark.parametrize(
    "unit",
    [b"x" * 1000, b"y\n", b"50%\r", b"\x1b[31m", b"\x1b]0;never ends ", b"line\n\x1b[1A", b"\xff"],
    ids=["one line", "lines", "progress", "colours", "title", "redrawn", "invalid"],
)
def test_memory_is_constant(unit: bytes) -> None:
    """2 MB of anything leave little behind. (50 MB through a real command: test_commands.)"""
    terminal = Terminal()
    chunk = unit * (65_536 // len(unit))
    for _ in range(2_000_000 // len(chunk)):
        terminal.feed(chunk)
    held = len(terminal.finish())
    assert held < 600_000


def test_what_settled_is_given_out() -> None:
    terminal = Terminal()
    given_out = terminal.feed(os.linesep.join("line" for _ in range(1000)).encode())
    assert given_out.count(b"line") > 900
