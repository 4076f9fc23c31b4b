"""Background jobs: they outlive a call, and neither their run nor their worker."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.gate import Gate
from io_harness.activities.tools import jobs as jobs_module
from io_harness.activities.tools.context import AsksNeeded
from io_harness.activities.tools.errors import JobLost, TooManyJobs
from io_harness.activities.tools.jobs import JobTable
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.workflows.payloads import Grant
from io_harness.workflows.policy import Policy
from tests.integration.site import policy, serving
from tests.unit.tools.conftest import Call, make_context


def job_of(text: str) -> str:
    found = re.search(r"job-[0-9a-f]+-\d+", text)
    assert found is not None
    return found[0]


async def beats_on(root: Path) -> bool:
    """Whether a job that writes to `beat` again and again is alive."""
    before = (root / "beat").read_text()
    await asyncio.sleep(0.5)
    return (root / "beat").read_text() != before


BEAT = "while :; do date +%s%N > beat; sleep 0.05; done"


async def test_a_job_is_read_by_cursor_until_it_ends(call: Call) -> None:
    begun = await call("start_job", command="for n in 1 2 3 4 5; do echo line $n; sleep 0.2; done")
    job = job_of(begun.text)
    text = begun.text.split("\n", 1)[1]
    cursor = int(re.search(r"next cursor (\d+)", begun.text)[1])  # type: ignore[index]
    for _ in range(50):
        more = await call("job_output", job=job, cursor=cursor, wait_seconds=5)
        header, rest = more.text.split("\n", 1)
        text += rest
        cursor = int(re.search(r"next cursor (\d+)", header)[1])  # type: ignore[index]
        if "exit 0" in header and not rest:
            break
    assert text == "".join(f"line {n}\n" for n in range(1, 6))


async def test_a_job_goes_on_beside_other_calls_and_is_stopped(root: Path, call: Call) -> None:
    job = job_of((await call("start_job", command=BEAT)).text)
    while not (root / "beat").exists():
        await asyncio.sleep(0.05)
    await call("run_command", command="true")
    assert await beats_on(root)
    assert "was stopped" in (await call("stop_job", job=job)).text
    assert not await beats_on(root)
    assert "was stopped" in (await call("job_output", job=job)).text


async def test_a_job_ends_at_its_limit(call: Call) -> None:
    job = job_of((await call("start_job", command="sleep 100", timeout_seconds=1)).text)
    done = await call("job_output", job=job, wait_seconds=30)
    assert "over the limit of 1 s" in done.text


async def test_after_a_worker_change_a_job_is_lost(
    root: Path, data_dir: Path, call: Call, jobs: JobTable
) -> None:
    job = job_of((await call("start_job", command=BEAT)).text)
    while not (root / "beat").exists():
        await asyncio.sleep(0.05)
    with pytest.raises(JobLost, match="belongs to another worker"):
        JobTable(data_dir).get("run-1", job)
    with pytest.raises(JobLost, match="no job"):
        jobs.get("another-run", job)
    await jobs.aclose()
    assert not await beats_on(root)


async def test_a_job_ends_with_its_run(
    root: Path, data_dir: Path, jobs: JobTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "_LOOK_SECONDS", 0.2)
    from io_harness.activities.tools.process import command_plan

    over = False

    async def is_over() -> bool:
        return over

    context = make_context(root, data_dir, "start_job", {})
    plan = await command_plan(context, BEAT)
    network = context.network.command("run-1", context.gate)
    await jobs.start("run-1", "c1", plan, network, is_over)
    while not (root / "beat").exists():
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    assert await beats_on(root)
    over = True
    for _ in range(50):
        if not await beats_on(root):
            break
    assert not await beats_on(root)


async def test_a_repeated_call_replaces_its_job(root: Path, data_dir: Path, jobs: JobTable) -> None:
    from io_harness.activities.tools.process import command_plan
    from tests.unit.tools.conftest import never

    context = make_context(root, data_dir, "start_job", {})
    plan = await command_plan(context, "sleep 100")
    network = context.network.command("run-1", context.gate)
    first = await jobs.start("run-1", "c1", plan, network, never)
    second = await jobs.start("run-1", "c1", plan, network, never)
    assert not first.running
    assert second.running


async def test_there_is_a_ceiling(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "MOST_JOBS", 2)
    first = job_of((await call("start_job", command="sleep 100")).text)
    await call("start_job", command="sleep 100")
    with pytest.raises(TooManyJobs, match="stop one first"):
        await call("start_job", command="sleep 100")
    await call("stop_job", job=first)
    await call("start_job", command="sleep 100")


async def test_a_connection_that_asks_waits_in_the_job_for_the_answer(
    root: Path, data_dir: Path, jobs: JobTable
) -> None:
    async with serving() as site:
        asking = Policy.model_validate(policy(("ask", site.target)))

        async def call(tool: str, grants: tuple[Grant, ...] = (), **arguments: JsonValue) -> str:
            context = make_context(root, data_dir, tool, arguments, asking, jobs)
            context = replace(context, gate=Gate(asking, grants))
            return (await ToolRegistry().get(tool).call(arguments, context)).text

        begun = await call("start_job", command=site.ask("one"))
        job = job_of(begun)
        await jobs.get("run-1", job).network.asked()
        with pytest.raises(AsksNeeded) as asked:
            await call("job_output", job=job)
        (request,) = asked.value.requests
        assert (request.act, request.target) == ("net", site.target)
        assert site.paths == []
        answered = await call(
            "job_output", (Grant(digest=request.digest),), job=job, wait_seconds=20
        )
        assert site.paths == ["one"]
        assert "hello one" in answered + await call("job_output", job=job, wait_seconds=20)
