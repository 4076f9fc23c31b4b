"""Help is instant: it imports nothing heavy."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from io_harness.cli import group

EXAMPLE = re.compile(r"\bio-harness( .*?|)(?= +[|#]| +2?>|\)\"|$)", re.MULTILINE)
HEAVY = ("temporalio", "pydantic", "rich", "yaml", "httpx")


@pytest.mark.parametrize("arguments", [[], *([name] for name in group.commands)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = f"""
import sys
sys.argv = ["io-harness", *{arguments!r}, "--help"]
from io_harness.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: io-harness" in done.stdout


def test_an_unknown_command_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from io_harness.cli import main; main()", "nonsense"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def every_command(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from every_command(below, f"{path} {name}")


@pytest.mark.parametrize(
    ("path", "command"),
    [pytest.param(*each, id=each[0]) for each in every_command(group, "io-harness")],
)
def test_help_has_examples_that_can_be_typed(
    path: str, command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.yaml").touch()
    (tmp_path / "build").mkdir()
    shown = command.get_help(click.Context(command, info_name=path)).partition("Examples:")[2]
    typed = [shlex.split(words) for words in EXAMPLE.findall(shown.partition("\n\n")[0])]
    assert typed, path
    for words in typed:
        parsed(words)


def parsed(words: list[str], command: click.Command = group) -> None:
    """Parse a command line down to the command that would run."""
    context = command.make_context(command.name, words)
    left = [*context._protected_args, *context.args]
    if isinstance(command, click.Group) and left:
        _, below, words = command.resolve_command(context, left)
        assert below is not None
        parsed(words, below)


def test_an_example_that_could_not_be_typed_would_be_seen() -> None:
    for words in (["status"], ["run", "--nonsense"], ["schedule", "make"], ["schema", "words"]):
        with pytest.raises(click.UsageError):
            parsed(words)
