"""Scripted sub-agents: a kind of agent each, with a recording of its own."""

from collections.abc import Mapping
from pathlib import Path

from tests.scripted import Turn, call, turn, write_script


def finish(summary: str = "done") -> Turn:
    return turn(call("finish", summary=summary))


def writes(path: str, content: str) -> Turn:
    return turn(call("write_file", path=path, content=content))


def fixes() -> Turn:
    """Mends the bug of the test's repository."""
    return turn(call("edit_file", path="calc.py", old="a - b", new="a + b"))


def contains(path: str, text: str) -> dict[str, object]:
    return {"kind": "file_contains", "path": path, "text": text}


FIXED_CALC = contains("calc.py", "a + b")


class Kinds:
    """Named agents, each with a scripted model of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.all: dict[str, object] = {}

    def add(self, name: str, *turns: Turn, **more: object) -> None:
        script = write_script(self._folder / f"agent-{name}.yaml", *turns)
        model = {"provider": "replay", "name": name, "base_url": script}
        self.all[name] = {"role": f"You are {name}.", "model": model, **more}


def task(
    agent: str, verification: Mapping[str, object] | None = None, **more: object
) -> dict[str, object]:
    """One entry of `spawn_agents`; without a criterion none."""
    criterion = verification or {"kind": "none"}
    return {"goal": f"The part of {agent}.", "agent": agent, "verification": criterion, **more}
