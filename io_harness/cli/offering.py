"""Behind `models`."""

import click
from pydantic import TypeAdapter
from rich.table import Table

from io_harness.activities.providers.discovery import ListedModel, Listing, list_models
from io_harness.activities.providers.registry import kinds
from io_harness.activities.settings import Settings
from io_harness.visible import visible

from .exits import CommandFailed, Exit
from .terminal import console

_LISTING = TypeAdapter(Listing)


async def show_models(provider: str | None, *, as_json: bool) -> Exit:
    """Exit code 6 if no provider could be asked."""
    known = kinds()
    if provider is not None and provider not in known:
        names = ", ".join(sorted(known))
        raise CommandFailed(Exit.USAGE, f"there is no provider {provider!r}; there are: {names}")
    asked = known if provider is None else {provider: known[provider]}
    listings = await list_models(Settings.from_env(), asked)
    if as_json:
        for listing in listings:
            click.echo(_LISTING.dump_json(listing).decode())
    else:
        _show(listings)
    return Exit.OK if any(listing.state == "listed" for listing in listings) else Exit.PROVIDER


def _show(listings: tuple[Listing, ...]) -> None:
    table = Table("model", "window", "USD per million tokens", box=None, pad_edge=False)
    for listing in listings:
        for model in listing.models:
            window = f"{model.context_tokens:,}" if model.context_tokens else "unknown"
            table.add_row(visible(f"{model.provider}/{model.name}"), window, _price(model))
    if table.row_count:
        console().print(table)
    for listing in listings:
        if listing.state != "listed":
            click.echo(f"{listing.provider}: {listing.state}: {visible(listing.problem)}", err=True)


def _price(model: ListedModel) -> str:
    if model.price is None:
        return "unknown"
    return f"{model.price.input} in, {model.price.output} out"
