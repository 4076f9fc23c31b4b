"""Which models the providers offer that this worker can reach."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from io_harness.activities.prices import context_tokens, price_of
from io_harness.activities.settings import Settings
from io_harness.workflows.contract import Model, Price

from .base import OfferedModel, ProviderError
from .kind import Kind
from .registry import ModelConfigError, build, kinds
from .wire import Wire


@dataclass(frozen=True)
class ListedModel:
    """A model that can be named in a contract."""

    provider: str
    name: str
    context_tokens: int | None
    """Size of its window; None where nobody says."""
    price: Price | None
    """None where it is not known."""


@dataclass(frozen=True)
class Listing:
    """What one provider answered."""

    provider: str
    state: Literal["listed", "not configured", "failed"]
    models: tuple[ListedModel, ...] = ()
    """Sorted by name."""
    problem: str = ""
    """Why there are none: the variable that is missing, or how the provider failed."""


async def list_models(
    settings: Settings, providers: Mapping[str, Kind] | None = None
) -> tuple[Listing, ...]:
    """Ask all providers at once, in the order of their names; local runtimes at their usual ports.

    `providers` restricts whom to ask; by default everyone who has a usual address.
    """
    asked = kinds() if providers is None else providers
    wire = Wire()
    try:
        listings = await asyncio.gather(
            *(
                _list(name, kind, settings, wire)
                for name, kind in sorted(asked.items())
                if kind.base_url is not None
            )
        )
    finally:
        await wire.aclose()
    return tuple(listings)


async def _list(name: str, kind: Kind, settings: Settings, wire: Wire) -> Listing:
    try:
        provider = build(kind, Model(provider=name, name="any"), settings, wire)
        offered = await provider.models()
    except ModelConfigError as error:
        return Listing(name, "not configured", problem=str(error))
    except ProviderError as error:
        return Listing(name, "failed", problem=str(error))
    models = (_listed(name, kind, model) for model in offered)
    return Listing(name, "listed", tuple(sorted(models, key=lambda m: m.name)))


def _listed(provider: str, kind: Kind, offered: OfferedModel) -> ListedModel:
    """What the provider itself says comes first, then what the price list knows."""
    if offered.input_usd is not None and offered.output_usd is not None:
        price: Price | None = Price(input=offered.input_usd, output=offered.output_usd)
    else:
        price = price_of(Model(provider=provider, name=offered.name), kind.catalogue)
    window = offered.context_tokens or context_tokens(offered.name, kind.catalogue)
    return ListedModel(provider, offered.name, window, price)
