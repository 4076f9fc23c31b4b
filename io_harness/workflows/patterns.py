"""Patterns of policy rules: paths, commands and hosts.

One principle holds for all three: an allow rule is read narrowly, a deny or ask rule widely. Narrow
means that the pattern names the target for certain; wide means that the target may be what the
pattern names: in another letter case, by another path to the program, on any port.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

Match = Literal["yes", "maybe", "no"]
"""`maybe`: part of the target is not known before it runs."""

MAX_LENGTH = 512
_MAX_DOUBLE_STARS = 4
_SYSTEM_FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/")
_PROGRAM_SUFFIXES = (".exe", ".cmd", ".bat", ".com")


class PatternError(ValueError):
    """A pattern that can't be meant as written."""


# --- paths ----------------------------------------------------------------------------------------


_ANY_FOLDERS = r"(?:[^/]+/)*"


class _PathPattern(NamedTuple):
    place: Literal["anywhere", "workspace", "host"]
    parts: tuple[str, ...]
    narrow: str
    """Regular expression, case-sensitive."""
    wide: str
    """Regular expression for folded text."""


def path_matches(pattern: str, path: str, *, wide: bool) -> Match:
    """Match a resolved path: relative to the workspace, or absolute when outside.

    Patterns follow gitignore: without an inner slash they match a name at any depth, with one they
    are anchored at the workspace; `**` spans folders. `//` begins an absolute path of the host. A
    pattern that matches a folder covers what is in it; read narrowly, only if its last part has no
    wildcard (`docs` covers `docs/a/b`, `docs/*` doesn't, `docs/**` does).
    """
    return "yes" if any_path_matches((pattern,), path, wide=wide) else "no"


def any_path_matches(patterns: tuple[str, ...], path: str, *, wide: bool) -> bool:
    """Whether one of the patterns matches. Many are as quick as one."""
    absolute = path.startswith("/")
    text = fold(path.lstrip("/")) if wide else path.lstrip("/")
    group = _path_group(patterns, wide=wide)
    anywhere = group.get("anywhere") if wide or not absolute else None
    placed = group.get("host" if absolute else "workspace")
    return bool((anywhere and anywhere.match(text)) or (placed and placed.match(text)))


@lru_cache(maxsize=1024)
def _path_group(patterns: tuple[str, ...], *, wide: bool) -> dict[str, re.Pattern[str]]:
    regexes: dict[str, tuple[list[str], list[str]]] = {}
    for pattern in patterns:
        compiled = _path_pattern(pattern)
        regex = compiled.wide if wide else compiled.narrow
        deep, others = regexes.setdefault(compiled.place, ([], []))
        if regex.startswith(_ANY_FOLDERS):
            deep.append(regex.removeprefix(_ANY_FOLDERS))
        else:
            others.append(regex)
    return {
        place: re.compile(
            "|".join([*others, *([f"{_ANY_FOLDERS}(?:{'|'.join(deep)})"] * bool(deep))])
        )
        for place, (deep, others) in regexes.items()
    }


@lru_cache(maxsize=1024)
def last_names(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A quick test of one name: a path of which no name passes is matched by none of the patterns,
    read widely."""
    regexes = []
    for pattern in patterns:
        parts = _path_pattern(pattern).parts
        regexes.append(_glob_regex(fold(parts[-1])) if parts and parts[-1] != "**" else "(?s:.*)")
    compiled = re.compile("|".join(regexes))

    @lru_cache(maxsize=16_384)
    def test(name: str) -> bool:
        return compiled.fullmatch(fold(name)) is not None

    return test


def check_path_pattern(pattern: str) -> None:
    """Raises PatternError if the pattern can't be meant as written."""
    try:
        _path_group((pattern,), wide=False)
        _path_group((pattern,), wide=True)
    except re.error as error:
        raise PatternError(f"is no pattern: {error}") from None


def normal_path(path: str) -> str:
    """The path without `.`, `..`, doubled slashes and detours through `/proc/*/root`.

    Raises:
        PatternError: empty, holds a NUL, or is relative and leaves the workspace.
    """
    if not path or "\0" in path:
        raise PatternError("an empty path, or one that holds a NUL")
    normal = posixpath.normpath(path)
    if normal.startswith("//"):
        normal = normal[1:]
    while detour := re.match(r"/proc/[^/]+(?:/task/[^/]+)?/root(?=/|$)", normal):
        normal = normal[detour.end() :] or "/"
    if normal == ".." or normal.startswith("../"):
        raise PatternError("a relative path that leaves the workspace is not resolved")
    return normal


def fold(text: str) -> str:
    """One spelling for all that some file system takes for the same name: letter case, Unicode
    normal form, invisible characters (as git folds `.git` for HFS+)."""
    if text.isascii():
        return text.lower()
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold()


@lru_cache(maxsize=4096)
def _path_pattern(pattern: str) -> _PathPattern:
    check_text(pattern)
    if pattern.startswith("!"):
        raise PatternError(
            "patterns can't be negated: the order of rules doesn't matter; use `unless`"
        )
    if pattern.startswith("~") and not pattern.startswith("~/"):
        raise PatternError(
            "write a path of the home folder as ~/name; quote a name in ~ as \\~name"
        )
    place: Literal["anywhere", "workspace", "host"] = "workspace"
    body = pattern
    if body.startswith("//"):
        place = "host"
    elif "/" not in body.rstrip("/") or body.startswith("**/"):
        place = "anywhere"
    body = body.lstrip("/")
    parts = [part for part in body.split("/") if part]
    if place != "host" and not parts:
        raise PatternError("names nothing; `**` is the whole workspace")
    if any(part in (".", "..") for part in parts):
        raise PatternError(
            "`.` and `..` never match: targets are resolved before they are compared"
        )
    if parts.count("**") > _MAX_DOUBLE_STARS:
        raise PatternError(f"more than {_MAX_DOUBLE_STARS} `**`")
    if "/" not in body.rstrip("/") and place == "anywhere":
        parts = ["**", *parts]
    plain_end = not parts or parts[-1] == "**" or not re.search(r"[*?\[]", parts[-1])
    return _PathPattern(
        place,
        tuple(parts),
        _path_regex(parts, below=plain_end or pattern.endswith("/")),
        _path_regex([fold(part) for part in parts], below=True),
    )


def _path_regex(parts: list[str], *, below: bool) -> str:
    regex = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part != "**":
            regex += _glob_regex(part) + ("" if last else "/")
        elif last:
            # `a/**` is what is in `a`, `**` alone is everything, the root included.
            return regex + r"(?s:.*)\Z" if index == 0 else regex + r"(?s:.+)\Z"
        else:
            regex += _ANY_FOLDERS
    return regex + (r"(?:/(?s:.*))?\Z" if below else r"\Z")


def _glob_regex(glob: str) -> str:
    """`*`, `?` and `[...]` within one name. Every `*` but the last takes the shortest fit and is not
    tried again, so that matching is linear (as in CPython's `fnmatch.translate`)."""
    chunks: list[str] = [""]
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "\\":
            if at == len(glob):
                raise PatternError("ends in a lone backslash")
            chunks[-1] += re.escape(glob[at])
            at += 1
        elif char == "[":
            content, at = _bracket(glob, at)
            chunks[-1] += content
        else:
            chunks[-1] += re.escape(char)
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return chunks[0] + middle + "[^/]*" + chunks[-1]


def _bracket(glob: str, at: int) -> tuple[str, int]:
    end = glob.find("]", at + 2 if glob[at : at + 1] in ("!", "^") else at + 1)
    if end < 0:
        raise PatternError("an opening [ without its ]; write \\[ for the character itself")
    content = glob[at:end]
    negated = content[0] in "!^"
    members = content[1:] if negated else content
    if re.search(r"(.)-(.)", members):
        for low, high in re.findall(r"(.)-(.)", members):
            if low > high:
                raise PatternError(f"the range {low}-{high} is empty")
    escaped = re.sub(r"([\\\[\]^&|~])", r"\\\1", members)
    return (f"[^/{escaped}]" if negated else f"(?!/)[{escaped}]"), end + 1


# --- commands -------------------------------------------------------------------------------------


class Word(NamedTuple):
    """One word of a command or of a pattern."""

    text: str
    special: bool
    """Unquoted `<...>`: not a word of the command but what is known of it, like `<dynamic>`."""
    glob: str
    """The word with what was quoted in it escaped."""


DYNAMIC = "<dynamic>"
"""In the place of a word: not known before it runs. In front of a command: what it runs isn't."""
MARKERS = ("<dynamic>", "<discard>", "<destroy>", "<mcp>")


@lru_cache(maxsize=8192)
def words_of(text: str) -> tuple[Word, ...]:
    """Split as a shell would, by blanks, with single and double quotes and backslashes.

    Raises:
        PatternError: a quote that isn't closed.
    """
    words: list[Word] = []
    plain, glob, quoted, started = "", "", False, False
    at = 0
    while at <= len(text):
        char = text[at] if at < len(text) else " "
        at += 1
        if char in " \t\n":
            if started:
                special = not quoted and bool(re.fullmatch(r"<[a-z]+>", plain))
                words.append(Word(plain, special, glob))
            plain, glob, quoted, started = "", "", False, False
            continue
        started = True
        if char in "'\"":
            end = text.find(char, at)
            if end < 0:
                raise PatternError(f"a {char} that isn't closed")
            literal, at, quoted = text[at:end], end + 1, True
        elif char == "\\" and at < len(text):
            literal, at, quoted = text[at], at + 1, True
        else:
            plain += char
            glob += char
            continue
        plain += literal
        glob += re.sub(r"([*?\[\]\\])", r"\\\1", literal)
    return tuple(words)


class _CommandPattern(NamedTuple):
    words: tuple[Word, ...]
    whole: bool
    """Ends in `$`: nothing may follow."""


def check_command_pattern(pattern: str) -> None:
    """Raises PatternError if the pattern can't be meant as written."""
    try:
        _command_pattern(pattern)
    except re.error as error:
        raise PatternError(f"is no pattern: {error}") from None


@lru_cache(maxsize=4096)
def _command_pattern(pattern: str) -> _CommandPattern:
    check_text(pattern)
    words = words_of(pattern)
    whole = words[-1].glob == "$"
    words = words[:-1] if whole else words
    while not whole and len(words) > 1 and words[-1].glob in ("*", "**"):
        words = words[:-1]
    if not words:
        raise PatternError("names no command; `*` is every command")
    if sum(word.glob == "**" for word in words) > _MAX_DOUBLE_STARS:
        raise PatternError(f"more than {_MAX_DOUBLE_STARS} `**`")
    for word in words:
        if word.special and word.text not in MARKERS:
            raise PatternError(f"{word.text} is none of {', '.join(MARKERS)}; quote it if meant")
        if not word.special:
            _word_regex(word.glob)
    return _CommandPattern(words, whole)


def command_matches(pattern: str, command: str, *, wide: bool) -> Match:
    """Match a simple command, written as shell words.

    A pattern is the beginning of a command, word by word: `git push` matches `git push origin`. `*`
    matches within one word, `**` any number of words, a final `$` that nothing follows. A command
    that begins with a marker is matched only by a pattern that names the marker, or, read widely, by
    `*`. Read widely, the program may be reached by any path and in any letter case, and options
    (with a value each) may stand between the words of the pattern.
    """
    rule, words = _command_pattern(pattern), words_of(command)
    if not words:
        return "no"
    first = rule.words[0]
    if words[0].special and not (first.special and first.text == words[0].text):
        return "yes" if wide and first.glob in ("*", "**") else "no"
    offset = 1 if words[0].special else 0
    if offset and len(rule.words) == 1:
        return "yes" if not rule.whole or len(words) == 1 else "no"
    if _run(rule, words, offset, wide=wide, guess=False):
        return "yes"
    if wide and any(word.special for word in words) and _run(rule, words, offset, wide, guess=True):
        return "maybe"
    return "no"


def _run(
    rule: _CommandPattern, words: tuple[Word, ...], offset: int, wide: bool, guess: bool
) -> bool:
    """Whether the pattern accepts the words: a set of positions in the pattern, moved word by word.

    A position is (index of the next pattern word, what may be skipped before it)."""
    pattern = rule.words
    end = len(pattern)
    states = _closure({(offset, "")}, pattern)
    for index, word in enumerate(words[offset:]):
        if not rule.whole and any(at == end for at, _ in states):
            return True
        program = index == 0
        if word.special and word.text == DYNAMIC and guess:
            lowest = min((at for at, _ in states), default=end + 1)
            states = {(at, "value") for at in range(lowest, end + 1)}
            continue
        moved: set[tuple[int, str]] = set()
        for at, skip in states:
            if at < end:
                moved |= _step(pattern[at], at, skip, word, program=program, wide=wide)
            elif guess:
                moved.add((at, skip))
        states = _closure(moved, pattern)
        if not states:
            return False
    return any(at == end for at, _ in states)


def _step(
    want: Word, at: int, skip: str, word: Word, *, program: bool, wide: bool
) -> set[tuple[int, str]]:
    if want.glob == "**" and not want.special:
        return {(at, ""), (at + 1, "")}
    moved: set[tuple[int, str]] = set()
    if not word.special and not want.special:
        if _program_matches(want, word, wide) if program else _word_matches(want, word, wide):
            moved.add((at + 1, ""))
    elif want.special and word.special and want.text == word.text:
        moved.add((at + 1, ""))
    if wide and not program:
        if want.text.startswith("-"):
            moved.add((at, ""))
        if word.text.startswith("-"):
            moved.add((at, "" if "=" in word.text else "value"))
        elif skip == "value":
            moved.add((at, ""))
    return moved


def _closure(states: set[tuple[int, str]], pattern: tuple[Word, ...]) -> set[tuple[int, str]]:
    for at, _ in list(states):
        while at < len(pattern) and pattern[at].glob == "**":
            at += 1
            states.add((at, ""))
    return states


def _program_matches(want: Word, word: Word, wide: bool) -> bool:
    if wide:
        regex = _folded_regex(want.glob)
        return any(regex.match(name) for name in _program_names(word.text))
    if want.glob == "*":
        return True
    if _word_regex(want.glob).match(word.text):
        return "/" in want.text or "/" not in word.text
    folder, _, name = word.text.rpartition("/")
    return f"{folder}/" in _SYSTEM_FOLDERS and bool(_word_regex(want.glob).match(name))


def _word_matches(want: Word, word: Word, wide: bool) -> bool:
    if wide:
        return bool(_folded_regex(want.glob).match(fold(word.text)))
    return bool(_word_regex(want.glob).match(word.text))


@lru_cache(maxsize=256)
def _program_names(word: str) -> tuple[str, str]:
    """A program as it is written, and by its base name; both folded."""
    name = fold(word)
    short = posixpath.basename(name.replace("\\", "/"))
    for suffix in _PROGRAM_SUFFIXES:
        short = short.removesuffix(suffix)
    return name, short


@lru_cache(maxsize=8192)
def _folded_regex(glob: str) -> re.Pattern[str]:
    return _word_regex(fold(glob))


@lru_cache(maxsize=8192)
def _word_regex(glob: str) -> re.Pattern[str]:
    # In a word of a command a slash is a character like any other.
    regex = _glob_regex(glob).replace("[^/]", r"(?s:.)").replace("(?!/)", "").replace("[^/", "[^")
    return re.compile(regex + r"\Z")


def check_text(pattern: str) -> None:
    """Raises PatternError for what no pattern may be."""
    if not pattern.strip() or pattern != pattern.strip():
        raise PatternError("is empty, or begins or ends with a blank")
    if len(pattern) > MAX_LENGTH:
        raise PatternError(f"is longer than {MAX_LENGTH} characters")
    if any(unicodedata.category(c) in ("Cc", "Cf") for c in pattern):
        raise PatternError("holds a control or invisible character")
