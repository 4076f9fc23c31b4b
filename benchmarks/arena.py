"""Where contestants meet: the same model, the same workspace, a Temporal server of each kind."""

import asyncio
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from temporalio.service import ConnectConfig, RPCError, ServiceClient

from benchmarks.contestants.task import Report, RunReport, Task
from benchmarks.model_server import Conversation, ModelServer, Say
from io_harness.sandbox import process_tree
from io_harness.server import embedded_server, find_binary, free_ports
from io_harness.workflows.attributes import NAMES

ROOT = Path(__file__).parents[1]
ServerKind = Literal["embedded", "default", "none"]
_SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_QUIET_SECONDS = 300
"""And a second for each run: all begin at once, and the first request comes when the first is ready."""
_START_SECONDS = 60


class NotRun(Exception):
    """A contestant could not take part. The message says why; it belongs in the table."""


_DONE = Say("done")


@dataclass(frozen=True, eq=False)
class Contestant:
    label: str
    module: str
    """In `benchmarks.contestants`."""
    needs: tuple[str, ...] = ()
    """Modules that must be installed."""
    tool: str = "run_command"
    finish: Say = _DONE


_FINISH = Say(tool="finish", arguments={"summary": "done"})
OURS = Contestant("io-harness", "ours", finish=_FINISH)
WAITING = Contestant("io-harness, waiting for humans", "waiting", finish=_FINISH)
BARE = Contestant("bare workflow of two activities", "bare")
ISOLATED = Contestant("the same with bubblewrap and git", "isolated")
PYDANTIC_AI = Contestant(
    "pydantic-ai, Temporal durability", "pydantic_ai_temporal", ("pydantic_ai",)
)
OPENAI_AGENTS = Contestant(
    "OpenAI Agents, Temporal integration",
    "openai_agents_temporal",
    ("agents", "temporalio.openai_agents"),
)
LOCAL = (
    Contestant("pydantic-ai, in process", "pydantic_ai_local", ("pydantic_ai",)),
    Contestant("OpenAI Agents, in process", "openai_agents_local", ("agents",)),
    Contestant(
        "mini-swe-agent, in process",
        "mini_swe_agent",
        ("minisweagent",),
        tool="bash",
        finish=Say(tool="bash", arguments={"command": _SUBMIT}),
    ),
)


@dataclass(frozen=True)
class Played:
    """One run of a contestant's process."""

    report: Report
    server_seconds: float
    """Processor time of the Temporal server meanwhile; 0 without one."""
    conversations: tuple[Conversation, ...]

    @property
    def complete(self) -> bool:
        return all(run.outcome == "done" for run in self.report.runs)


@dataclass(frozen=True)
class RunningServer:
    address: str
    pid: int


class Arena:
    """Runs contestants, one at a time."""

    def __init__(
        self, model: ModelServer, folder: Path, servers: dict[ServerKind, RunningServer]
    ) -> None:
        self._model = model
        self._folder = folder
        self._servers = servers
        self._numbers = itertools.count(1)

    async def play(
        self,
        contestant: Contestant,
        server: ServerKind,
        turns: int,
        command: Callable[[int], str],
        *,
        goal: str = "Do what the script says.",
        runs: int = 1,
    ) -> Played:
        """Let a contestant make `turns` turns, each with the command of its number.

        Raises:
            NotRun: it isn't installed, or its process failed.
        """
        for module in contestant.needs:
            if importlib.util.find_spec(module) is None:
                raise NotRun(f"not installed: no module {module}")
        number = next(self._numbers)
        workspace, scratch = self._folder / f"workspace-{number}", self._folder / f"data-{number}"
        make_workspace(workspace)

        def script(number: int) -> Say:
            if number >= turns:
                return contestant.finish
            return Say(tool=contestant.tool, arguments={"command": command(number)})

        names = [f"{contestant.module.replace('_', '-')}-{number}-{run}" for run in range(runs)]
        task = Task(
            urls=[self._model.open(name, script) for name in names],
            workspace=str(workspace),
            scratch=str(scratch),
            goal=goal,
            address="" if server == "none" else self._servers[server].address,
        )
        before = self._server_seconds(server)
        held = [self._model.conversations[name] for name in names]
        try:
            report = await self._watched(contestant, task, held)
        finally:
            shutil.rmtree(workspace)
            shutil.rmtree(scratch, ignore_errors=True)
            for name in names:
                del self._model.conversations[name]
        return Played(report, self._server_seconds(server) - before, tuple(held))

    async def _watched(
        self, contestant: Contestant, task: Task, conversations: Sequence[Conversation]
    ) -> Report:
        """The contestant's report, or that it was ended because it asked for nothing any more: a
        workflow can be stuck for ever."""
        began, patience = time.perf_counter(), _QUIET_SECONDS + len(conversations)
        running = asyncio.ensure_future(_in_child(contestant, task, self._folder / "cache"))
        while not running.done():
            await asyncio.wait({running}, timeout=1)
            last = max(
                (each.arrivals[-1] for each in conversations if each.arrivals), default=began
            )
            if time.perf_counter() - last > patience:
                running.cancel()
                await asyncio.wait({running})
                stuck = RunReport(outcome=f"stuck: no model request for {patience} s")
                ends = [stuck] * len(task.urls)
                return Report(runs=ends, peak_mib=0, cpu_seconds=0, children_seconds=0)
        return running.result()

    def _server_seconds(self, server: ServerKind) -> float:
        if server == "none":
            return 0.0
        return process_tree.usage([self._servers[server].pid]).cpu_seconds


async def _in_child(contestant: Contestant, task: Task, cache: Path) -> Report:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"benchmarks.contestants.{contestant.module}", task.model_dump_json(),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(cache),
    )  # fmt: skip
    try:
        stdout, stderr = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise NotRun(f"its process ended with {process.returncode}: {''.join(last)[:300]}")
    return Report.model_validate_json(stdout.splitlines()[-1])


def environment(cache: Path) -> dict[str, str]:
    """As on a host that is in use: the sandbox is probed once for all, and bytecode compiled once, as
    an installed package has it."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return env | {"XDG_CACHE_HOME": str(cache), "PYTHONPYCACHEPREFIX": str(cache / "bytecode")}


def make_workspace(path: Path) -> None:
    """A small git repository."""
    path.mkdir(parents=True)
    (path / "README.md").write_text("A small project.\n")
    (path / "main.py").write_text("print('hello')\n")
    identity = ("-c", "user.name=b", "-c", "user.email=b@localhost")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "start")):
        subprocess.run(["git", "-C", str(path), *words], check=True)


@asynccontextmanager
async def arena(kinds: Sequence[ServerKind]) -> AsyncIterator[Arena]:
    """An arena with servers of these kinds."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        model = await stack.enter_async_context(ModelServer().running())
        servers: dict[ServerKind, RunningServer] = {}
        if "embedded" in kinds:
            held = await stack.enter_async_context(embedded_server(folder / "server", NAMES))
            servers["embedded"] = RunningServer(held.server.address, held.server.pid)
        if "default" in kinds:
            servers["default"] = await stack.enter_async_context(_default_server(folder))
        yield Arena(model, folder, servers)


@asynccontextmanager
async def _default_server(folder: Path) -> AsyncIterator[RunningServer]:
    """`temporal server start-dev` as it comes: in memory, no flag but ports and quiet logs."""
    port, ui_port = free_ports()
    address = f"127.0.0.1:{port}"
    with (folder / "default-server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(find_binary()), "server", "start-dev", "--port", str(port),
            "--ui-port", str(ui_port), "--log-level", "error", stdout=log, stderr=log,
        )  # fmt: skip
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not await _answers(address):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.1)
            yield RunningServer(address, process.pid)
        finally:
            process.terminate()
            await process.wait()


async def _answers(address: str) -> bool:
    try:
        service = await ServiceClient.connect(ConnectConfig(target_host=address))
        return await service.check_health()
    except (RPCError, RuntimeError):
        return False
