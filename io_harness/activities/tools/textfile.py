"""A text file as bytes that stay as they are: its encoding, its byte order mark, its line ends."""

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from .errors import BinaryFile, NotEncodable, UnsupportedEncoding

_MARKS = (  # the longer first: UTF-32-LE begins like UTF-16-LE
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# PEP 263 (also what Emacs and Vim read) in the first two lines; XML and CSS declarations; HTML's meta.
_DECLARATIONS = (
    re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)"),
    re.compile(rb"\A\s*<\?xml[^>]*encoding\s*=\s*[\"']([-\w.]+)[\"']"),
    re.compile(rb"\A@charset \"([-\w.]+)\";"),
    re.compile(rb"\A[^\0]{0,1024}?<meta[^>]*charset\s*=\s*[\"']?([-\w.]+)", re.IGNORECASE),
)
# Shift sequences make the bytes of a character depend on what is before it.
_STATEFUL = ("iso2022", "iso-2022", "hz", "utf-7", "utf7", "idna", "punycode", "unicode_escape")
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b\v")
_SAMPLE = 64 * 1024
_CRLF_OR_LF = re.compile(r"\r?\n")
_CR = re.compile(r"\r")
_MULTIBYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_HIGH = re.compile(rb"[\x80-\xff]")


def is_binary(data: bytes) -> bool:
    """Whether bytes without a mark are no text: a NUL, or many control characters."""
    sample = data[:_SAMPLE]
    if b"\0" in data:
        return True
    controls = sum(sample.count(c) for c in _CONTROL)
    return controls > max(len(sample) // 20, 1)


@dataclass(frozen=True)
class Encoding:
    name: str
    """A codec, for which decoding and encoding the file gives the same bytes again."""
    mark: bytes = b""
    errors: str = "strict"

    def encode(self, text: str, shown: str) -> bytes:
        try:
            return text.encode(self.name, self.errors)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise NotEncodable(
                f"{shown} is {self.name}, which has no {character!r} (U+{ord(character):04X})"
            ) from None


@dataclass(frozen=True)
class TextFile:
    """A decoded file. `encoding.mark + encode(text)` is the file, byte for byte."""

    text: str
    encoding: Encoding
    shown: str

    @property
    def is_plain(self) -> bool:
        return self.encoding == Encoding("utf-8")

    @property
    def line_end(self) -> str:
        """The line end that most lines have, the first line's if that is no decision."""
        ends = Counter(end for _, end in split_lines(self.text) if end)
        if not ends:
            return "\n"
        return ends.most_common(1)[0][0]

    def to_bytes(self, text: str) -> bytes:
        """Raises `NotEncodable`."""
        return self.encoding.mark + self.encoding.encode(text, self.shown)


def decode(data: bytes, shown: str) -> TextFile:
    """Find the encoding: byte order mark, UTF-8, declaration in the file, mostly UTF-8, single byte.

    Raises:
        BinaryFile: no text.
        UnsupportedEncoding: decoding and encoding would not give the same bytes again.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(name)
            except UnicodeDecodeError as error:
                if name == "utf-8":
                    break  # the mark stays as a part of mostly-UTF-8 text
                raise UnsupportedEncoding(
                    f"{shown} begins with a {name} mark, but is not valid ({error.reason} at "
                    f"byte {error.start + len(mark)})"
                ) from None
            return _checked(TextFile(text, Encoding(name, mark), shown), data)
    if is_binary(data):
        raise BinaryFile(f"{shown} is a binary file ({len(data):,} bytes)")
    declared = _declared(data)
    for encoding in _candidates(data, declared):
        try:
            text = data[len(encoding.mark) :].decode(encoding.name, encoding.errors)
        except UnicodeDecodeError:
            continue
        return _checked(TextFile(text, encoding, shown), data)
    raise UnsupportedEncoding(f"{shown} is in no encoding that was recognised")


def _candidates(data: bytes, declared: str | None) -> list[Encoding]:
    found = [Encoding("utf-8")]
    if declared:
        found.append(Encoding(declared))
    multibyte = len(_MULTIBYTE.findall(data))
    stray = len(_HIGH.findall(_MULTIBYTE.sub(b"", data)))
    if multibyte > stray:
        found.append(Encoding("utf-8", errors="surrogateescape"))
    # C1 controls are so rare in real text that bytes 0x80-0x9f mean Windows-1252.
    return [*found, Encoding("cp1252"), Encoding("latin-1")]


def _declared(data: bytes) -> str | None:
    for pattern in _DECLARATIONS:
        match = pattern.search(data[:2048])
        if match is None:
            continue
        try:
            name = codecs.lookup(match[1].decode("ascii")).name
            "".encode(name)  # a codec such as rot13 is no text encoding
        except (LookupError, UnicodeDecodeError):
            continue
        if not name.startswith(("utf-16", "utf-32")) and not name.startswith(_STATEFUL):
            return name
    return None


def _checked(file: TextFile, data: bytes) -> TextFile:
    try:
        same = file.to_bytes(file.text) == data
    except NotEncodable:
        same = False
    if not same:
        raise UnsupportedEncoding(
            f"{file.shown} is {file.encoding.name}, but not in its usual form, so an edit could "
            "change bytes it doesn't touch; use run_command"
        )
    return file


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines as (content, end). Ends are LF and CRLF; CR only in a text that has no LF. Other characters
    at which Python's `splitlines` splits are content."""
    pattern = _CRLF_OR_LF if "\n" in text else _CR
    bounds = [(0, 0), *((m.start(), m.end()) for m in pattern.finditer(text))]
    lines = [(text[begin:stop], text[stop:after]) for (_, begin), (stop, after) in pairwise(bounds)]
    rest = text[bounds[-1][1] :]
    return [*lines, (rest, "")] if rest else lines


def join_lines(lines: list[tuple[str, str]]) -> str:
    return "".join(content + end for content, end in lines)
