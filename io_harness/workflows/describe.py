"""One clear sentence for each thing that is wrong with what somebody wrote."""

from pydantic import ValidationError

from .messages import ToolCall

_SHOWN_CHARS = 80
_ABOUT = ("path", "pattern", "name", "job", "handle", "url")
"""Arguments that say what a call is about, the most telling first."""


def describe_errors(error: ValidationError) -> str:
    """Field, problem and value of each error, joined by '; '."""
    return "; ".join(_one(e["loc"], e["msg"], e.get("input")) for e in error.errors())


def describe_call(call: ToolCall) -> str:
    """A tool call as a line for people: the command itself, or the tool and what it is about."""
    if isinstance(command := call.arguments.get("command"), str):
        return command
    texts = {key: value for key, value in call.arguments.items() if isinstance(value, str)}
    about = next((texts[key] for key in _ABOUT if key in texts), "")
    name = "read" if call.name == "read_file" else call.name
    return f"{name} {about}".rstrip()


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
