"""What a run may still spend. Pure arithmetic: each check comes before the spend."""

from decimal import ROUND_FLOOR, Decimal

from .contract import Budget, Model, Price
from .model import Record
from .result import Outcome, Spend, Usage

LEAST_OUTPUT_TOKENS = 256
"""A reply that may hold fewer tokens than this is not worth its input."""
CALL_OVERHEAD_TOKENS = 1_000
"""What a provider adds to a request of its own (tool preambles, role markers)."""
_MILLION = Decimal(1_000_000)


class BudgetEnded(Exception):
    """The next spend would pass the budget. It has not been made."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class Ledger(Record):
    """A budget and what has been spent of it."""

    budget: Budget
    spend: Spend = Spend()

    def model_call(self, *, input_tokens: int, model: Model, price: Price | None) -> int:
        """Largest `max_output_tokens` that the next model call may ask for.

        `input_tokens` is an upper bound of what the request holds. The bound on output is the
        smallest of the model's own ceiling, the tokens left after the input, and the US dollars left
        after the input at its dearest price, divided by the price of output.

        Raises:
            BudgetEnded: no call fits what is left.
        """
        if self.spend.steps >= self.budget.steps:
            raise BudgetEnded(
                Outcome.STEP_CAP_REACHED, f"all {self.budget.steps} steps of the budget are used"
            )
        bound = input_tokens + CALL_OVERHEAD_TOKENS
        left = self.budget.tokens - self.spend.usage.total - bound
        if left < LEAST_OUTPUT_TOKENS:
            raise BudgetEnded(
                Outcome.TOKEN_BUDGET_EXCEEDED,
                f"{self.spend.usage.total} of {self.budget.tokens} tokens are used, and the next "
                f"call could need {bound} for its input alone",
            )
        ceiling = min(model.options.max_output_tokens, left)
        waived = price is None and self.budget.unpriced == "allow"
        if self.budget.usd is not None and not waived:
            ceiling = min(ceiling, self._affordable(bound, price))
        return ceiling

    def _affordable(self, input_tokens: int, price: Price | None) -> int:
        assert self.budget.usd is not None
        if price is None:
            raise BudgetEnded(
                Outcome.COST_BUDGET_EXCEEDED,
                "the contract has a budget in USD, and the price of the model is not known",
            )
        dearest = max(price.input, price.cache_write or price.input)
        left = self.budget.usd - self.spend.usd - dearest * input_tokens / _MILLION
        if left < price.output * LEAST_OUTPUT_TOKENS / _MILLION:
            raise BudgetEnded(
                Outcome.COST_BUDGET_EXCEEDED,
                f"{self.spend.usd} of {self.budget.usd} USD are spent, and the next call could "
                "pass the rest",
            )
        if price.output == 0:
            return self.budget.tokens
        return int((left * _MILLION / price.output).to_integral_value(ROUND_FLOOR))

    def tool_calls(self, count: int) -> "Ledger":
        """Book `count` tool calls.

        Raises:
            BudgetEnded: they would pass the budget.
        """
        if self.spend.tool_calls + count > self.budget.tool_calls:
            raise BudgetEnded(
                Outcome.STEP_CAP_REACHED,
                f"all {self.budget.tool_calls} tool calls of the budget are used",
            )
        return self._spent(tool_calls=self.spend.tool_calls + count)

    def settle(self, usage: Usage, usd: Decimal | None, *, steps: int = 1) -> "Ledger":
        """Book a model call that was made. `usd` is None where the price is not known; `steps` is 0
        for one that failed for good."""
        return self._spent(
            steps=self.spend.steps + steps,
            usage=self.spend.usage + usage,
            usd=self.spend.usd + (usd or 0),
            unpriced_calls=self.spend.unpriced_calls + (usd is None),
        )

    def at(self, working_seconds: float) -> "Ledger":
        """The ledger after that much working time."""
        return self._spent(working_seconds=working_seconds)

    def seconds_left(self, *, wall_seconds: float) -> float:
        """Time in which the next activity must end.

        Raises:
            BudgetEnded: there is none.
        """
        left = self.budget.working_seconds - self.spend.working_seconds
        if self.budget.wall_seconds is not None:
            left = min(left, self.budget.wall_seconds - wall_seconds)
        if left <= 0:
            raise BudgetEnded(
                Outcome.TIME_BUDGET_EXCEEDED,
                f"the time budget is used: {self.spend.working_seconds:.0f} s of work, "
                f"{wall_seconds:.0f} s since the start",
            )
        return left

    def _spent(self, **changes: object) -> "Ledger":
        return self.model_copy(update={"spend": self.spend.model_copy(update=changes)})


def input_bound(counted: int, uncounted_bytes: int) -> int:
    """Upper bound of a request's input in tokens.

    `counted` tokens were reported by the provider for the part that it has seen; a token of the rest
    holds a byte at least (byte-level tokenizers have no empty token).
    """
    return counted + uncounted_bytes
