"""Each metric and label that the dashboard asks for is one that a worker exposes."""

import asyncio
import json
import re
import signal
import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from scripts.dashboard import FILE, render
from tests.crash.servers import free_port
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Fail

from .conftest import Recorded, Shell, wait_for_line

TURNS = """
expect: [{role: user, contains: []}]
reply:
  parts:
    - {kind: tool_call, id: a, name: write_file, arguments: {path: .env, content: x}}
    - {kind: tool_call, id: b, name: run_command, arguments: {command: echo}}
  finish: tool_use
  usage: {input: 100, output: 20}
  cost_usd: '0.25'
---
expect:
  - {role: tool, call_id: a, is_error: true, contains: []}
  - {role: tool, call_id: b, is_error: false, contains: []}
reply:
  parts: [{kind: tool_call, id: c, name: finish, arguments: {summary: read}}]
  finish: tool_use
  usage: {input: 200, output: 10}
"""
METRIC = re.compile(r"\b((?:io_harness|gen_ai|temporal)_[a-z_]+)(?=[\[{)]|$)")
GROUPED = re.compile(r"by \(([^)]*)\)")
FILTERED = re.compile(r"\{(\w+)!?=")


def expressions() -> list[str]:
    panels = json.loads(FILE.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_the_file_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == render(), "run: uv run python -m scripts.dashboard"


async def test_a_worker_exposes_what_the_dashboard_shows(shell: Shell, recorded: Recorded) -> None:
    async with FakeProvider(Fail(503), Fail(401)) as fake:
        labels = await asyncio.to_thread(exposed, shell, recorded(TURNS), fake.url)
    asked = [(metrics_of(expression), expression) for expression in expressions()]
    assert len(asked) > 15
    for metrics, expression in asked:
        assert len(metrics) == 1, expression
        assert metrics[0] in labels, expression
        for label in labels_asked(expression):
            assert label in labels[metrics[0]], (label, expression)


def exposed(shell: Shell, model: str, failing: str) -> dict[str, set[str]]:
    """Labels by metric, after a run with this model and one whose provider, at that address, fails."""
    port = free_port()
    worker = shell.start("up", "--metrics", str(port))
    wait_for_line(worker, "working on the task queue", stderr=True)
    # Started for the worker alone: a run that is followed is worked on by its follower too.
    for more in (
        ("--model", model),
        ("--model", "openai-compatible/none", "--set", f"model.base_url={failing}/v1"),
    ):
        started = shell.run(
            "run", "--detach", "--goal", "g", "-w", ".", "--policy", "unattended", "--verify", "true",
            *more,
        )  # fmt: skip
        assert started.code == 0, started.err + started.out
    address = f"http://127.0.0.1:{port}/metrics"
    while sum_of(scrape(address), "io_harness_runs_total") < 2:
        time.sleep(0.2)
    labels = labels_of(scrape(address))
    shell.end(worker, signal.SIGINT)
    return labels


def metrics_of(expression: str) -> list[str]:
    return METRIC.findall(GROUPED.sub("", expression))


def labels_asked(expression: str) -> set[str]:
    grouped = {name for names in GROUPED.findall(expression) for name in names.split(", ")}
    return grouped | set(FILTERED.findall(expression))


def scrape(address: str) -> list[Sample]:
    with urllib.request.urlopen(address) as reply:
        text = reply.read().decode()
    return [s for family in text_string_to_metric_families(text) for s in family.samples]


def labels_of(samples: list[Sample]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for sample in samples:
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


def sum_of(samples: list[Sample], metric: str) -> float:
    return sum(sample.value for sample in samples if sample.name == metric)
