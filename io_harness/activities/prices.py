"""What a model call costs: the contract's own price, or what `genai-prices` knows.

The table ships with that package; nothing is fetched.
"""

from datetime import UTC, datetime
from decimal import Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, TieredPrices

from io_harness.workflows.contract import Model, Price
from io_harness.workflows.result import Usage

_MILLION = Decimal(1_000_000)


def price_of(model: Model, catalogue: str | None) -> Price | None:
    """Upper bound of the model's price, or None if it is not known.

    Where a price rises with the length of the prompt, the dearest tier counts: a budget that is
    checked with it can't be passed. `catalogue` is the provider's id in genai-prices.
    """
    if model.price is not None:
        return model.price
    info = _find(model.name, catalogue)
    if info is None:
        return None
    prices = info.get_prices(datetime.now(UTC))
    rate_in = _dearest(getattr(prices, "input_mtok", None))
    rate_out = _dearest(getattr(prices, "output_mtok", None))
    if rate_in is None or rate_out is None:
        return None
    return Price(
        input=rate_in,
        output=rate_out,
        cached_input=_dearest(getattr(prices, "cache_read_mtok", None)),
        cache_write=_dearest(getattr(prices, "cache_write_mtok", None)),
    )


def cost_of(model: Model, catalogue: str | None, usage: Usage) -> Decimal | None:
    """US dollars for `usage`, or None if the price is not known."""
    if model.price is not None:
        return priced(model.price, usage)
    if _find(model.name, catalogue) is None:
        return None
    counted = PricedUsage(
        input_tokens=usage.input + usage.cached + usage.cache_write,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
    )
    return calc_price(counted, model.name, provider_id=catalogue).total_price


def priced(price: Price, usage: Usage) -> Decimal:
    """Sum over the four buckets of tokens times price; reasoning is inside output."""
    cached = price.input if price.cached_input is None else price.cached_input
    written = price.input if price.cache_write is None else price.cache_write
    return (
        usage.input * price.input
        + usage.cached * cached
        + usage.cache_write * written
        + usage.output * price.output
    ) / _MILLION


def context_tokens(name: str, catalogue: str | None) -> int | None:
    """Size of the model's window, where it is known."""
    info = _find(name, catalogue)
    return None if info is None else info.context_window


def _find(name: str, catalogue: str | None) -> ModelInfo | None:
    if catalogue is None:
        return None
    try:
        return get_snapshot().find_provider_model(name, None, catalogue, None)[1]
    except LookupError:
        return None


def _dearest(rate: Decimal | TieredPrices | None) -> Decimal | None:
    if isinstance(rate, TieredPrices):
        return max(rate.base, *(tier.price for tier in rate.tiers))
    return rate
