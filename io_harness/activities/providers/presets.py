"""Providers by name. A further one that speaks a known format is a line here."""

from functools import partial

from . import anthropic, openai_chat, openrouter
from .kind import Kind
from .openai_responses import Responses


def _chat(
    base_url: str | None,
    key: str | None = None,
    catalogue: str | None = None,
    dialect: openai_chat.Dialect = openai_chat.COMPATIBLE,
) -> Kind:
    build = partial(openai_chat.ChatCompletions, dialect=dialect)
    return Kind(build, openai_chat.endpoint, base_url, key, catalogue)


_OPENAI_URL = "https://api.openai.com/v1"

PRESETS: dict[str, Kind] = {
    "anthropic": Kind(
        anthropic.Anthropic,
        anthropic.endpoint,
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "anthropic",
    ),
    "openai": _chat(_OPENAI_URL, "OPENAI_API_KEY", "openai", openai_chat.OPENAI),
    "openai-responses": Kind(
        Responses, openai_chat.endpoint, _OPENAI_URL, "OPENAI_API_KEY", "openai"
    ),
    "openrouter": _chat(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter", openrouter.DIALECT
    ),
    "openai-compatible": _chat(None),
    # Hosted vendors
    "cerebras": _chat("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "cerebras"),
    "deepseek": _chat("https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek"),
    "fireworks": _chat("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "fireworks"),
    "gemini": _chat(
        "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", "google"
    ),
    "groq": _chat("https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq"),
    "mistral": _chat("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral"),
    "moonshot": _chat("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "moonshotai"),
    "together": _chat("https://api.together.xyz/v1", "TOGETHER_API_KEY", "together"),
    "xai": _chat("https://api.x.ai/v1", "XAI_API_KEY", "x-ai"),
    # Local runtimes, at the port where each listens by default
    "llama.cpp": _chat("http://127.0.0.1:8080/v1"),
    "lm-studio": _chat("http://127.0.0.1:1234/v1"),
    "ollama": _chat("http://127.0.0.1:11434/v1"),
    "vllm": _chat("http://127.0.0.1:8000/v1"),
}
