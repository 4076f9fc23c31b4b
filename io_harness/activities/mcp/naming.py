"""Names under which the model is offered a server's tools.

`mcp__<server>__<tool>`: at most 64 characters out of letters, digits, `_` and `-`, which is what
every provider accepts. A server's id holds no `__` and doesn't end in `_`, so that the first `__`
after the prefix ends it.
"""

import hashlib
import re
from collections.abc import Iterable

from io_harness.workflows.mcp import PREFIX

NAME_LENGTH = 64
_SUFFIX = 8
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def offered_name(server: str, tool: str, *, mark: bool = False) -> str:
    """The name of one tool. Where characters must be replaced or cut, or `mark` says so, it ends in
    `_` and eight hex digits of the sha256 of the tool's own name."""
    head = f"{PREFIX}{server}__"
    plain = _OTHER.sub("_", tool)
    if plain == tool and tool and not mark and len(head) + len(plain) <= NAME_LENGTH:
        return head + plain
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_SUFFIX]
    room = NAME_LENGTH - len(head) - _SUFFIX - 1
    return f"{head}{plain[:room]}_{digest}"


def offered_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Offered name of each tool of one server, by its own name: the same for the same set, in
    whatever order it comes. Two tools never share one: of those that would, by any letter case,
    each gets its mark, and one that still isn't alone is left out."""
    own = sorted(set(tools))
    names = {tool: offered_name(server, tool) for tool in own}
    for crowd in _crowds(names):
        names |= {tool: offered_name(server, tool, mark=True) for tool in crowd}
    for crowd in _crowds(names):
        for tool in crowd:
            del names[tool]
    return names


def _crowds(names: dict[str, str]) -> list[list[str]]:
    by_name: dict[str, list[str]] = {}
    for tool, name in names.items():
        by_name.setdefault(name.lower(), []).append(tool)
    return [tools for tools in by_name.values() if len(tools) > 1]


def server_of(name: str) -> str | None:
    """The server's id in an offered name; None for any other name."""
    if not name.startswith(PREFIX):
        return None
    server, separator, tool = name.removeprefix(PREFIX).partition("__")
    return server if server and separator and tool else None
