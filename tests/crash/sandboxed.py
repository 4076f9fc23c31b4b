"""SIGKILL for a sandboxed process itself, at each place where one lives, up to three times in a row,
under frequent continue-as-new and with signals at random, as a table:

    python -m tests.crash.sandboxed

The agent is told of each kill that it can see; nothing is repeated unasked, lost or counted twice. The
exit code is 1 if it was otherwise.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from temporalio.client import WorkflowFailureError

from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Outcome, RunResult
from tests.integration.conftest import BROKEN, FIXED, TEST, Handle
from tests.scripted import Turn, call, turn, write_script

from .scene import Scene, Worker, chain
from .servers import ServerProcess, connected
from .test_drain import in_command
from .test_kill_worker import committed, work

Place = Literal["set-up", "MCP server", "command", "criterion"]
PLACES: tuple[Place, ...] = get_args(Place)
ENDED = "ended by signal 9"
AT_ONCE = 4
_SECONDS = 300
_SETUP_SECONDS = 5
_RAN = "echo ran >> ran.txt"
_HOSTILE = Path(__file__).parents[1] / "integration" / "mcp" / "hostile.py"


@dataclass(frozen=True)
class Case:
    """How often the process of each place is killed, one kill after the other."""

    kills: Mapping[Place, int]

    def __getitem__(self, place: Place) -> int:
        return self.kills.get(place, 0)

    def __str__(self) -> str:
        return ", ".join(f"{place} x {times}" for place, times in self.kills.items()) or "nothing"


CASES = (
    Case({}),
    # The set-up has four attempts, of which a busy machine may lose one by itself.
    *(Case({"set-up": times}) for times in (1, 2)),
    *(Case({place: times}) for place in PLACES[1:] for times in (1, 2, 3)),
    Case(dict.fromkeys(PLACES, 1)),
)


@dataclass(frozen=True)
class Marked:
    """One run of a case, and how its processes are told from all others."""

    case: Case
    folder: Path
    mark: str

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def line(self, place: Place) -> str:
        """The command that is killed, or the server's mark."""
        match place:
            case "set-up":
                return f"sleep {_SETUP_SECONDS if self.case[place] else 0}; : {self.mark}"
            case "MCP server":
                return self.mark
            case "command":
                return f"{_RAN}; sleep 60; : {self.mark}"
            case "criterion":
                return f"sleep $(cat wait.txt); python -m unittest -q test_calc && : {self.mark}"

    def pids(self, place: Place) -> list[int]:
        """The payloads themselves, not what launches them."""
        before = str(_HOSTILE) if place == "MCP server" else "-c"
        wanted = [before.encode(), self.line(place).encode()]
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if (entry / "cmdline").read_bytes().split(b"\0")[1:3] != wanted:
                    continue
                # A shell that sleeps has done what comes before.
                sleeps = (entry / "task" / entry.name / "children").read_text()
                if sleeps or place == "MCP server":
                    found.append(int(entry.name))
        return found

    async def kill(self, run: Handle) -> None:
        """Kill each place's process as often as the case says, in the order in which they live."""
        for place, times in self.case.kills.items():
            if place == "MCP server":
                await self._kill_server(run, times)
                continue
            killed: set[int] = set()
            while len(killed) < times:
                await asyncio.sleep(0.05)
                for pid in set(self.pids(place)) - killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)

    async def _kill_server(self, run: Handle, calls: int) -> None:
        """The server lives all the time: kill it in each of the first calls, and again where that came
        before the call did, and another was started for it."""
        while (await run.query(AgentRun.status)).step <= calls:
            if pids := self.pids("MCP server") if await in_command(run) else ():
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                await asyncio.sleep(1)  # what was killed is seen, and the next step begins
            await asyncio.sleep(0.05)

    def turns(self) -> list[Turn]:
        killed = self.line("command")
        return [
            *(
                # Told apart, for the same call again and again would bring a nudge.
                turn(call("mcp__h__hang", fails=True, shows=("h: ",), call=number))
                for number in range(self.case["MCP server"])
            ),
            turn(call("mcp__h__ok", shows=(("anew",) if self.case["MCP server"] else ()))),
            *(
                turn(call("run_command", command=killed, fails=True, shows=(ENDED,)))
                for _ in range(self.case["command"])
            ),
            turn(call("run_command", command=_RAN)),
            turn(call("edit_file", path="calc.py", old="a - b", new="a + b")),
            *(
                turn(call("finish", summary="done", fails=True, shows=(ENDED,)))
                for _ in range(self.case["criterion"])
            ),
            turn(call("write_file", path="wait.txt", content="0\n")),
            turn(call("finish", summary="done")),
        ]

    def contract(self) -> TaskContract:
        self.source.mkdir(parents=True)
        for name, text in (
            ("calc.py", BROKEN), ("test_calc.py", TEST), (".gitignore", "__pycache__/\n"),
            ("wait.txt", "60\n"),
        ):  # fmt: skip
            (self.source / name).write_text(text)
        script = write_script(self.folder / "script.yaml", *self.turns())
        return TaskContract.model_validate(
            {
                "goal": "Make add right.",
                "workspace": {
                    "kind": "directory",
                    "path": str(self.source),
                    "setup": self.line("set-up"),
                },
                "verification": {"kind": "command", "run": self.line("criterion")},
                "policy": "unattended",
                "model": {"provider": "replay", "name": "script", "base_url": script},
                "mcp_servers": [
                    {
                        "kind": "stdio",
                        "id": "h",
                        "command": sys.executable,
                        "args": [str(_HOSTILE), self.mark],
                        "read": [str(_HOSTILE.parent)],
                        "connect_seconds": 60,
                        "call_seconds": 20,
                    }
                ],
            }
        )

    def expected(self) -> dict[str, object]:
        commands = self.case["command"] + 1
        steps = len(self.turns())
        return {
            "outcome": Outcome.SUCCESS,
            "reason": "verified and landed",
            "edit": FIXED,
            "command": "ran\n" * commands,
            "snapshots": commands + 2,
            "steps": steps,
            "tool calls": steps,
            "model calls": steps,
            "verifications": self.case["criterion"] + 1,
            "landings": 1,
        }


@dataclass(frozen=True)
class Row:
    case: Case
    outcome: str
    wrong: tuple[str, ...]
    executions: int
    seconds: float

    def __str__(self) -> str:
        once = "; ".join(self.wrong) or "yes"
        return f"| {self.case} | {self.outcome} | {once} | {self.executions} | {self.seconds:.0f} |"


async def play(case: Case, server: ServerProcess, folder: Path, moments: random.Random) -> Row:
    """One run of the case.

    Args:
        folder: The run's own; the snapshot store is there too.
    """
    begun = time.monotonic()
    name = f"sandboxed-{uuid.uuid4().hex[:8]}"
    marked = Marked(case, folder, name)
    client = await connected(server.address, folder / "data")
    run: Handle = await client.start_workflow(
        "AgentRun", marked.contract(), id=name, task_queue=name, result_type=RunResult
    )
    worker = Worker(server.address, folder / "data", name)
    scene = Scene(client, server, folder / "data", folder, run, worker)
    worker.start(None)
    noise = asyncio.create_task(scene.disturb(moments))
    try:
        async with asyncio.timeout(_SECONDS):
            await marked.kill(run)
            result = await scene.result()
            wrong, executions = await _judge(marked, scene, result)
            return Row(case, result.outcome, wrong, executions, time.monotonic() - begun)
    except TimeoutError:
        return Row(case, "hangs", ("no end",), 0, _SECONDS)
    except WorkflowFailureError as error:
        return Row(case, "failed", (str(error.cause),), 0, time.monotonic() - begun)
    finally:
        noise.cancel()
        await asyncio.gather(noise, return_exceptions=True)
        worker.kill()


async def _judge(marked: Marked, scene: Scene, result: RunResult) -> tuple[tuple[str, ...], int]:
    """What is not as it must be, and how many executions there were."""
    histories = await chain(scene)
    done = sum((committed(events) for events in histories), Counter[str]())
    ran = marked.source / "ran.txt"
    found: dict[str, object] = {
        "outcome": result.outcome,
        "reason": result.reason,
        "edit": (marked.source / "calc.py").read_text(),
        "command": ran.read_text() if ran.exists() else "",
        "snapshots": len(work(scene.data_dir, result)),
        "steps": result.spend.steps,
        "tool calls": result.spend.tool_calls,
        "model calls": done["complete"],
        "verifications": done["verify"],
        "landings": done["land"],
    }
    expected = marked.expected()
    wrong = tuple(f"{k}: {a!r}, not {expected[k]!r}" for k, a in found.items() if a != expected[k])
    return wrong, len(histories)


HEAD = """\
| killed | outcome | effects once | executions | seconds |
| --- | --- | --- | ---: | ---: |"""


async def play_all(cases: Sequence[Case], folder: Path, seed: int) -> tuple[Row, ...]:
    """The cases' rows, some at a time, on one server."""
    server = ServerProcess(folder / "server")
    server.start()
    places = asyncio.Semaphore(AT_ONCE)

    async def one(index: int, case: Case) -> Row:
        async with places:
            row = await play(case, server, folder / str(index), random.Random(seed + index))
            print(row, flush=True)
            return row

    print(f"seed {seed}\n\n{HEAD}")
    try:
        return tuple(await asyncio.gather(*(one(i, case) for i, case in enumerate(cases))))
    finally:
        server.kill()


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        rows = await play_all(CASES, Path(folder), random.randrange(2**32))
    wrong = sum(bool(row.wrong) for row in rows)
    kills = sum(sum(case.kills.values()) for case in CASES)
    print(f"\n{kills} kills of sandboxed processes, {wrong} runs with anything lost or doubled")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
