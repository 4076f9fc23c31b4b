"""Byte-fidelity cases: a file, one tool call, and either the bytes that must result or the code of a
clean refusal, after which the file must be what it was."""

from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True)
class Case:
    name: str
    before: bytes | None
    tool: str
    arguments: dict[str, JsonValue]
    expected: bytes | str
    """Bytes of the file afterwards, or an error code."""


def edit(name: str, before: bytes, old: str, new: str, expected: bytes | str, **more: int) -> Case:
    return Case(name, before, "edit_file", {"path": "f", "old": old, "new": new, **more}, expected)


def write(name: str, before: bytes | None, content: JsonValue, expected: bytes | str) -> Case:
    return Case(name, before, "write_file", {"path": "f", "content": content}, expected)


def patch(name: str, before: bytes | None, text: str, expected: bytes | str) -> Case:
    return Case(name, before, "apply_patch", {"patch": text}, expected)


def unified(*lines: str) -> str:
    return "\n".join(["--- a/f", "+++ b/f", *lines, ""])


def v4a(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", "*** Update File: f", *lines, "*** End Patch"])


UTF8_BOM = b"\xef\xbb\xbf"
BINARY = b"\x7fELF\x02\x01\x01\x00\x00\x00old\x00\xff\xfe"
SJIS = "# -*- coding: shift_jis -*-\ns = '表示'\n".encode("shift_jis")

EDITS = (
    edit("LF", b"a\nb\nc\n", "b", "B", b"a\nB\nc\n"),
    edit("CRLF is kept", b"a\r\nb\r\nc\r\n", "b", "B", b"a\r\nB\r\nc\r\n"),
    edit("CRLF, several lines", b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\nc\r\n"),
    edit("CRLF, old written with CRLF", b"a\r\nb\r\n", "a\r\nb", "a\r\nB", b"a\r\nB\r\n"),
    edit("mixed: other lines keep theirs", b"a\r\nb\nc\r\nd\n", "b", "B", b"a\r\nB\nc\r\nd\n"),
    edit(
        "mixed: a line that stays inside the match keeps its end",
        b"a\nb\r\nc\r\nd\r\n", "a\nb\nc", "a\nb\nC", b"a\nb\r\nC\r\nd\r\n",
    ),
    edit(
        "mixed: an inserted line takes the dominant end",
        b"a\r\nb\r\nc\nd\r\n", "c\n", "c\nnew\n", b"a\r\nb\r\nc\nnew\r\nd\r\n",
    ),
    edit(
        "mixed: a changed line keeps its own end",
        b"a\r\nb\r\nc\nd\r\n", "c\nd", "C\nd", b"a\r\nb\r\nC\nd\r\n",
    ),
    edit("classic Mac ends", b"a\rb\rc\r", "b\n", "b\nx\n", b"a\rb\rx\rc\r"),
    edit("a lone CR in an LF file is a character", b"10%\r20%\nx\n", "x", "y", b"10%\r20%\ny\n"),
    edit("a lone CR in the match", b"10%\r20%\nx\n", "10%\r20%", "30%", b"30%\nx\n"),
    edit("no final newline", b"a\nb", "b", "B", b"a\nB"),
    edit("no final newline, edit above", b"a\nb", "a", "A", b"A\nb"),
    edit("final blank lines", b"a\n\n\n", "a", "A", b"A\n\n\n"),
    edit("trailing blanks", b"a  \nb\t\nc\n", "c", "C", b"a  \nb\t\nC\n"),
    edit("form feed and other separators", b"a\x0cb\xe2\x80\xa8c\x0bd\nx\n", "x", "y",
         b"a\x0cb\xe2\x80\xa8c\x0bd\ny\n"),
    edit("UTF-8", "größe = 1\n".encode(), "größe = 1", "größe = 2", "größe = 2\n".encode()),
    edit("UTF-8 mark", UTF8_BOM + b"a\nb\n", "a", "A", UTF8_BOM + b"A\nb\n"),
    edit("UTF-8, composed and decomposed differ", "e\u0301\n\u00e9\n".encode(), "\u00e9", "e",
         "e\u0301\ne\n".encode()),
    edit("beyond the BMP", "a 🎉\nb\n".encode(), "🎉", "🎊", "a 🎊\nb\n".encode()),
    edit("Latin-1", b"caf\xe9\nx = 1\n", "x = 1", "x = 2", b"caf\xe9\nx = 2\n"),
    edit("Latin-1, the text itself", b"caf\xe9\n", "café", "cafés", b"caf\xe9s\n"),
    edit("Latin-1, not encodable", b"caf\xe9\n", "café", "日本", "not_encodable"),
    edit("Windows-1252 quotes", b"\x93a\x94\nb\n", "“a”", "“c”", b"\x93c\x94\nb\n"),
    edit("declared ISO-8859-15", b"# coding: iso-8859-15\nx = '\xa4'\n", "€", "€€",
         b"# coding: iso-8859-15\nx = '\xa4\xa4'\n"),
    edit("declared Shift-JIS: a backslash inside a character", SJIS, "s = '表示'", "s = '表'",
         "# -*- coding: shift_jis -*-\ns = '表'\n".encode("shift_jis")),
    edit("declared in XML", b'<?xml version="1.0" encoding="ISO-8859-2"?>\n<a>\xb1</a>\n', "ą", "ć",
         b'<?xml version="1.0" encoding="ISO-8859-2"?>\n<a>\xe6</a>\n'),
    edit("mostly UTF-8 with a stray byte", "äöü\n".encode() + b"\xff\nx\n", "x", "ß",
         "äöü\n".encode() + b"\xff\n" + "ß\n".encode()),
    edit("UTF-16 LE", "\ufeffa\r\nb\r\n".encode("utf-16-le"), "b", "ü",
         "\ufeffa\r\nü\r\n".encode("utf-16-le")),
    edit("UTF-16 BE", "\ufeffa\nb\n".encode("utf-16-be"), "a\n", "a\nx\n",
         "\ufeffa\nx\nb\n".encode("utf-16-be")),
    edit("UTF-16, bytes that look like the text", "\ufeff\u6161a\n".encode("utf-16-le"), "a", "b",
         "\ufeff\u6161b\n".encode("utf-16-le")),
    edit("UTF-16, cut in a character", "\ufeffa".encode("utf-16-le") + b"\x41", "a", "b",
         "unsupported_encoding"),
    edit("binary", BINARY, "old", "new", "binary_file"),
    edit("two matches", b"x\ny\nx\n", "x", "z", "ambiguous_match"),
    edit("two matches, expected", b"x\ny\nx\n", "x", "z", b"z\ny\nz\n", expected_count=2),
    edit("one match, two expected", b"x\ny\n", "x", "z", "ambiguous_match", expected_count=2),
    edit("matches that overlap", b"aaa\n", "aa", "b", "ambiguous_match"),
    edit("matches that overlap, expected", b"aaaa\n", "aa", "b", "ambiguous_match",
         expected_count=3),
    edit("no match", b"a\n", "b", "c", "no_match"),
    edit("no match by a blank", b"\tif x:\n", "    if x:", "    if y:", "no_match"),
    edit("old equals new", b"a\n", "a", "a", "identical_text"),
    edit("old equals new but for line ends", b"a\nb\n", "a\nb", "a\r\nb", "identical_text"),
    edit("old is empty", b"a\n", "", "x", "empty_text"),
    edit("old is empty, and so is the file", b"", "", "x", "empty_text"),
    edit("delete a line", b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
    edit("delete everything", b"a\n", "a\n", "", b""),
    edit("regex and template characters", b"$1 \\n {x} %s\n", "$1 \\n {x} %s", "\\1$&{{%%",
         b"\\1$&{{%%\n"),
    edit("a NUL would make it binary", b"a\n", "a", "a\0", "binary_file"),
    edit("a lone surrogate is no text", b"a\n", "a", "\ud800", "invalid_arguments"),
    edit("join of CRLF lines", b"a\r\nb\r\n", "a\nb", "a b", b"a b\r\n"),
    edit("split of a CRLF line", b"a b\r\nc\r\n", "a b", "a\nb", b"a\r\nb\r\nc\r\n"),
    edit("the same line with both ends", b"x\r\nx\n", "x\nx", "y\nx", b"y\r\nx\n"),
)  # fmt: skip

WRITES = (
    write("new file", None, "a\nb\n", b"a\nb\n"),
    write("new file, CRLF as given", None, "a\r\nb\r\n", b"a\r\nb\r\n"),
    write("new file, no final newline as given", None, "a", b"a"),
    write("new and empty", None, "", b""),
    write("CRLF is kept", b"a\r\nb\r\n", "a\nx\nb\n", b"a\r\nx\r\nb\r\n"),
    write("mixed ends are kept", b"a\r\nb\nc\r\nd\r\n", "a\nb\nC\nd\n", b"a\r\nb\nC\r\nd\r\n"),
    write("CRLF on purpose", b"a\nb\n", "a\r\nb\r\n", b"a\r\nb\r\n"),
    write("mark is kept", UTF8_BOM + b"a\n", "b\n", UTF8_BOM + b"b\n"),
    write("mark is not doubled", UTF8_BOM + b"a\n", "\ufeffb\n", UTF8_BOM + b"b\n"),
    write("UTF-16 is kept", "\ufeffa\n".encode("utf-16-le"), "ß\n",
          "\ufeffß\n".encode("utf-16-le")),
    write("Latin-1 is kept", b"caf\xe9\n", "thé\n", b"th\xe9\n"),
    write("Latin-1, not encodable", b"caf\xe9\n", "茶\n", "not_encodable"),
    write("final newline as given", b"a\n", "b", b"b"),
    write("same content", b"a\r\n", "a\n", "identical_text"),
    write("binary is not overwritten", BINARY, "text\n", "binary_file"),
    write("content is null", b"a\n", None, "invalid_arguments"),
    write("content is a number", b"a\n", 5, "invalid_arguments"),
    write("content is a list", b"a\n", ["b"], "invalid_arguments"),
    Case("content is missing", b"a\n", "write_file", {"path": "f"}, "invalid_arguments"),
    write("an empty file is filled", b"", "a\n", b"a\n"),
)  # fmt: skip

PATCHES = (
    patch("unified", b"a\nb\nc\n", unified("@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"),
          b"a\nB\nc\n"),
    patch("unified on CRLF", b"a\r\nb\r\nc\r\n",
          unified("@@ -1,3 +1,4 @@", " a", "-b", "+B", "+x", " c"), b"a\r\nB\r\nx\r\nc\r\n"),
    patch("unified with its own CRs", b"a\r\nb\nc\r\n",
          unified("@@ -1,3 +1,4 @@", " a\r", "-b", "+b\r", "+x", " c\r"), b"a\r\nb\r\nx\nc\r\n"),
    patch("transported with CRLF", b"a\nb\n",
          unified("@@ -1,2 +1,2 @@", " a", "-b", "+B").replace("\n", "\r\n"), b"a\nB\n"),
    patch("mixed: lines that stay keep theirs", b"a\nb\r\nc\r\nd\r\n",
          unified("@@ -1,4 +1,5 @@", " a", "+x", " b", "-c", "+C", " d"),
          b"a\nx\r\nb\r\nC\r\nd\r\n"),
    patch("no final newline stays so", b"a\nb", unified("@@ -1,2 +1,2 @@", " a", "-b", "+B"),
          b"a\nB"),
    patch("no final newline, marked", b"a\nb",
          unified("@@ -1,2 +1,3 @@", " a", "-b", "\\ No newline at end of file", "+b", "+c",
                  "\\ No newline at end of file"), b"a\nb\nc"),
    patch("a final newline is added", b"a",
          unified("@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"), b"a\n"),
    patch("a final newline is removed", b"a\n",
          unified("@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file"), b"a"),
    patch("wrong counts, right text", b"a\nb\nc\n",
          unified("@@ -1,7 +1,9 @@", " a", "-b", "+B", " c"), b"a\nB\nc\n"),
    patch("wrong line, one place", b"1\n2\na\nb\n", unified("@@ -1,2 +1,2 @@", " a", "-b", "+B"),
          b"1\n2\na\nB\n"),
    patch("right line, two places", b"a\nb\na\nb\n", unified("@@ -3,2 +3,2 @@", " a", "-b", "+B"),
          b"a\nb\na\nB\n"),
    patch("wrong line, two places", b"a\nb\na\nb\n", unified("@@ -9,2 +9,2 @@", " a", "-b", "+B"),
          "ambiguous_match"),
    patch("does not fit", b"a\nb\n", unified("@@ -1,2 +1,2 @@", " a", "-x", "+B"), "no_match"),
    patch("the second hunk does not fit", b"a\nb\nc\nd\n",
          unified("@@ -1 +1 @@", "-a", "+A", "@@ -4 +4 @@", "-x", "+D"), "no_match"),
    patch("removed line that looks like a header", b"-- x\nb\n",
          unified("@@ -1,2 +1,2 @@", "--- x", "+++ y", " b"), b"++ y\nb\n"),
    patch("Latin-1", b"caf\xe9\nb\n", unified("@@ -1,2 +1,2 @@", "-café", "+thé", " b"),
          b"th\xe9\nb\n"),
    patch("UTF-16", "\ufeffa\r\nb\r\n".encode("utf-16-le"),
          unified("@@ -1,2 +1,2 @@", " a", "-b", "+ß"), "\ufeffa\r\nß\r\n".encode("utf-16-le")),
    patch("mark", UTF8_BOM + b"a\n", unified("@@ -1 +1 @@", "-a", "+b"), UTF8_BOM + b"b\n"),
    patch("binary", BINARY, unified("@@ -1 +1 @@", "-old", "+new"), "binary_file"),
    patch("add", None, "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", b"a\nb\n"),
    patch("add over a file", b"x\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n",
          "already_exists"),
    patch("V4A", b"a\nb\nc\n", v4a("@@", " a", "-b", "+B", " c"), b"a\nB\nc\n"),
    patch("V4A on CRLF without final newline", b"a\r\nb\r\nc", v4a("@@", " b", "-c", "+C", "+d"),
          b"a\r\nb\r\nC\r\nd"),
    patch("V4A, the first of two places", b"def f():\n    x = 1\ndef g():\n    x = 1\n",
          v4a("@@", "-    x = 1", "+    x = 2"), "ambiguous_match"),
    patch("V4A, an anchor tells them apart", b"def f():\n    x = 1\ndef g():\n    x = 1\n",
          v4a("@@ def f():", "-    x = 1", "+    x = 2"),
          b"def f():\n    x = 2\ndef g():\n    x = 1\n"),
    patch("V4A, two in the anchor's block", b"def f():\n    x = 1\n    y = 2\n    x = 1\n",
          v4a("@@ def f():", "-    x = 1", "+    x = 2"), "ambiguous_match"),
    patch("V4A, end of file", b"x\ny\nx\n", v4a("@@", "-x", "+z", "*** End of File"),
          b"x\ny\nz\n"),
    patch("V4A, cut off", b"a\n", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n",
          "invalid_patch"),
    patch("V4A, insertion without a place", b"a\nb\n", v4a("@@", "+x"), "invalid_patch"),
    patch("no patch at all", b"a\n", "please change a to b", "invalid_patch"),
    patch("the patch changes nothing", b"a\n", unified("@@ -1 +1 @@", "-a", "+a"),
          "identical_text"),
)  # fmt: skip

CASES = (*EDITS, *WRITES, *PATCHES)
