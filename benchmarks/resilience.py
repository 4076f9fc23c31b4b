"""What a run does when its provider fails: each case with each API, as a Markdown table.

    python -m benchmarks.resilience

Everything is real but the provider: the embedded Temporal server, a worker, the workflow, and HTTP
to a fake provider on loopback that fails as told and then answers. A cell reads
`requests · outcome (code) · exit code of io-harness run`.
"""

import asyncio
import os
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from io_harness.activities.settings import Settings
from io_harness.cli.exits import exit_of
from io_harness.plugin import TASK_QUEUE, HarnessPlugin, harness_worker
from io_harness.server import embedded_server
from io_harness.trace import EndedStep
from io_harness.workflows.agent_run import AgentRun
from io_harness.workflows.attributes import NAMES
from io_harness.workflows.contract import TaskContract
from io_harness.workflows.result import RunResult
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Answer, Call, Cut, Fail, Hang, Raw, Say

APIS = {
    "anthropic": "",
    "openai": "/v1",
    "openai-responses": "/v1",
    "openrouter": "/api/v1",
    "openai-compatible": "/v1",
}
KEY = "BENCHMARK_FAKE_KEY"
AT_ONCE = 6
FINISH = Say(calls=(Call("finish", {"summary": "done"}, id="end"),))
READ = Call("read_file", {"path": "a.txt"})


DENIES_ALL = {
    "preset": "unattended",
    "layers": [{"name": "contract", "rules": [{"effect": "deny", "act": "net", "target": "*:*"}]}],
}


@dataclass(frozen=True)
class Case:
    name: str
    answers: Sequence[Answer]
    contract: dict[str, object] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)
    fallback: bool = False
    """Whether a second model, which always answers, follows in the chain."""


def _status(status: int, times: int = 1, **more: object) -> tuple[Answer, ...]:
    return (*[Fail(status, **more)] * times, FINISH)  # type: ignore[arg-type]


CASES = (
    Case("no failure", (FINISH,)),
    Case("400 once", _status(400)),
    Case("401", _status(401)),
    Case("401, with a fallback", _status(401), fallback=True),
    Case("403", _status(403)),
    Case("404", _status(404)),
    Case("408", _status(408)),
    Case("409", _status(409)),
    Case("422", _status(422)),
    Case("429, Retry-After: 0.5", _status(429, headers={"retry-after": "0.5"})),
    Case("429, no Retry-After", _status(429)),
    Case(
        "429, Retry-After past the time budget",
        _status(429, headers={"retry-after": "7200"}),
    ),
    Case(
        "429, Retry-After past the time budget, with a fallback",
        _status(429, headers={"retry-after": "7200"}),
        fallback=True,
    ),
    Case(
        "429, quota used up",
        _status(429, code="insufficient_quota", message="You exceeded your current quota"),
    ),
    Case("402, no credit", _status(402, message="insufficient credits")),
    Case("500", _status(500)),
    Case("502 with an HTML body", _status(502, body=b"<html>Bad gateway</html>")),
    Case("503", _status(503)),
    Case("529", _status(529)),
    Case("529 for ever", [Fail(529, headers={"retry-after": "0.2"})] * 20),
    Case(
        "context too long",
        _status(400, code="context_length_exceeded", message="prompt is too long"),
    ),
    Case(
        "context too long, after four turns",
        (
            *(Say(calls=(Call("read_file", {"path": "a.txt", "start_line": n}),)) for n in range(1, 5)),
            Fail(400, code="context_length_exceeded", message="prompt is too long"),
            Say("a.txt was read."),
            FINISH,
        ),
    ),
    Case("a policy that denies the host", (FINISH,), {"policy": DENIES_ALL}),
    Case("connection broken before the answer", (Hang(), FINISH)),
    Case("connection broken in mid-stream", (Say("t", cut=Cut(2, "reset")), FINISH)),
    Case("stream ends without its end marker", (Say("t", cut=Cut(3, "close")), FINISH)),
    Case(
        "silence in mid-stream",
        (Say("t", cut=Cut(2, "stall")), FINISH),
        options={"idle_seconds": 5},
    ),
    Case(
        "a reply without end",
        (Say("x" * 90_000, pause=0.05, write_bytes=20), FINISH),
        options={"seconds": 15},
    ),
    Case("an event that is not JSON", (Say("t", cut=Cut(2, "garbage")), FINISH)),
    Case("an error in mid-stream", (Say("t", cut=Cut(2, "error")), FINISH)),
    Case(
        "an error in a 200 body",
        (Raw(b'{"error": {"code": 503, "message": "busy"}}', "application/json"), FINISH),
    ),
    Case("a 200 that is a web page", (Raw(b"<html>login</html>", "text/html"), FINISH)),
    Case("empty reply once", (Say(), FINISH)),
    Case("empty reply twice", (Say(), Say(), FINISH)),
    Case("arguments cut", (Say(calls=(Call("read_file", '{"path": "a'),)), FINISH)),
    Case("unknown tool", (Say(calls=(Call("no_such_tool", {}),)), FINISH)),
    Case("reply cut at its length limit", (Say(calls=(READ,), finish="length"), FINISH)),
    Case("malformed replies for ever", [Say(calls=(Call("no_such_tool", {}),))] * 9),
    Case("refusal", (Say("I won't.", finish="refusal"), FINISH)),
    Case("refusal, with a fallback", (Say("I won't.", finish="refusal"),), fallback=True),
)  # fmt: skip


async def main() -> None:
    os.environ[KEY] = "k"
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        source = home / "source"
        source.mkdir()
        (source / "a.txt").write_text("hello\n")
        settings = Settings(data_dir=home / "data", credentials=frozenset({KEY}))
        async with embedded_server(home / "server", NAMES) as held:
            client = await Client.connect(held.server.address, plugins=[HarnessPlugin(settings)])
            async with harness_worker(client):
                await _table(client, source)


async def _table(client: Client, source: Path) -> None:
    print(f"| case | {' | '.join(APIS)} |")
    print(f"| --- |{' --- |' * len(APIS)}")
    at_once = asyncio.Semaphore(AT_ONCE)

    async def cell(case: Case, api: str) -> str:
        async with at_once:
            return await _run(client, source, case, api)

    async with asyncio.TaskGroup() as group:
        rows = [[group.create_task(cell(case, api)) for api in APIS] for case in CASES]
        for case, row in zip(CASES, rows, strict=True):
            print(f"| {case.name} | {' | '.join([await task for task in row])} |", flush=True)


async def _run(client: Client, source: Path, case: Case, api: str) -> str:
    async with FakeProvider(*case.answers) as fake, FakeProvider(FINISH) as second:
        fallbacks = [_model(second, "openai", {})] if case.fallback else []
        contract = TaskContract.model_validate(
            {
                "goal": "Read a.txt.",
                "workspace": {"kind": "directory", "path": str(source)},
                "verification": {"kind": "none"},
                "policy": "unattended",
                "model": _model(fake, api, case.options),
                "fallbacks": fallbacks,
                **case.contract,
            }
        )
        handle = await client.start_workflow(
            AgentRun.run,
            contract.model_dump(mode="json"),
            id=f"resilience-{uuid.uuid4().hex[:10]}",
            task_queue=TASK_QUEUE,
        )
        ended = await _end(handle)
        requests = str(len(fake.requests)) + (f"+{len(second.requests)}" if case.fallback else "")
    outcome = ended.result.outcome if ended.result else "did not start"
    code = ended.result.code if ended.result else ended.code
    return f"{requests} · {outcome}{f' ({code})' if code else ''} · {int(exit_of(ended))}"


async def _end(handle: WorkflowHandle[AgentRun, RunResult]) -> EndedStep:
    try:
        result = await handle.result()
    except WorkflowFailureError as error:
        code = error.cause.type or "" if isinstance(error.cause, ApplicationError) else ""
        return EndedStep(at=datetime.now(UTC), status="failed", result=None, code=code)
    return EndedStep(at=datetime.now(UTC), status="completed", result=result)


def _model(fake: FakeProvider, api: str, options: dict[str, object]) -> dict[str, object]:
    return {
        "provider": api,
        "name": "fake",
        "base_url": fake.url + APIS[api],
        "api_key": f"env:{KEY}",
        "options": options,
    }


if __name__ == "__main__":
    asyncio.run(main())
