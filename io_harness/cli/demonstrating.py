"""Behind `demo`."""

import importlib.resources
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.markup import escape

from io_harness.contract_file import contract_from
from io_harness.workflows.contract import TaskContract

from . import task
from .exits import CommandFailed, Exit
from .running import Shown, Start, start_and_follow
from .terminal import can_ask, console

GOAL = (
    "A credit note must cancel its invoice to the cent. For some invoices it is off by one cent. "
    "Find out why and fix it; the tests in tests/ say what is right."
)
RECORDING = "package:io_harness.demo/recording.yaml"
_VERIFY = "python -m unittest"
_GENERATED = ("__pycache__", "*.pyc")


@dataclass(frozen=True)
class Demo:
    """One showing of the demo."""

    live: bool
    model: str | None
    yes: bool
    keep: Path | None
    as_json: bool
    verbose: bool

    async def show(self) -> Exit:
        out = console(to_stderr=self.as_json)
        asks = self.yes or can_ask(out)
        folder = self._project()
        out.print(f"[dim]project[/]     {escape(str(folder))}, its tests fail", soft_wrap=True)
        code = await start_and_follow(
            Start(self._contract(folder, asks=asks)),
            approvals="approve" if self.yes else "prompt",
            shown=Shown(as_json=self.as_json, verbose=self.verbose),
        )
        if self.keep is None and code != Exit.PENDING:
            shutil.rmtree(folder.parent)
        if not self.live:
            out.print(
                "\nThe model's words were a recording; all else was real. `io-harness demo --live` "
                "uses a model of yours (ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY)."
            )
        return code

    def _contract(self, folder: Path, *, asks: bool) -> TaskContract:
        model: dict[str, JsonValue]
        if not self.live:
            model = {"provider": "replay", "name": "recording", "base_url": RECORDING}
        elif self.model:
            model = task.model_fields(self.model)
        else:
            model = task.usual_model()
        fields: dict[str, JsonValue] = {
            "goal": GOAL,
            "workspace": {"kind": "directory", "path": str(folder)},
            "verification": {"kind": "command", "run": _VERIFY, "protect": ["tests"]},
            "policy": "unattended",
            # Without a person the demo's throw-away copy is changed unasked.
            "landing": {"mode": "apply", "approve": "ask" if asks else "auto"},
            "budget": {"steps": 30, "working_seconds": 900},
            "model": model,
        }
        return contract_from(fields, "the demo")

    def _project(self) -> Path:
        """A copy of the packaged project, for the agent to work on."""
        if self.keep is not None and self.keep.exists():
            raise CommandFailed(
                Exit.USAGE, f"--keep {self.keep}: it exists already; name a new directory"
            )
        target = self.keep or Path(tempfile.mkdtemp(prefix="io-harness-demo-")) / "invoicing"
        source = importlib.resources.files("io_harness.demo").joinpath("project")
        with importlib.resources.as_file(source) as packaged:
            shutil.copytree(packaged, target, ignore=shutil.ignore_patterns(*_GENERATED))
        return target.absolute()
