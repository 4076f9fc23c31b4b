"""Text of models, tools and files, made safe to show to somebody who decides about it."""

import re

# Control characters but newline and tab, and the marks that reorder text (Unicode TR 9).
_HIDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """`text` with what could move the cursor, colour or reorder other text shown as an escape: nobody
    may approve what a terminal or a page was made to hide."""
    return _HIDING.sub(lambda found: repr(found[0])[1:-1], text)
