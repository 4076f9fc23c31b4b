"""What `list_models` makes of what providers answer."""

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest

from io_harness.activities.providers.discovery import Listing, list_models
from io_harness.activities.providers.kind import Kind
from io_harness.activities.providers.presets import PRESETS
from io_harness.activities.settings import Settings
from tests.fakes.provider import FakeProvider

SETTINGS = Settings(data_dir=Path("/nowhere"))


async def listing(name: str, fake: FakeProvider, path: str = "/v1") -> Listing:
    return await listing_at(name, fake.url + path)


async def listing_at(name: str, url: str) -> Listing:
    kind = dataclasses.replace(PRESETS[name], base_url=url)
    (found,) = await list_models(SETTINGS, {name: kind})
    return found


async def test_openai_s_list_gets_price_and_window_from_the_price_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    async with FakeProvider(models=[{"id": "gpt-4.1"}, {"id": "a-new-one"}]) as fake:
        found = await listing("openai", fake)
    unknown, known = found.models
    assert (unknown.name, unknown.price, unknown.context_tokens) == ("a-new-one", None, None)
    assert known.price is not None
    assert (known.price.input, known.price.output) == (Decimal(2), Decimal(8))
    assert known.context_tokens == 1_000_000


async def test_openrouter_and_anthropic_say_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    offered: list[dict[str, object]] = [
        {"id": "x/y", "context_length": 32_000,
         "pricing": {"prompt": "0.000003", "completion": "0.000015"}},
        {"id": "x/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
    ]  # fmt: skip
    async with FakeProvider(models=offered) as fake:
        auto, priced = (await listing("openrouter", fake)).models
    assert auto.price is None
    assert priced.context_tokens == 32_000
    assert priced.price is not None
    assert priced.price.input == Decimal(3)
    assert priced.price.output == Decimal(15)
    async with FakeProvider(models=[{"id": "claude-new", "max_input_tokens": 7}]) as fake:
        (claude,) = (await listing("anthropic", fake, path="")).models
    assert claude.context_tokens == 7


async def test_who_can_t_be_asked_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with FakeProvider() as fake:
        missing = await listing("openai", fake)
        odd = await listing("vllm", fake, path="/elsewhere")
        url = fake.url
    gone = await listing_at("ollama", url)
    assert missing.state == "not configured"
    assert "OPENAI_API_KEY" in missing.problem
    assert (odd.state, odd.models) == ("listed", ())
    assert gone.state == "failed"
    assert "127.0.0.1" in gone.problem


async def test_a_provider_without_a_usual_address_is_left_out() -> None:
    chosen: dict[str, Kind] = {"openai-compatible": PRESETS["openai-compatible"]}
    assert await list_models(SETTINGS, chosen) == ()
