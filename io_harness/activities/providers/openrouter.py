"""OpenRouter: Chat Completions with routing, cost in the reply, and reasoning details."""

from .openai_chat import Dialect

DIALECT = Dialect(
    max_tokens="max_tokens",
    nested_effort=True,
    cache_marks=("anthropic/",),
    extra={"usage": {"include": True}},
)
