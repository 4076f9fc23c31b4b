"""`io-harness models`."""

import click

from .command import runs as runs_async
from .exits import Exit


@click.command()
@click.option("--provider", help="Ask only this one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per provider.")
@runs_async
async def models(provider: str | None, as_json: bool) -> Exit:
    """List what the configured providers offer, with window and price where known.

    \b
    Examples:
      io-harness models
      io-harness models --provider openrouter --json | jq .models[0]

    \b
    Exit codes:
      0 a provider answered    6 none could be asked
    """
    from .offering import show_models

    return await show_models(provider, as_json=as_json)
