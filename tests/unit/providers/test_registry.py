"""Which key goes where, and what is refused before a run starts."""

from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.providers.check import check_models
from io_harness.activities.providers.registry import ModelConfigError, kinds, provider_for
from io_harness.activities.providers.wire import Wire
from io_harness.activities.settings import Settings
from io_harness.workflows.contract import Model, TaskContract

SETTINGS = Settings(data_dir=Path("/nowhere"))
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def contract(*models: dict[str, object], **fields: object) -> TaskContract:
    first, *rest = models
    return TaskContract.model_validate(
        {
            "goal": "g",
            "workspace": {"kind": "directory", "path": "/src"},
            "verification": {"kind": "none"},
            "model": first,
            "fallbacks": rest,
            **fields,
        }
    )


def refused(*models: dict[str, object], **fields: object) -> tuple[str | None, str]:
    with pytest.raises(ApplicationError) as caught:
        check_models(contract(*models, **fields), SETTINGS)
    assert caught.value.non_retryable
    return caught.value.type, caught.value.message


CLAUDE: dict[str, object] = {"provider": "anthropic", "name": "claude-sonnet-4-5"}
LOCAL: dict[str, object] = {
    "provider": "openai-compatible",
    "name": "qwen",
    "base_url": "http://127.0.0.1:9/v1",
}


def test_a_missing_key_names_the_variable() -> None:
    code, told = refused(CLAUDE)
    assert code == "MissingCredential"
    assert "ANTHROPIC_API_KEY is not set" in told


def test_an_empty_key_is_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    assert refused(CLAUDE)[0] == "MissingCredential"


def test_a_key_off_the_allow_list_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    code, told = refused({**LOCAL, "api_key": "env:AWS_SECRET_ACCESS_KEY"})
    assert code == "MissingCredential"
    assert "IO_HARNESS_CREDENTIALS" in told


def test_every_model_of_the_chain_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    code, told = refused(CLAUDE, {"provider": "openai", "name": "gpt-5"})
    assert code == "MissingCredential"
    assert "OPENAI_API_KEY" in told


def test_an_unknown_provider_lists_the_known_ones() -> None:
    code, told = refused({"provider": "antropic", "name": "x"})
    assert code == "UnknownProvider"
    assert "anthropic" in told
    assert "replay" in told


@pytest.mark.parametrize("provider", ["openai-compatible", "replay"])
def test_a_missing_base_url(provider: str) -> None:
    code, told = refused({"provider": provider, "name": "x"})
    assert code == "MissingBaseUrl"
    assert "model.base_url" in told


def test_a_base_url_that_is_none() -> None:
    assert refused({**LOCAL, "base_url": "localhost:8000"})[0] == "MissingBaseUrl"


def test_a_recording_that_is_not_there() -> None:
    code, told = refused({"provider": "replay", "name": "x", "base_url": "/nowhere/r.yaml"})
    assert code == "BadRecording"
    assert "/nowhere/r.yaml" in told


def test_an_unknown_price_matters_with_a_budget_in_usd_only() -> None:
    code, told = refused(LOCAL, budget={"usd": "1.5"})
    assert code == "UnknownPrice"
    assert "model.price" in told
    assert check_models(contract(LOCAL), SETTINGS) == (None,)
    price = {"input": "0.5", "output": 2}
    (known,) = check_models(contract({**LOCAL, "price": price}, budget={"usd": "1"}), SETTINGS)
    assert known is not None
    assert known.output == Decimal(2)


def test_known_models_have_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "k")
    models: list[dict[str, object]] = [
        CLAUDE,
        {"provider": "openai", "name": "gpt-5"},
        {"provider": "openai-responses", "name": "gpt-5"},
        {"provider": "openrouter", "name": "anthropic/claude-sonnet-4.5"},
    ]
    assert all(check_models(contract(*models, budget={"usd": "1"}), SETTINGS))


def _authorization(model: dict[str, object]) -> str | None:
    provider = provider_for(Model.model_validate(model), SETTINGS, Wire())
    headers: dict[str, str] = provider.endpoint.headers  # type: ignore[attr-defined]
    return headers.get("authorization") or headers.get("x-api-key")


def test_the_usual_key_goes_to_the_usual_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract that points elsewhere must say which key may be seen there."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    usual: dict[str, object] = {"provider": "openai", "name": "gpt-5"}
    elsewhere = {**usual, "base_url": "http://127.0.0.1:9"}
    assert _authorization(usual) == "Bearer k"
    assert _authorization(elsewhere) is None
    assert _authorization({**elsewhere, "api_key": "env:OPENAI_API_KEY"}) == "Bearer k"


def test_a_preset_needs_its_own_key_on_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")
    model = Model(provider="groq", name="x")
    with pytest.raises(ModelConfigError, match="IO_HARNESS_CREDENTIALS"):
        provider_for(model, SETTINGS, Wire())
    allowed = Settings(data_dir=Path("/nowhere"), credentials=frozenset({"GROQ_API_KEY"}))
    assert provider_for(model, allowed, Wire()).name == "groq"


def test_local_runtimes_need_no_key() -> None:
    local = [name for name, kind in kinds().items() if kind.key is None and kind.base_url]
    assert {"ollama", "vllm", "llama.cpp", "lm-studio"} <= set(local)
    for name in local:
        assert provider_for(Model(provider=name, name="m"), SETTINGS, Wire()).name == name


def test_a_key_comes_from_a_file_and_one_that_can_t_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(tmp_path / "key"))
    code, message = refused(CLAUDE)
    assert (code, "ANTHROPIC_API_KEY_FILE" in message) == ("MissingCredential", True)
    (tmp_path / "key").write_text("sk-file\n")
    check_models(contract(CLAUDE), SETTINGS)
