"""A conversation far longer than its model's window."""

import json
from itertools import pairwise
from typing import Any

import pytest

from io_harness.workflows.result import Outcome, Usage
from tests.fakes.provider import FakeProvider, Received
from tests.fakes.script import Answer, Call, Say

from .conftest import Repo, Start

TURNS = 300
WINDOW = 32_000
_FOLD = "about to be replaced by a summary"


def is_fold(body: Any) -> bool:
    return _FOLD in json.dumps(body["messages"][-1])


@pytest.mark.timeout(300)
async def test_300_turns_under_a_small_window(
    start: Start, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for index in range(TURNS):
        (repo.path / f"f{index}.txt").write_text(f"{index} " + "lorem ipsum dolor " * 60 + "\n")
    turns = iter(range(TURNS))

    def respond(request: Received) -> Answer:
        # As a tokenizer would count it: four characters to a token, and the tools on top.
        usage = Usage(input=len(json.dumps(request.body)) // 4, output=40)
        if is_fold(request.body):
            return Say(text="So far I have read files, all of them dull.", usage=usage)
        index = next(turns, None)
        if index is not None:
            return Say(calls=(Call("read_file", {"path": f"f{index}.txt"}),), usage=usage)
        if fix:
            return Say(calls=(fix.pop(),), usage=usage)
        return Say(calls=(Call("finish", {"summary": "done"}),), usage=usage)

    fix = [Call("edit_file", {"path": "calc.py", "old": "a - b", "new": "a + b"})]
    async with FakeProvider(respond=respond) as fake:
        run = await start(
            goal="Read the files, then make add right.",
            budget={"steps": 500, "tokens": 100_000_000},
            model_more={
                "provider": "openai",
                "name": "fake",
                "base_url": fake.url + "/v1",
                "price": {"input": 1, "output": 2},
                "options": {"context_tokens": WINDOW},
            },
        )
        result = await run.result()
        bodies = [request.body for request in fake.requests]
    assert result.outcome is Outcome.SUCCESS, result.reason
    folds = sum(is_fold(body) for body in bodies)
    assert result.spend.steps == TURNS + 2 + folds
    assert folds >= 3
    kept = 0
    for before, after in pairwise(bodies):
        # A token of English text or JSON holds over three bytes; the window is never passed.
        assert len(json.dumps(after["messages"])) / 3 < WINDOW
        if is_fold(before) or is_fold(after):
            continue
        prefix = before["messages"]
        assert after["messages"][: len(prefix)] == prefix, "the cached prefix changed between folds"
        assert "Read the files, then make add right." in json.dumps(after["messages"][:2])
        kept += 1
    print(f"{TURNS} turns, {folds} folds, {kept} requests with an unchanged prefix")
