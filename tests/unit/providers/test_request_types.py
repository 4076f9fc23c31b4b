"""Judge: the request bodies, as they arrive, against the official packages' own types.

Those types are typed dictionaries. They are made strict here (an unknown field is an error), and
lazily validated iterables are run through to their end.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import anthropic.types
import openai.types
import openai.types.chat
import openai.types.responses
import openai.types.shared_params
import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from io_harness.activities.providers.wire import Wire
from tests.unit.providers.conftest import FINISH, READ_FILE, ask, sent
from tests.unit.providers.conversation import everything

OFFICIAL: Mapping[str, Any] = {
    "anthropic": MessageCreateParamsStreaming,
    "openai": CompletionCreateParamsStreaming,
    "openai-responses": ResponseCreateParamsStreaming,
    "openai-compatible": CompletionCreateParamsStreaming,
}


def _forbid_extras(package: ModuleType) -> None:
    for info in pkgutil.iter_modules(package.__path__):
        if "beta" in info.name or info.ispkg:
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for _, kind in inspect.getmembers(module, is_typeddict):
            kind.__pydantic_config__ = {"extra": "forbid", "arbitrary_types_allowed": True}


@pytest.fixture(scope="module")
def official() -> dict[str, TypeAdapter[Any]]:
    for package in (
        anthropic.types,
        openai.types.chat,
        openai.types.responses,
        openai.types.shared_params,
    ):
        _forbid_extras(package)
    return {api: TypeAdapter(kind) for api, kind in OFFICIAL.items()}


def _run_through(value: Any) -> None:
    if isinstance(value, Mapping):
        for inner in value.values():
            _run_through(inner)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for inner in value:
            _run_through(inner)


def judge(adapter: TypeAdapter[Any], body: object) -> None:
    _run_through(adapter.validate_python(body))


pytestmark = pytest.mark.usefixtures("key")


@pytest.mark.parametrize("api", OFFICIAL)
async def test_a_plain_request(api: str, wire: Wire, official: dict[str, TypeAdapter[Any]]) -> None:
    judge(official[api], await sent(api, wire, ask()))


@pytest.mark.parametrize("api", OFFICIAL)
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.5}, {"reasoning_effort": "high"}], ids=str
)
async def test_a_request_with_everything(
    api: str, wire: Wire, official: dict[str, TypeAdapter[Any]], options: dict[str, object]
) -> None:
    body = await sent(api, wire, everything(api, **options))
    if api == "openai-compatible":
        # Reasoning goes back under the name under which such servers send it, which OpenAI has not.
        (made,) = [m for m in body["messages"] if "reasoning_content" in m]
        assert made.pop("reasoning_content") == "Hm."
    if api == "anthropic":
        # The package left it out with API version 2026-10-21. The version we speak still has it, for
        # models before 4.7; later ones answer with a 400 that names it.
        assert body.pop("temperature", None) == options.get("temperature")
    judge(official[api], body)


async def test_the_judge_finds_faults(wire: Wire, official: dict[str, TypeAdapter[Any]]) -> None:
    """Control: an unknown field and a wrong nested type are errors."""
    for api in OFFICIAL:
        body = await sent(api, wire, ask())
        with pytest.raises(ValidationError):
            judge(official[api], {**body, "unheard_of": 1})
    body = await sent("anthropic", wire, everything("anthropic"))
    body["messages"][1]["content"][-1]["input"] = "text"
    with pytest.raises(ValidationError):
        judge(official["anthropic"], body)


@pytest.mark.parametrize("api", ["anthropic", "openai-responses"])
async def test_reasoning_goes_back_unchanged_to_its_own_provider_only(api: str, wire: Wire) -> None:
    from tests.unit.providers.conversation import REASONING

    request = everything(api)
    assert REASONING[api] in _all_objects(await sent(api, wire, request))
    other = "openai-responses" if api == "anthropic" else "anthropic"
    elsewhere = str(await sent(other, wire, request))
    assert "Hm." not in elsewhere
    assert "secret of another" not in elsewhere


def _all_objects(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(o for inner in value.values() for o in _all_objects(inner))]
    if isinstance(value, list):
        return [o for inner in value for o in _all_objects(inner)]
    return []


async def test_anthropic_breakpoints_follow_the_conversation(wire: Wire) -> None:
    body = await sent("anthropic", wire, everything("anthropic"))
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    users = [m for m in body["messages"] if m["role"] == "user"]
    marked = ["cache_control" in m["content"][-1] for m in users]
    assert marked == [False, True, True]
    assert sum("cache_control" in o for o in _all_objects(body)) <= 4  # the API's limit


async def test_requests_of_one_conversation_share_their_prefix(api: str, wire: Wire) -> None:
    """What a provider's cache needs. Breakpoints move; the text before them doesn't."""
    request = everything(api)
    shorter = ask(*request.messages[:5], images=request.images, tools=request.tools)
    key = "input" if api == "openai-responses" else "messages"
    long, short = [(await sent(api, wire, r))[key] for r in (request, shorter)]
    for before, after in zip(short, long, strict=False):
        _unmark(before)
        _unmark(after)
    assert long[: len(short) - 1] == short[:-1]


def _unmark(message: Any) -> None:
    for found in _all_objects(message):
        found.pop("cache_control", None)


async def test_openrouter_asks_for_cost_and_marks_what_is_not_cached_by_itself(
    wire: Wire,
) -> None:
    claude = ask(model="anthropic/claude-sonnet-4.5")
    body = await sent("openrouter", wire, claude)
    assert body["usage"] == {"include": True}
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    other = await sent("openrouter", wire, ask(model="openai/gpt-5"))
    assert other["messages"][0]["content"] == "Be brief."


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-3-7-sonnet-20250219", "enabled"),
        ("claude-sonnet-4-20250514", "enabled"),
        ("claude-opus-4-1-20250805", "enabled"),
        ("claude-sonnet-4-5", "enabled"),
        ("claude-haiku-4-5-20251001", "enabled"),
        ("claude-opus-4-6", "adaptive"),
        ("claude-sonnet-4-6-20260217", "adaptive"),
        ("claude-opus-5", "adaptive"),
    ],
)
async def test_how_a_claude_is_told_to_think(wire: Wire, model: str, thinking: str) -> None:
    from io_harness.workflows.contract import ModelOptions

    options = ModelOptions(reasoning_effort="low")
    body = await sent("anthropic", wire, ask(model=model, options=options, max_output_tokens=9000))
    assert body["thinking"]["type"] == thinking
    assert body["max_tokens"] > body["thinking"].get("budget_tokens", 0)


@pytest.mark.parametrize(
    ("model", "enforces"),
    [
        ("claude-3-7-sonnet-20250219", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4-0", False),
        ("claude-opus-4-1-20250805", True),
        ("claude-sonnet-4-5", True),
        ("claude-haiku-4-5-20251001", True),
        ("claude-opus-5", True),
    ],
)
async def test_which_claude_is_held_to_the_answers_schema(
    wire: Wire, model: str, enforces: bool
) -> None:
    body = await sent("anthropic", wire, ask(model=model, tools=(READ_FILE, FINISH)))
    assert [tool.get("strict", False) for tool in body["tools"]] == [False, enforces]


@pytest.mark.parametrize(
    ("api", "enforces"),
    [("openai", True), ("openai-responses", True), ("openai-compatible", False)],
)
async def test_who_is_asked_to_enforce_the_answers_schema(
    wire: Wire, api: str, enforces: bool
) -> None:
    odd = dataclasses.replace(FINISH, input_schema={**FINISH.input_schema, "minProperties": 1})
    body = await sent(api, wire, ask(tools=(READ_FILE, FINISH, odd)))
    tools = [tool.get("function", tool) for tool in body["tools"]]
    assert [tool.get("strict", False) for tool in tools] == [False, enforces, False]
