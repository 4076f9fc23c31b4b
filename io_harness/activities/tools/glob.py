"""Globs over paths relative to where a search begins."""

import re

from .errors import InvalidPattern


def glob_regex(glob: str) -> re.Pattern[str]:
    """`*` and `?` stay within a name, `**` spans folders, `[...]` and `{a,b}` choose. A glob without a
    slash is matched with the name alone, one with a slash with the whole path.

    Raises:
        InvalidPattern: an open bracket or brace.
    """
    glob = glob.removeprefix("./").removeprefix("/") if "/" in glob else glob
    if not glob:
        raise InvalidPattern("the glob is empty")
    prefix = "" if "/" in glob else r"(?:.*/)?"
    return re.compile(prefix + _Translation(glob).whole() + r"\Z", re.DOTALL)


class _Translation:
    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0

    def whole(self) -> str:
        regex = self._alternative(depth=0)
        if self._at < len(self._glob):
            raise InvalidPattern(f"the glob {self._glob!r} has a '}}' without its '{{'")
        return regex

    def _alternative(self, depth: int) -> str:
        regex = ""
        while self._at < len(self._glob):
            character = self._glob[self._at]
            if character == "}" or (depth and character == ","):
                break
            self._at += 1
            regex += self._part(character, depth)
        return regex

    def _part(self, character: str, depth: int) -> str:
        match character:
            case "*":
                return self._stars()
            case "?":
                return "[^/]"
            case "[":
                return self._set()
            case "{":
                return self._choice(depth)
            case "\\" if self._at < len(self._glob):
                self._at += 1
                return re.escape(self._glob[self._at - 1])
            case _:
                return re.escape(character)

    def _stars(self) -> str:
        begin = self._at - 1
        while self._glob[self._at : self._at + 1] == "*":
            self._at += 1
        alone = self._at - begin == 2 and (begin == 0 or self._glob[begin - 1] in "/{,")
        following = self._glob[self._at : self._at + 1]
        if alone and following == "/":
            self._at += 1
            return r"(?:[^/]+/)*"
        return r".+" if alone and following in ("", "}", ",") else r"[^/]*"

    def _set(self) -> str:
        close = self._glob.find("]", self._at + (self._glob[self._at : self._at + 1] in "!^") + 1)
        if close < 0:
            raise InvalidPattern(f"the glob {self._glob!r} has a '[' without its ']'")
        body = self._glob[self._at : close]
        self._at = close + 1
        negated = body[0] in "!^"
        body = body[1:] if negated else body
        escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", body)
        try:
            re.compile(f"[{escaped}]")
        except re.error as error:
            raise InvalidPattern(f"the glob {self._glob!r}: {error}") from None
        return rf"(?!/)[{'^' if negated else ''}{escaped}]"

    def _choice(self, depth: int) -> str:
        branches: list[str] = []
        while True:
            branches.append(self._alternative(depth + 1))
            end = self._glob[self._at : self._at + 1]
            if not end:
                raise InvalidPattern(f"the glob {self._glob!r} has a '{{' without its '}}'")
            self._at += 1
            if end == "}":
                return f"(?:{'|'.join(branches)})"
