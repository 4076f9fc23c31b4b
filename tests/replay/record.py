"""Makes the stored histories anew: `python -m tests.replay.record [NAME ...]`, by default all.

Each is one capability of a run. Run this only after a change of the workflow's code that is meant to
break running ones; otherwise the stored histories are the proof that it doesn't.
"""

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.service import GrpcCompression

from io_harness.activities.settings import Settings
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.server import embedded_server
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.approvals import Decision
from io_harness.workflows.attributes import NAMES
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import Usage
from tests.agents import FIXED_CALC, task
from tests.crash.test_kill_worker import demo_contract, project
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Fail, Say
from tests.integration.conftest import BROKEN, TEST, VERIFY, Handle
from tests.integration.mcp.test_runs import hostile
from tests.scripted import Turn, call, turn, verdict, write_review, write_script

HISTORIES = Path(__file__).parent / "histories"


@asynccontextmanager
async def harness(data: Path) -> AsyncIterator[Client]:
    async with embedded_server(data / "server", NAMES) as held:
        client = await Client.connect(
            held.server.address,
            plugins=[HarnessPlugin(Settings(data_dir=data))],
            grpc_compression=GrpcCompression.NONE,
        )
        async with harness_worker(client):
            yield client


def source(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "calc.py").write_text(BROKEN)
    (folder / "test_calc.py").write_text(TEST)
    (folder / ".gitignore").write_text("__pycache__/\n")
    return folder


async def start(client: Client, folder: Path, name: str, *turns: Turn, **more: object) -> Handle:
    script = write_script(folder / f"{name}.yaml", *turns)
    contract: dict[str, object] = {
        "goal": "Make add right.",
        "workspace": {"kind": "directory", "path": str(source(folder / name))},
        "verification": VERIFY,
        "policy": "unattended",
        "model": {"provider": "replay", "name": "script", "base_url": script},
        **more,
    }
    valid = TaskContract.model_validate(contract).model_dump(mode="json")
    return await client.start_workflow(AgentRun.run, valid, id=name, task_queue=TASK_QUEUE)


def fix() -> Turn:
    return turn(call("edit_file", path="calc.py", old="a - b", new="a + b"))


def finish() -> Turn:
    return turn(call("finish", summary="add adds now"))


async def waiting(run: Handle) -> str:
    """Wait until a human is asked; gives the request's id."""
    while not (pending := await run.query(AgentRun.pending_approvals)):
        await asyncio.sleep(0.05)
    return pending[0].id


async def approval(client: Client, folder: Path) -> Handle:
    run = await start(client, folder, "approval", fix(), finish(), policy="careful")
    await run.signal(AgentRun.decide, Decision(request=await waiting(run), verdict="approve"))
    return run


async def budget(client: Client, folder: Path) -> Handle:
    return await start(client, folder, "budget", fix(), finish(), budget={"steps": 1})


async def cancelled(client: Client, folder: Path) -> Handle:
    sleep = turn(call("run_command", command="sleep 60"))
    run = await start(client, folder, "cancelled", fix(), sleep)
    while (await run.query(AgentRun.status)).step < 2:
        await asyncio.sleep(0.05)
    await run.cancel()
    return run


async def continued(client: Client, folder: Path) -> Handle:
    writes = [turn(call("write_file", path=f"n{i}.txt", content=f"{i}\n")) for i in range(180)]
    limits = {"steps": 400, "tool_calls": 2_000}
    return await start(client, folder, "continued", *writes, fix(), finish(), budget=limits)


async def question(client: Client, folder: Path) -> Handle:
    asks = turn(call("ask_user", question="Which sign?", shows=("plus",)))
    run = await start(client, folder, "question", asks, fix(), finish())
    answer = Decision(request=await waiting(run), verdict="approve", reason="plus", by="ann")
    await run.execute_update(AgentRun.submit_decision, answer)
    return run


async def expired(client: Client, folder: Path) -> Handle:
    limits = {"seconds": 1, "on_expiry": "end_run"}
    return await start(client, folder, "expired", fix(), policy="careful", approval=limits)


async def side_by_side(client: Client, folder: Path) -> Handle:
    reads = turn(*(call("read_file", path=name) for name in ("calc.py", "test_calc.py")))
    return await start(client, folder, "side_by_side", reads, fix(), finish())


async def landing(client: Client, folder: Path) -> Handle:
    asks = {"mode": "apply", "approve": "ask"}
    run = await start(client, folder, "landing", fix(), finish(), landing=asks)
    await run.signal(AgentRun.decide, Decision(request=await waiting(run), verdict="approve"))
    return run


async def fallback(client: Client, folder: Path) -> Handle:
    """The first model's provider refuses it, and the next model goes on."""
    script = write_script(folder / "second.yaml", fix(), finish())
    second = {"provider": "replay", "name": "second", "base_url": script}
    async with FakeProvider(Fail(404)) as fake:
        url = f"{fake.url}/v1"
        first = {"provider": "openai-compatible", "name": "gone", "base_url": url}
        run = await start(client, folder, "fallback", model=first, fallbacks=[second])
        await run.result()
    return run


async def folded(client: Client, folder: Path) -> Handle:
    """A model that talks much and says that its window is nearly full: stubs of results don't help."""
    talk, read = "I wonder. " * 1_500, Call("read_file", {"path": "calc.py"})
    edit = Call("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"})
    near = Usage(input=20_000, output=20)
    said = (
        Say(talk, calls=(read,)), Say(talk, calls=(read,)), Say(talk, calls=(read,), usage=near),
        Say("I wondered much."), Say(calls=(edit,)),
        Say(calls=(Call("finish", {"summary": "add adds now"}),)),
    )  # fmt: skip
    async with FakeProvider(*said) as fake:
        model = {
            "provider": "openai-compatible", "name": "small", "base_url": f"{fake.url}/v1",
            "options": {"context_tokens": 24_000, "max_output_tokens": 1_000},
        }  # fmt: skip
        run = await start(client, folder, "folded", model=model)
        await run.result()
    return run


async def mcp(client: Client, folder: Path) -> Handle:
    tools = turn(call("mcp__h__ok"))
    return await start(client, folder, "mcp", tools, fix(), finish(), mcp_servers=[hostile()])


async def reviewed(client: Client, folder: Path) -> Handle:
    """Another model finds fault, and then none."""
    again = turn(call("edit_file", path="calc.py", old="b):", new='b):\n    """The sum."""'))
    found = (verdict(False, "add has none"), verdict(True, "add has one"))
    review = write_review(folder / "reviewer.yaml", *found)
    claim = turn(call("finish", summary="add adds now", fails=True))
    turns = (fix(), claim, again, finish())
    return await start(client, folder, "reviewed", *turns, verification=review)


async def tree(
    client: Client, folder: Path, name: str, agent: Sequence[Turn], *turns: Turn, **more: object
) -> Handle:
    """A run that may start sub-agents of the kind `fixer`, which take these turns."""
    script = write_script(folder / f"{name}-fixer.yaml", *agent)
    model = {"provider": "replay", "name": "fixer", "base_url": script}
    return await start(
        client, folder, name, *turns,
        containment={"agents": 2, "concurrent": 1, "depth": 1},
        agents={"fixer": {"role": "You fix.", "model": model}}, **more,
    )  # fmt: skip


def spawn(*, wait: bool = True, nudges: int = 0) -> Turn:
    part = task("fixer", FIXED_CALC)
    return turn(call("spawn_agents", agents=[part], wait=wait), nudges=nudges)


async def agents(client: Client, folder: Path) -> Handle:
    return await tree(client, folder, "agents", (fix(), finish()), spawn(), finish())


async def detached(client: Client, folder: Path) -> Handle:
    look = turn(call("read_file", path="calc.py"))
    got = turn(call("collect_agents", shows=("Merged",)))
    run = (spawn(wait=False), look, got, finish())
    return await tree(client, folder, "detached", (fix(), finish()), *run)


async def cancelled_tree(client: Client, folder: Path) -> Handle:
    asks = turn(call("ask_user", question="Which sign?"))
    run = await tree(client, folder, "cancelled_tree", (asks,), spawn())
    await waiting(run)
    await run.cancel()
    return run


async def messages(client: Client, folder: Path) -> Handle:
    return await conversation(client, folder, "messages")


async def sub_agent(client: Client, folder: Path) -> Handle:
    """The history of an agent that has a parent."""
    run = await conversation(client, folder, "sub_agent")
    await run.result()
    return client.get_workflow_handle_for(AgentRun.run, f"{run.id}/1.0.1")


async def conversation(client: Client, folder: Path, name: str) -> Handle:
    """An agent asks its parent, gets an answer and more budget, and waits for a human."""
    asks = turn(call("message_agent", to="parent", text="plus or minus?"))
    more = call("request_budget", tokens=1_000, why="it is long", shows=("Granted",))
    edit = call("edit_file", path="calc.py", old="a - b", new="a + b")
    answer = turn(call("message_agent", to="1.0.1", text="use plus", shows=("Sent.",)))
    got = turn(call("collect_agents", shows=("Merged",)))
    run = await tree(
        client, folder, name, (asks, turn(more, edit, nudges=1), finish()),
        spawn(nudges=1), answer, got, finish(), policy="careful",
    )  # fmt: skip
    request = await waiting(run)
    while (await run.query(AgentRun.status)).step < 3:
        await asyncio.sleep(0.05)
    await run.signal(AgentRun.decide, Decision(request=request, verdict="approve"))
    return run


async def demo(client: Client, folder: Path) -> Handle:
    contract = demo_contract(project(folder / "demo")).model_dump(mode="json")
    return await client.start_workflow(AgentRun.run, contract, id="demo", task_queue=TASK_QUEUE)


async def write(client: Client, run: Handle, name: str) -> None:
    """Store the last execution of the run's chain, without what tells of the host."""
    result = await run.result()
    history = await client.get_workflow_handle(run.id).fetch_history()
    text = re.sub(r'"identity": "[^"]*"', '"identity": "worker"', history.to_json())
    text = re.sub(r'"\d+@[^"]*"', '"sticky"', text)
    text = re.sub(r'("stackTrace": ?)"(?:[^"\\]|\\.)*"', r'\1""', text)  # the recorder's paths
    (HISTORIES / f"{name}.json").write_text(json.dumps(json.loads(text), indent=1) + "\n")
    print(f"{name}: {result.outcome}, {len(history.events)} events")


MAKE = {
    make.__name__: make
    for make in (
        demo, approval, budget, cancelled, continued, question, expired, side_by_side, landing,
        reviewed, fallback, folded, mcp, agents, detached, cancelled_tree, messages, sub_agent,
    )
}  # fmt: skip
"""One per capability."""


async def main(names: Sequence[str]) -> None:
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        sources.mkdir()
        async with harness(Path(folder) / "data") as client:
            for name in names:
                run = await MAKE[name](client, sources)
                await write(client, run, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(MAKE))
    names = parser.parse_args().names
    if unknown := set(names) - set(MAKE):
        parser.error(f"no such history: {', '.join(sorted(unknown))}")
    asyncio.run(main(names or [*MAKE]))
