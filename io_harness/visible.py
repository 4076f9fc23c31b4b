"""Text of models, tools and files, made safe to show to somebody who decides about it."""

import re

_HIDING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but newline and tab
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"  # marks that reorder or part text (Unicode TR 9)
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u2800\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"  # what shows nothing, and can carry a text unseen
    "\ud800-\udfff"  # no characters: a terminal can't be told them
    "]"
)


def visible(text: str) -> str:
    """`text` with what could move the cursor, colour or reorder other text shown as an escape: nobody
    may approve what a terminal or a page was made to hide."""
    return _HIDING.sub(lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    return repr(char)[1:-1] if not char.isprintable() else f"\\u{ord(char):04x}"
