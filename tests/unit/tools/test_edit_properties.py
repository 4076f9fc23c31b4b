"""Properties of edits and patches over arbitrary texts, line ends and encodings."""

from difflib import unified_diff

from hypothesis import assume, given
from hypothesis import strategies as st

from io_harness.activities.tools.edit_file import substitute
from io_harness.activities.tools.errors import AmbiguousMatch, BinaryFile, UnsupportedEncoding
from io_harness.activities.tools.hunks import apply_hunks
from io_harness.activities.tools.patch_format import parse_patch
from io_harness.activities.tools.splice import Normal
from io_harness.activities.tools.textfile import Encoding, TextFile, decode, split_lines

# Few distinct lines, so that matches are often ambiguous and diffs have much to choose from; some that
# look like parts of a patch, or hold characters at which only Python splits lines.
CONTENT = st.sampled_from(
    ["", "a", "b", "c", "  a", "-- a", "++ b", "@@ -1 +1 @@", "ü", "x\x0cy", "x\u2028y", "\\ No"]
)
UNIFORM = st.sampled_from(["\n", "\r\n"])
Lines = list[tuple[str, str]]


@st.composite
def texts(draw: st.DrawFn, *, mixed: bool) -> Lines:
    contents = draw(st.lists(CONTENT, max_size=12))
    uniform = draw(UNIFORM)
    ends = [draw(UNIFORM) if mixed else uniform for _ in contents]
    if contents and contents[-1] and draw(st.booleans()):
        ends[-1] = ""
    return list(zip(contents, ends, strict=True))


def joined(lines: Lines) -> str:
    return "".join(content + end for content, end in lines)


def file_of(text: str) -> TextFile:
    return TextFile(text, Encoding("utf-8"), "f")


def diff_of(before: Lines, after: Lines, *, exact: bool) -> str:
    """What `git diff` prints, with few context lines; CRs only where asked for."""

    def shown(lines: Lines) -> list[str]:
        kept = {"\r\n": "\r\n" if exact else "\n", "\n": "\n", "": ""}
        return [content + kept[end] for content, end in lines]

    printed = unified_diff(shown(before), shown(after), "a/f", "b/f", n=1)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in printed
    )


def applied(before: Lines, patch: str) -> str:
    (file,) = parse_patch(patch)
    return apply_hunks(file_of(joined(before)), file.hunks)


@given(texts(mixed=False), texts(mixed=False), UNIFORM)
def test_a_diff_applies_and_reverses(before: Lines, after: Lines, end: str) -> None:
    before = [(content, e and end) for content, e in before]
    after = [(content, e and end) for content, e in after]
    # An empty file has no line end that new lines could take.
    assume(before and after and joined(before) != joined(after))
    assume(end == "\n" or (len(before) > 1 and len(after) > 1))
    assert applied(before, diff_of(before, after, exact=False)) == joined(after)
    assert applied(after, diff_of(after, before, exact=False)) == joined(before)


@given(texts(mixed=True), texts(mixed=True))
def test_a_diff_with_its_own_line_ends_applies_and_reverses(before: Lines, after: Lines) -> None:
    forth, back = diff_of(before, after, exact=True), diff_of(after, before, exact=True)
    assume(before and after and "\r" in forth and "\r" in back)
    assert applied(before, forth) == joined(after)
    assert applied(after, back) == joined(before)


@given(texts(mixed=True), st.data())
def test_an_edit_touches_nothing_else(lines: Lines, data: st.DataObject) -> None:
    text = joined(lines)
    normal = Normal(text)
    assume(normal.text)
    start = data.draw(st.integers(0, len(normal.text) - 1))
    stop = data.draw(st.integers(start + 1, len(normal.text)))
    old = normal.text[start:stop]
    new = data.draw(st.lists(CONTENT, max_size=4).map("\n".join))
    assume(old != new and "\r" not in old)
    try:
        edited, _ = substitute(file_of(text), old, new, 1)
    except AmbiguousMatch:
        overlapping = [n for n in range(len(normal.text)) if normal.text.startswith(old, n)]
        assert len(overlapping) > 1
        return
    before, after = text[: normal.original(start)], text[normal.original(stop) :]
    assert edited.startswith(before)
    assert edited.endswith(after)
    assert Normal(edited).text == normal.text[:start] + new + normal.text[stop:]
    kept = [end for _, end in split_lines(text)]
    assert {end for _, end in split_lines(edited)} <= {*kept, file_of(text).line_end, ""}


@given(texts(mixed=False), st.data())
def test_an_edit_reverses(lines: Lines, data: st.DataObject) -> None:
    text = joined(lines)
    normal = Normal(text)
    assume(normal.text and any(end for _, end in lines))
    start = data.draw(st.integers(0, len(normal.text) - 1))
    stop = data.draw(st.integers(start + 1, len(normal.text)))
    old = normal.text[start:stop]
    new = data.draw(st.lists(CONTENT, min_size=1, max_size=4).map("\n".join))
    assume(old != new and new)
    try:
        edited, _ = substitute(file_of(text), old, new, 1)
        restored, _ = substitute(file_of(edited), new, old, 1)
    except AmbiguousMatch:
        assume(False)
        return
    # A file left without any line end has forgotten which it had.
    assume(any(end for _, end in split_lines(edited)))
    assert restored == text


@given(st.text(st.characters(codec="utf-16"), min_size=1), st.sampled_from(
    ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]))  # fmt: skip
def test_decoding_gives_the_same_bytes_back(text: str, name: str) -> None:
    assume("\0" not in text)  # the mark of UTF-16-LE and a NUL are the mark of UTF-32-LE
    data = ("\ufeff" + text).encode(name)
    file = decode(data, "f")
    assert file.to_bytes(file.text) == data
    assert file.text == text


@given(st.binary(min_size=1).filter(lambda data: b"\0" not in data))
def test_any_bytes_that_are_decoded_come_back(data: bytes) -> None:
    try:
        file = decode(data, "f")
    except (BinaryFile, UnsupportedEncoding):
        return
    assert file.to_bytes(file.text) == data
