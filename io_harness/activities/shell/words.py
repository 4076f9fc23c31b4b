"""One word of a shell command line: what it becomes, as far as that is known before it runs."""

import re
import shlex
from dataclasses import dataclass

from io_harness.workflows.patterns import DYNAMIC

_ANSI = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_EXPANDS = re.compile(r"[A-Za-z0-9_{(\[@*#?$!-]")
_ONE_WORD = re.compile(
    r"""(?:[^\s'"\\;|&()<>$`]|\\.|\$?"(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|'[^']*'|\$)*""",
    re.DOTALL,
)
_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})")


@dataclass(frozen=True)
class Arg:
    """A decoded word."""

    text: str
    """The word without quotes; where it isn't known, the source of the unknown part stays."""
    known: bool = True
    glob: bool = False
    """Not known only because it names files by a pattern."""

    def canonical(self) -> str:
        """As it stands in a target of the policy."""
        return shlex.quote(self.text) if self.known else DYNAMIC

    def __str__(self) -> str:
        return self.text


def canonical(args: list[Arg]) -> str:
    """A simple command as a target of the policy."""
    return " ".join(arg.canonical() for arg in args)


def literals(words: list[str] | tuple[str, ...]) -> list[Arg]:
    """Words that no shell will look at."""
    return [Arg(word) for word in words]


def decode(raw: str, home: str) -> Arg:
    """What bash makes of one word of its source."""
    return _Decoder(raw, home).decode()


def document_openings(raw: str) -> list[int]:
    """Where a substitution begins in a here-document, in which quotes mean nothing."""
    return [found.start(1) for found in re.finditer(r"(?<!\\)(?:\\\\)*(`|\$\()", raw)]


def openings(raw: str) -> list[int]:
    """Where a substitution may begin in the source of a word: rather one too many than one too few."""
    found: list[int] = []
    plain = "${" not in raw  # in `${...}` quotes follow other rules
    double = False
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            at += 2
            continue
        if char == "'" and plain and not double:
            at = _closing(raw, at)
        elif char == '"':
            double = not double
        elif (char == "`" or (char == "$" and raw.startswith("(", at + 1))) or (
            char in "<>" and raw.startswith("(", at + 1) and not (plain and double)
        ):
            found.append(at)
        at += 1
    return found


def is_one_word(raw: str) -> bool:
    """Whether bash, too, takes this source without expansions for one word: all quotes are closed, and
    nothing that ends a word is outside of them."""
    return _ONE_WORD.fullmatch(raw) is not None


def _closing(raw: str, at: int) -> int:
    """Index of the quote that closes the single quote at `at`, which a `$` makes know escapes."""
    if at and raw[at - 1] == "$":
        end = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL).match(raw, at + 1)
        return end.end() - 1 if end else len(raw)
    closing = raw.find("'", at + 1)
    return closing if closing >= 0 else len(raw)


class _Decoder:
    def __init__(self, raw: str, home: str) -> None:
        self.raw = raw
        self.home = home
        self.at = 0
        self.text = ""
        self.plain = ""
        """The text with each quoted character as NUL: for what only counts unquoted."""
        self.known = True

    def decode(self) -> Arg:
        self._tilde()
        while self.at < len(self.raw):
            char = self.raw[self.at]
            if char == "'":
                end = self._find("'", self.at + 1)
                self._literal(self.raw[self.at + 1 : end])
                self.at = end + 1
            elif char == '"':
                self.at += 1
                self._double()
            elif char == "\\":
                following = self.raw[self.at + 1 : self.at + 2]
                self._literal("" if following == "\n" else following)
                self.at += 2
            elif char == "$" and self.raw[self.at + 1 : self.at + 2] == "'":
                self.at += 2
                self._ansi_c()
            elif char == "$" and self.raw[self.at + 1 : self.at + 2] == '"':
                self.at += 2
                self._double()
            elif char in "`<>" or (char == "$" and self._expands()):
                self._unknown()
            else:
                self.text += char
                self.plain += char
                self.at += 1
        glob = bool(re.search(r"[*?]|\[[^]]*\]|[@!+]\(", self.plain))
        brace = bool(re.search(r"\{[^{}]*(?:,|\.\.)", self.plain))
        return Arg(self.text, self.known and not glob and not brace, self.known and glob)

    def _expands(self) -> bool:
        return bool(_EXPANDS.match(self.raw, self.at + 1))

    def _literal(self, text: str) -> None:
        self.text += text
        self.plain += "\0" * max(1, len(text))

    def _find(self, char: str, start: int) -> int:
        end = self.raw.find(char, start)
        if end < 0:
            self.known = False
            return len(self.raw)
        return end

    def _tilde(self) -> None:
        prefix = re.match(r"~([^/'\"\\$`]*)", self.raw)
        if prefix is None:
            return
        if prefix[1]:
            self.known = False  # another user's home, or the previous folder
        else:
            self.text = self.plain = self.home
            self.at = 1

    def _unknown(self) -> None:
        """An expansion. `$HOME` is replaced, so that what is below it can be judged, but a script may
        have changed it."""
        self.known = False
        if home := _HOME.match(self.raw, self.at):
            self.text += self.home
            self.plain += self.home
            self.at = home.end()
            return
        self.text += self.raw[self.at]
        self.plain += "\0"
        self.at += 1

    def _double(self) -> None:
        while self.at < len(self.raw):
            char = self.raw[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.raw[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                following = self.raw[self.at + 1]
                self._literal("" if following == "\n" else following)
                self.at += 2
            elif char == "`" or (char == "$" and self._expands()):
                self._unknown()
            else:
                self._literal(char)
                self.at += 1
        self.known = False

    def _ansi_c(self) -> None:
        ended = False
        while self.at < len(self.raw):
            char = self.raw[self.at]
            self.at += 1
            if char == "'":
                return
            if char == "\\":
                char = self._escape()
            ended = ended or char == "\0"  # bash keeps what stands before a NUL
            if not ended:
                self._literal(char)
        self.known = False

    def _escape(self) -> str:
        for pattern, base in (
            (r"x([0-9A-Fa-f]{1,2})", 16), (r"u([0-9A-Fa-f]{1,4})", 16),
            (r"U([0-9A-Fa-f]{1,8})", 16), (r"([0-7]{1,3})", 8),
        ):  # fmt: skip
            if number := re.compile(pattern).match(self.raw, self.at):
                self.at = number.end()
                value = int(number[1], base)
                if value > 0x7F:
                    self.known = False  # a byte or a character, by locale
                return chr(value & 0xFF) if base == 8 else chr(min(value, 0x10FFFF))
        char = self.raw[self.at : self.at + 1]
        self.at += 1
        if char == "c":
            control = self.raw[self.at : self.at + 1]
            self.at += 1
            return chr(ord(control.upper()) ^ 64) if control else ""
        return _ANSI.get(char, "\\" + char)
