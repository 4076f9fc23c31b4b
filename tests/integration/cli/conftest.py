"""The command as a person runs it: a process of its own, with a data directory of its own."""

import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from io_harness.server import embedded_server
from io_harness.workflows.attributes import NAMES
from tests.forks import Command

TIMEOUT = 120


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Shell:
    """Runs `io-harness` in one data directory, with no server configured and no keys."""

    home: Path
    cwd: Path
    started: list[Command] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    """Set besides the usual ones."""

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "LANG", "PYTHONPATH")
            if name in os.environ
        }
        return {**kept, "IO_HARNESS_DATA": str(self.home), **self.variables}

    def start(self, *arguments: str, streams: int | None = None, **variables: str) -> Command:
        """Args:
        streams: As `Command` has it.
        variables: Set for this one alone.
        """
        environment = {**self.environment, **variables}
        process = Command(*arguments, cwd=self.cwd, environment=environment, streams=streams)
        self.started.append(process)
        return process

    def run(self, *arguments: str, **variables: str) -> Done:
        return self.end(self.start(*arguments, streams=None, **variables))

    def end(self, process: Command, number: signal.Signals | None = None) -> Done:
        if number is not None:
            process.send_signal(number)
        out, err = process.communicate(TIMEOUT)
        assert process.returncode is not None
        return Done(process.returncode, out, err)


def wait_for_line(process: Command, text: str, *, stderr: bool = False) -> None:
    """Read the process's output up to the line that holds `text`."""
    stream = process.stderr if stderr else process.stdout
    seen = []
    for line in stream:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"{text!r} never came; there was:\n{''.join(seen)}")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    cwd = tmp_path / "work"
    cwd.mkdir()
    shell = Shell(tmp_path / "home", cwd)
    yield shell
    for process in shell.started:
        if process.poll() is None:
            process.kill()
            process.wait(TIMEOUT)


@pytest.fixture(scope="module")
async def kept_home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """A data directory whose server stays for a module's tests, so that commands find it running."""
    home = tmp_path_factory.mktemp("home")
    async with embedded_server(home, NAMES):
        yield home


@pytest.fixture
def shared(shell: Shell, kept_home: Path) -> Shell:
    """A shell on the server that stays."""
    shell.home = kept_home
    return shell


Recorded = Callable[[str], str]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Write a recording and get the value of --model that replays it."""

    def write(turns: str) -> str:
        file = tmp_path / "recording.yaml"
        file.write_text("format: 1\n---\n" + turns)
        return f"replay/{file}"

    return write
