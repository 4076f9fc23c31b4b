"""Whatever a model writes is answered; nothing of it makes the call itself fail."""

from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.gate import Refused
from io_harness.activities.tools.context import AsksNeeded
from io_harness.activities.tools.errors import ToolError
from io_harness.activities.tools.registry import ToolRegistry
from tests.unit.tools.conftest import Call, make_contract

ODD = (
    *("", " ", "\0", "a\0b", "\n", "\x1b[31m", "\ufeff", "🎉", "e\u0301", "\u202e"),
    *("..", "/", "//", "~", "-", "--", "--help", "-e x", ".git", ".git/config", "a\\b"),
    *("*", "[", "{}", "null", "%s%n", "$(touch made)", "`touch made`", "'; touch made; '"),
    *("{" * 3000, "(" * 3000, "x" * 5000, "y" * 200_000, "a/" * 3000),
)
ODD_COMMANDS = ("", "\0", "y" * 200_000, "(" * 3000, "\n")
TEXT_FIELDS = [
    (name, field)
    for name in sorted(ToolRegistry().effects(make_contract()))
    if name not in ("git_status", "git_diff", "git_log", "git_commit")
    for field, schema in ToolRegistry().get(name).input_schema()["properties"].items()  # type: ignore[union-attr]
    if isinstance(schema, dict) and schema.get("type") == "string"
]
USUAL: dict[str, dict[str, JsonValue]] = {
    "find": {"glob": "*"},
    "grep": {"pattern": "x"},
    "read_file": {"path": "f"},
    "write_file": {"path": "f", "content": "x\n"},
    "edit_file": {"path": "f", "old": "text", "new": "x"},
    "start_job": {"command": "true"},
    "run_command": {"command": "true"},
}


@pytest.mark.parametrize(("tool", "field"), TEXT_FIELDS)
async def test_odd_texts(tool: str, field: str, call: Call, root: Path) -> None:
    (root / "f").write_text("text\n")
    for text in ODD_COMMANDS if field == "command" else ODD:
        with suppress(ToolError, Refused, AsksNeeded):
            await call(tool, **{**USUAL.get(tool, {}), field: text})
    assert not (root / "made").exists()
