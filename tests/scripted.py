"""A scripted model: recordings for the provider `replay`, written by a test."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path

import yaml

_ids = itertools.count(1)


@dataclass(frozen=True)
class Call:
    """One tool call, and what its result must be."""

    name: str
    arguments: dict[str, object]
    fails: bool = False
    shows: tuple[str, ...] = ()
    """Pieces that must occur in the result."""
    id: str = field(default_factory=lambda: f"c{next(_ids)}")


def call(
    name: str, /, *, fails: bool = False, shows: tuple[str, ...] = (), **arguments: object
) -> Call:
    return Call(name, arguments, fails, shows)


@dataclass(frozen=True)
class Turn:
    calls: tuple[Call, ...] = ()
    text: str = ""
    finish: str = ""
    usage: dict[str, int] = field(default_factory=lambda: {"input": 100, "output": 20})
    cost_usd: str = "0.001"
    nudges: int = 0
    """Messages of the harness itself that must come after this turn's results."""

    def reply(self) -> dict[str, object]:
        parts: list[dict[str, object]] = []
        if self.text:
            parts.append({"kind": "text", "text": self.text})
        parts += [
            {"kind": "tool_call", "id": c.id, "name": c.name, "arguments": c.arguments}
            for c in self.calls
        ]
        finish = self.finish or ("tool_use" if self.calls else "stop")
        return {
            "parts": parts,
            "finish": finish,
            "usage": self.usage,
            "cost_usd": self.cost_usd,
        }

    def expected(self) -> list[dict[str, object]]:
        results: list[dict[str, object]] = [
            {"role": "tool", "call_id": c.id, "is_error": c.fails, "contains": list(c.shows)}
            for c in self.calls
        ]
        return results + [{"role": "user", "contains": []} for _ in range(self.nudges)]


def turn(*calls: Call, text: str = "", **more: object) -> Turn:
    return Turn(calls, text, **more)  # type: ignore[arg-type]


def write_script(path: Path, *turns: Turn) -> str:
    """Write the recording; returns what `model.base_url` is to be."""
    expected: list[dict[str, object]] = [{"role": "user", "contains": []}]
    documents: list[object] = [{"format": 1}]
    for each in turns:
        documents.append({"expect": expected, "reply": each.reply()})
        expected = each.expected()
    path.write_text(yaml.safe_dump_all(documents, explicit_start=False))
    return str(path)


def verdict(passes: bool, findings: str) -> Turn:
    """A reviewer's reply."""
    return turn(call("give_verdict", passes=passes, findings=findings))


def write_review(path: Path, *replies: Turn, shows: tuple[str, ...] = ()) -> dict[str, object]:
    """Write the recording of a reviewer, to whom each request is the first; returns the criterion.

    Args:
        shows: Pieces that must occur in each request.
    """
    rubric = "Each function has a docstring."
    expect = [{"role": "user", "contains": [rubric, *shows]}]
    turns = ({"expect": expect, "reply": each.reply()} for each in replies)
    path.write_text(yaml.safe_dump_all([{"format": 1}, *turns]))
    model = {"provider": "replay", "name": "reviewer", "base_url": str(path)}
    return {"kind": "review", "rubric": rubric, "model": model}
