"""Text that a server sent, on its way to a model or a person."""

import unicodedata

_KEPT_CONTROLS = frozenset("\n\t")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")


def plain(text: str, limit: int) -> str:
    """Without control, invisible and unassigned characters, which can make a person read something
    else than the model does, and cut to `limit` characters with a word that it was cut."""
    shown = "".join(
        c
        for c in text[: 4 * limit]
        if c in _KEPT_CONTROLS or unicodedata.category(c) not in _HIDDEN
    )
    if len(shown) <= limit and len(text) <= 4 * limit:
        return shown
    return f"{shown[:limit]} [cut]"


def one_line(text: str, limit: int) -> str:
    """`plain`, on one line."""
    return " ".join(plain(text, limit).split())
