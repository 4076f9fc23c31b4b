"""One clear sentence for each thing that is wrong with what somebody wrote."""

from pydantic import ValidationError

_SHOWN_CHARS = 80


def describe_errors(error: ValidationError) -> str:
    """Field, problem and value of each error, joined by '; '."""
    return "; ".join(_one(e["loc"], e["msg"], e.get("input")) for e in error.errors())


def _one(loc: tuple[int | str, ...], message: str, value: object) -> str:
    where = ".".join(str(part) for part in loc) or "the whole"
    message = message.removeprefix("Value error, ")
    if message == "Extra inputs are not permitted":
        message = "unknown field"
    if isinstance(value, dict | list) or message == "Field required":
        return f"{where}: {message}"
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 1] + "…"
    return f"{where}: {message} (got {shown})"
