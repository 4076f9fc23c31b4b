"""A conversation far longer than its model's window."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from io_harness.workflows.result import Outcome, RunResult, Usage
from tests.fakes.provider import FakeProvider, Received
from tests.fakes.script import Answer, Call, Fail, Say

from .conftest import Repo, Start

TURNS = 300
WINDOW = 32_000
GOAL = "Read the files, then make add right."
_STUB = re.compile(r'read_output\(\\"(out-[0-9a-f]{16})\\"\) shows it')
_FOLD = "about to be replaced by a summary"


def is_fold(body: Any) -> bool:
    return _FOLD in json.dumps(body["messages"][-1])


def counted(request: Received) -> Usage:
    """As a tokenizer would count it: four characters to a token, and the tools on top."""
    return Usage(input=len(json.dumps(request.body)) // 4, output=40)


Respond = Callable[[Received], Answer]


async def converse(
    start: Start, monkeypatch: pytest.MonkeyPatch, respond: Respond, window: int = WINDOW
) -> tuple[RunResult, list[Any]]:
    """The result of a run under a small window, and the bodies of its requests."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    async with FakeProvider(respond=respond) as fake:
        run = await start(
            goal=GOAL,
            budget={"steps": 500, "tokens": 100_000_000},
            model_more={
                "provider": "openai",
                "name": "fake",
                "base_url": fake.url + "/v1",
                "price": {"input": 1, "output": 2},
                "options": {"context_tokens": window},
            },
        )
        return await run.result(), [request.body for request in fake.requests]


def check_prompts(bodies: list[Any]) -> int:
    """Each request is within the window, and begins with the bytes of the one before; returns how
    often it doesn't, because the transcript was shortened."""
    shortened = 0
    for before, after in pairwise(bodies):
        # A token of English text or JSON holds over three bytes; the window is never passed.
        assert len(json.dumps(after["messages"])) / 3 < WINDOW
        assert GOAL in json.dumps(after["messages"][:2])
        if is_fold(before) or is_fold(after):
            continue
        prefix = before["messages"]
        shortened += after["messages"][: len(prefix)] != prefix
    return shortened


@pytest.mark.timeout(300)
async def test_300_turns_under_a_small_window(
    start: Start, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(TURNS):
        (repo.path / f"f{index}.txt").write_text(f"{index} " + "lorem ipsum dolor " * 60 + "\n")
    calls = iter(
        [
            *(Call("read_file", {"path": f"f{index}.txt"}) for index in range(TURNS)),
            Call("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"}),
            Call("finish", {"summary": "done"}),
        ]
    )

    def respond(request: Received) -> Answer:
        if is_fold(request.body):
            text = "So far I have read files, all of them dull."
            return Say(text=text, usage=counted(request))
        return Say(calls=(next(calls),), usage=counted(request))

    result, bodies = await converse(start, monkeypatch, respond)
    assert result.outcome is Outcome.SUCCESS, result.reason
    folds = sum(is_fold(body) for body in bodies)
    assert result.spend.steps == TURNS + 2 + folds
    assert folds >= 3
    assert check_prompts(bodies) == 0, "the cached prefix changed between folds"
    print(f"{TURNS} turns, {folds} folds")


async def test_old_long_results_become_stubs_that_can_be_read_again(
    start: Start, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 40
    for index in range(reads):
        (repo.path / f"f{index}.txt").write_text(f"file {index}\n" + "lorem ipsum dolor\n" * 300)
    calls = iter(
        [
            *(Call("read_file", {"path": f"f{index}.txt"}) for index in range(reads)),
            Call("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"}),
            Call("finish", {"summary": "done"}),
        ]
    )
    recovered: list[str] = []

    def respond(request: Received) -> Answer:
        if is_fold(request.body):
            return Say(text="I have read files.", usage=counted(request))
        stub = _STUB.search(json.dumps(request.body["messages"]))
        if stub is not None and not recovered:
            recovered.append(stub[1])
            return Say(calls=(Call("read_output", {"handle": stub[1]}),), usage=counted(request))
        return Say(calls=(next(calls),), usage=counted(request))

    result, bodies = await converse(start, monkeypatch, respond)
    assert result.outcome is Outcome.SUCCESS, result.reason
    asked = next(i for i, body in enumerate(bodies) if recovered[0] in json.dumps(body))
    read_back = bodies[asked + 1]["messages"][-1]["content"]
    assert "file 0" in read_back
    assert read_back.count("lorem ipsum dolor") == 300
    shortened = check_prompts(bodies)
    folds = sum(is_fold(body) for body in bodies)
    print(f"{reads} long results: shortened {shortened} times to stubs, folded {folds} times")
    assert 1 <= shortened <= reads // 6, "stubs are made in batches"


async def test_a_provider_whose_window_is_smaller_than_the_contract_says(
    start: Start, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 24
    for index in range(reads):
        (repo.path / f"f{index}.txt").write_text(f"file {index}\n" + "lorem ipsum dolor\n" * 250)
    calls = iter(
        [
            *(Call("read_file", {"path": f"f{index}.txt"}) for index in range(reads)),
            Call("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"}),
            Call("finish", {"summary": "done"}),
        ]
    )
    refused = 0

    def respond(request: Received) -> Answer:
        nonlocal refused
        if counted(request).input > 12_000:
            refused += 1
            return Fail(400, code="context_length_exceeded", message="too long")
        if is_fold(request.body):
            return Say(text="I have read files.", usage=counted(request))
        return Say(calls=(next(calls),), usage=counted(request))

    result, bodies = await converse(start, monkeypatch, respond, window=160_000)
    assert result.outcome is Outcome.SUCCESS, result.reason
    assert refused >= 2
    assert sum(is_fold(body) for body in bodies) == refused, "one fold for each refusal"
