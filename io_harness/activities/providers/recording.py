"""Recorded conversations: the file format, how it is written, and how it is compared.

A recording is a YAML file of several documents. The first is a header; each further one is a turn:

    format: 1
    made_with: {provider: anthropic, name: claude-sonnet-4-5}
    ---
    expect:                      # what came since the last turn, in order
    - role: user                 # user or tool
      contains: [fix the bug]    # or `text`: the whole text
    reply:
      parts:
      - {kind: text, text: I will look.}
      - {kind: tool_call, id: c1, name: read_file, arguments: {path: app.py}}
      finish: tool_use
      usage: {input: 900, output: 40}
      cost_usd: "0.0012"
    ---
    expect:
    - {role: tool, call_id: c1, is_error: false, text: "1 def f(): ..."}
    reply: ...

`text` is compared after `normalise`; `contains` is a list of pieces that must all occur.
"""

import importlib.resources
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from io_harness.workflows.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ModelRef,
    ToolMessage,
    UserMessage,
)
from io_harness.workflows.model import Strict
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage

from .base import Failure, ProviderError

SEPARATOR = "---\n"
"""Stands at the start of a line between documents; inside them every line of text is indented."""
_SHOWN_CHARS = 1_500
_VOLATILE = (
    # Directories made for one run: system temp directories, and this harness's data directory.
    (re.compile(r"(?:/private)?/(?:tmp|var/folders|var/tmp)/[^\s'\":,;)\]]*"), "<path>"),
    (re.compile(r"/[^\s'\":,;)\]]*/io-harness/[^\s'\":,;)\]]*"), "<path>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:seconds?|secs?|ms|s)\b"), "<duration>"),
    (re.compile(r"\b0x[0-9a-f]+\b"), "<hex>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "<hex>"),
)


class RecordingError(Exception):
    """A recording that can't be read. The message names the file and the field."""


class Expected(Strict):
    """One message as the record has it."""

    role: Literal["user", "tool"]
    call_id: str | None = None
    """Of a tool's result; None is not compared."""
    is_error: bool = False
    text: str | None = None
    contains: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_way_to_compare(self) -> Self:
        if (self.text is None) == (self.contains is None):
            raise ValueError("give either `text` or `contains`")
        return self


class RecordedReply(Strict):
    parts: tuple[AssistantPart, ...]
    finish: FinishReason
    usage: Usage = Usage()
    cost_usd: Decimal | None = None


class Turn(Strict):
    expect: tuple[Expected, ...]
    reply: RecordedReply


class Header(Strict):
    format: Literal[1]
    made_with: ModelRef | None = None


class Recording(Strict):
    header: Header
    turns: tuple[Turn, ...] = Field(min_length=1)


def load(source: str) -> Recording:
    """The recording at `source`: a file path, or `package:<package>/<file>` for a file that an
    installed package carries.

    Raises:
        RecordingError: it can't be read.
    """
    if source.startswith("package:"):
        package, _, name = source.removeprefix("package:").partition("/")
        try:
            file = importlib.resources.files(package).joinpath(name)
            return _parse(source, file.read_text(encoding="utf-8"))
        except (ImportError, OSError) as error:
            raise RecordingError(f"{source}: no such recording: {error}") from error
    path = Path(source).expanduser().absolute()
    try:
        return _parse(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: the recording can't be read: {error}") from error


@lru_cache(maxsize=16)
def _parse(name: str, content: str) -> Recording:
    try:
        documents = list(yaml.load_all(content, Loader=_loader()))
    except yaml.YAMLError as error:
        raise RecordingError(f"{name}: not valid YAML: {error}") from error
    if not documents:
        raise RecordingError(f"{name}: the recording is empty")
    try:
        return Recording.model_validate({"header": documents[0], "turns": documents[1:]})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(piece) for piece in first["loc"])
        raise RecordingError(f"{name}: {where}: {first['msg']}") from error


def _loader() -> type[yaml.SafeLoader]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def since_last_reply(messages: Sequence[Message]) -> tuple[UserMessage | ToolMessage, ...]:
    """The messages after the last assistant's."""
    new: list[UserMessage | ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            break
        new.append(message)
    return tuple(reversed(new))


def text_of(message: UserMessage | ToolMessage) -> str:
    return message.text if isinstance(message, UserMessage) else message.observation.text


def normalise(text: str) -> str:
    """`text` without what differs from run to run: temporary paths, durations, hexadecimal ids, and
    space at the ends of lines."""
    for pattern, label in _VOLATILE:
        text = pattern.sub(label, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def compare(expected: Sequence[Expected], actual: Sequence[UserMessage | ToolMessage]) -> None:
    """Check that what came is what the record has.

    Raises:
        ProviderError: REPLAY_DIVERGED, with both sides.
    """
    for position, (want, got) in enumerate(zip(expected, actual, strict=False)):
        difference = _difference(want, got)
        if difference:
            raise diverged(f"message {position + 1} of this turn: {difference}")
    if len(expected) != len(actual):
        raise diverged(
            f"expected {len(expected)} messages since the last reply "
            f"({', '.join(e.role for e in expected)}), got {len(actual)} "
            f"({', '.join(a.role for a in actual)}): {_shown(' | '.join(map(text_of, actual)))}"
        )


def diverged(how: str) -> ProviderError:
    return ProviderError(
        Failure.REPLAY_DIVERGED, f"the conversation departs from the recording: {how}"
    )


def _difference(want: Expected, got: UserMessage | ToolMessage) -> str | None:
    if want.role != got.role:
        return f"expected role {want.role}, got {got.role}: {_shown(text_of(got))}"
    if isinstance(got, ToolMessage):
        if want.call_id is not None and want.call_id != got.call_id:
            return f"expected the result of call {want.call_id}, got that of {got.call_id}"
        if want.is_error != got.observation.is_error:
            return (
                f"expected is_error={want.is_error}, got {got.observation.is_error}: "
                f"{_shown(text_of(got))}"
            )
    actual = text_of(got)
    if want.text is not None and normalise(want.text) != normalise(actual):
        return f"expected text:\n{_shown(normalise(want.text))}\ngot:\n{_shown(normalise(actual))}"
    missing = [piece for piece in want.contains or () if piece not in actual]
    if missing:
        return f"expected text that contains {missing[0]!r}, got:\n{_shown(actual)}"
    return None


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."


def dump_header(made_with: ModelRef) -> str:
    return _document({"format": 1, "made_with": made_with.model_dump(mode="json")})


def dump_turn(new: Iterable[UserMessage | ToolMessage], reply: RecordedReply) -> str:
    """One turn as a YAML document."""
    expect = [
        {
            "role": message.role,
            **(
                {"call_id": message.call_id, "is_error": message.observation.is_error}
                if isinstance(message, ToolMessage)
                else {}
            ),
            "text": normalise(text_of(message)),
        }
        for message in new
    ]
    return _document({"expect": expect, "reply": reply.model_dump(mode="json")})


class _Dumper(yaml.SafeDumper):
    pass


# Read back as something else unless they are escaped, which only double quotes can do.
_ESCAPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _ESCAPED.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def _document(content: object) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
