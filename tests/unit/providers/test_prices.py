"""Prices and costs."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.prices import context_tokens, cost_of, price_of, priced
from io_harness.workflows.contract import Model, Price
from io_harness.workflows.result import Usage

CLAUDE = Model(provider="anthropic", name="claude-sonnet-4-5")
USED = Usage(input=1_000, cached=2_000, cache_write=500, output=100, reasoning=60)


def test_each_bucket_has_its_price() -> None:
    price = Price(
        input=Decimal(3), output=Decimal(15), cached_input=Decimal("0.3"), cache_write=Decimal("3.75")
    )  # fmt: skip
    expected = Decimal(1_000 * 3 + 2_000 * 0.3 + 500 * 3.75 + 100 * 15) / 1_000_000
    assert priced(price, USED) == expected
    assert cost_of(CLAUDE, "anthropic", USED) == expected


def test_without_a_price_for_the_cache_input_is_charged() -> None:
    price = Price(input=Decimal(3), output=Decimal(15))
    assert priced(price, USED) == Decimal(3_500 * 3 + 100 * 15) / 1_000_000


def test_the_contract_overrides_what_is_known() -> None:
    own = CLAUDE.model_copy(update={"price": Price(input=Decimal(1), output=Decimal(1))})
    assert price_of(own, "anthropic") == own.price
    assert cost_of(own, "anthropic", USED) == Decimal("0.0036")


def test_unknown_is_not_zero() -> None:
    unknown = Model(provider="anthropic", name="no-such-model")
    assert price_of(unknown, "anthropic") is None
    assert cost_of(unknown, "anthropic", USED) is None
    assert cost_of(CLAUDE, None, USED) is None
    assert price_of(CLAUDE, "no-such-provider") is None


@given(
    st.builds(
        Usage,
        input=st.integers(0, 900_000),
        cached=st.integers(0, 900_000),
        cache_write=st.integers(0, 900_000),
        output=st.integers(0, 900_000),
    )
)
def test_the_price_that_budgets_use_is_never_below_the_cost(used: Usage) -> None:
    """Long prompts cost more: the bound must hold in every tier."""
    bound, cost = price_of(CLAUDE, "anthropic"), cost_of(CLAUDE, "anthropic", used)
    assert bound is not None
    assert cost is not None
    assert cost <= priced(bound, used)


def test_windows() -> None:
    assert (context_tokens("claude-sonnet-4-5", "anthropic") or 0) >= 200_000
    assert context_tokens("no-such-model", "anthropic") is None
