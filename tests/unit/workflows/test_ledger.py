"""The ledger never overspends, whatever a provider answers within what it was allowed."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.workflows.contract import Budget, Model, ModelOptions, Price
from io_harness.workflows.ledger import (
    CALL_OVERHEAD_TOKENS,
    LEAST_OUTPUT_TOKENS,
    BudgetEnded,
    Ledger,
)
from io_harness.workflows.result import Outcome, Usage

MODEL = Model(provider="openai", name="m", options=ModelOptions(max_output_tokens=4_000))
PRICE = Price(input=Decimal(3), output=Decimal(15), cache_write=Decimal("3.75"))


@given(
    tokens=st.integers(1, 60_000),
    usd=st.decimals("0.000001", "0.5", places=6),
    calls=st.lists(st.tuples(st.integers(0, 8_000), st.floats(0, 1), st.floats(0, 1)), max_size=30),
)
def test_no_sequence_of_calls_passes_the_budget(
    tokens: int, usd: Decimal, calls: list[tuple[int, float, float]]
) -> None:
    ledger = Ledger(budget=Budget(tokens=tokens, usd=usd))
    for bound, input_share, output_share in calls:
        try:
            ceiling = ledger.model_call(input_tokens=bound, model=MODEL, price=PRICE)
        except BudgetEnded:
            break
        assert LEAST_OUTPUT_TOKENS <= ceiling <= MODEL.options.max_output_tokens
        beside = ledger.spare(input_tokens=bound, output_tokens=ceiling, price=PRICE)
        once = ledger.settle(Usage(input=beside.tokens), beside.usd)
        assert once.model_call(input_tokens=bound, model=MODEL, price=PRICE) >= ceiling
        written = int(ceiling * output_share)
        read = int((bound + CALL_OVERHEAD_TOKENS) * input_share)
        assert PRICE.cache_write is not None
        cost = (PRICE.cache_write * read + PRICE.output * written) / 1_000_000  # the dearest bucket
        ledger = ledger.settle(Usage(cache_write=read, output=written), cost)
        assert ledger.spend.usage.total <= tokens
        assert ledger.spend.usd <= usd


def ended(ledger: Ledger, **arguments: object) -> BudgetEnded:
    with pytest.raises(BudgetEnded) as caught:
        ledger.model_call(input_tokens=100, model=MODEL, price=arguments.get("price", PRICE))  # type: ignore[arg-type]
    return caught.value


def test_each_budget_ends_with_its_own_outcome() -> None:
    one_step = Ledger(budget=Budget(steps=1)).settle(Usage(), Decimal(0))
    assert ended(one_step).outcome is Outcome.STEP_CAP_REACHED
    assert ended(Ledger(budget=Budget(tokens=1_000))).outcome is Outcome.TOKEN_BUDGET_EXCEEDED
    cent = Ledger(budget=Budget(usd=Decimal("0.001")))
    assert ended(cent).outcome is Outcome.COST_BUDGET_EXCEEDED
    assert ended(cent, price=None).outcome is Outcome.COST_BUDGET_EXCEEDED


def test_tool_calls_are_booked_before_they_run() -> None:
    ledger = Ledger(budget=Budget(tool_calls=2)).tool_calls(2)
    with pytest.raises(BudgetEnded) as caught:
        ledger.tool_calls(1)
    assert caught.value.outcome is Outcome.STEP_CAP_REACHED
    assert ledger.spend.tool_calls == 2


def test_working_time_and_wall_time_both_bind() -> None:
    ledger = Ledger(budget=Budget(working_seconds=100, wall_seconds=1_000)).at(40)
    assert ledger.seconds_left(wall_seconds=200) == 60
    assert ledger.seconds_left(wall_seconds=990) == 10
    for late, wall in ((ledger.at(100), 200), (ledger, 1_000)):
        with pytest.raises(BudgetEnded) as caught:
            late.seconds_left(wall_seconds=wall)
        assert caught.value.outcome is Outcome.TIME_BUDGET_EXCEEDED


def test_an_unpriced_call_is_told_apart_from_a_free_one() -> None:
    ledger = Ledger(budget=Budget()).settle(Usage(input=5), None).settle(Usage(), Decimal(0))
    assert (ledger.spend.unpriced_calls, ledger.spend.usd, ledger.spend.steps) == (1, 0, 2)


def test_a_free_model_is_bounded_by_tokens_alone() -> None:
    free = Price(input=Decimal(0), output=Decimal(0))
    ledger = Ledger(budget=Budget(usd=Decimal("0.01")))
    ceiling = ledger.model_call(input_tokens=10, model=MODEL, price=free)
    assert ceiling == MODEL.options.max_output_tokens


def test_a_model_without_a_price_is_bounded_by_tokens_where_that_is_allowed() -> None:
    budget = Budget(usd=Decimal("0.01"), unpriced="allow")
    ceiling = Ledger(budget=budget).model_call(input_tokens=10, model=MODEL, price=None)
    assert ceiling == MODEL.options.max_output_tokens
