"""Globs over paths relative to where a search begins."""

import re

from .errors import InvalidPattern

_STAR = "[^/]*"
_LONGEST, _DEEPEST = 1000, 20
_MOST_STARS = 12
_MOST_FREE_STARS = 4
"""Stars before a choice, and `**`: each may have to be tried at every place."""


def glob_regex(glob: str) -> re.Pattern[str]:
    """`*` and `?` stay within a name, `**` spans folders, `[...]` and `{a,b}` choose. A glob without a
    slash is matched with the name alone, one with a slash with the whole path.

    Raises:
        InvalidPattern: an open bracket or brace, or so many wildcards that matching could take long.
    """
    glob = glob.removeprefix("./").removeprefix("/") if "/" in glob else glob
    if not glob:
        raise InvalidPattern("the glob is empty")
    if len(glob) > _LONGEST:
        raise InvalidPattern(f"the glob has {len(glob)} characters, and {_LONGEST} are the most")
    prefix = "" if "/" in glob else r"(?:.*/)?"
    translation = _Translation(glob)
    regex = translation.whole()
    if translation.stars > _MOST_STARS or translation.free_stars > _MOST_FREE_STARS:
        raise InvalidPattern(f"the glob {glob[:200]!r} has too many wildcards")
    return re.compile(prefix + regex + r"\Z", re.DOTALL)


class _Translation:
    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0
        self.stars = 0
        self.free_stars = 0

    def whole(self) -> str:
        regex = self._alternative(depth=0)
        if self._at < len(self._glob):
            raise InvalidPattern(f"the glob {self._glob!r} has a '}}' without its '{{'")
        return regex

    def _alternative(self, depth: int) -> str:
        parts: list[str] = []
        while self._at < len(self._glob):
            character = self._glob[self._at]
            if character == "}" or (depth and character == ","):
                break
            self._at += 1
            parts.append(self._part(character, depth))
        return self._committed(parts)

    def _committed(self, parts: list[str]) -> str:
        """Each `*` takes the shortest fit for what follows it up to the next star, once and for all:
        going back would find nothing else, only take long. After a choice it might."""
        regex = ""
        for index, part in enumerate(parts):
            if part != _STAR:
                regex += part
                continue
            rest = parts[index + 1 :]
            following = rest[: rest.index(_STAR)] if _STAR in rest else None
            if following is None:
                return regex + _STAR + "".join(rest)
            if any(p.startswith("(?:") for p in following):
                self.free_stars += 1
                regex += _STAR
            else:
                return f"{regex}(?>[^/]*?{''.join(following)})" + self._committed(
                    rest[len(following) :]
                )
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
        self.stars += 1
        if alone and following == "/":
            self._at += 1
            self.free_stars += 1
            return r"(?:[^/]+/)*"
        return r"(?:.+)" if alone and following in ("", "}", ",") else _STAR

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
        if depth == _DEEPEST:
            raise InvalidPattern(f"the glob {self._glob[:200]!r} nests too deep")
        branches: list[str] = []
        while True:
            branches.append(self._alternative(depth + 1))
            end = self._glob[self._at : self._at + 1]
            if not end:
                raise InvalidPattern(f"the glob {self._glob!r} has a '{{' without its '}}'")
            self._at += 1
            if end == "}":
                return f"(?:{'|'.join(branches)})"
