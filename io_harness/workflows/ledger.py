"""What a run may still spend. Pure arithmetic: each check comes before the spend."""

from decimal import ROUND_FLOOR, Decimal
from typing import Literal

from .contract import Budget, Model, Price
from .model import Record
from .result import Outcome, Spend, Usage

LEAST_OUTPUT_TOKENS = 256
"""A reply that may hold fewer tokens than this is not worth its input."""
CALL_OVERHEAD_TOKENS = 1_000
"""What a provider adds to a request of its own (tool preambles, role markers)."""
LEAST_AGENT_SECONDS = 5
"""A sub-agent's copy, first model call and verification take about that long."""
_MILLION = Decimal(1_000_000)
_MILLIONTH = Decimal("0.000001")
"""The finest amount that a budget may name."""


class BudgetEnded(Exception):
    """The next spend would pass the budget. It has not been made."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class Ceiling(Record):
    """What a tree of agents may use, its root included. None is no limit."""

    tokens: int | None = None
    usd: Decimal | None = None
    wall_seconds: int | None = None


class Share(Record):
    """What is set aside of a run's budget for one sub-agent, its own sub-agents included."""

    tokens: int
    usd: Decimal | None = None
    """None only where the budget has no limit in USD."""

    def plus(self, more: "Share") -> "Share":
        both = self.usd is not None or more.usd is not None
        usd = (self.usd or Decimal(0)) + (more.usd or Decimal(0)) if both else None
        return Share(tokens=self.tokens + more.tokens, usd=usd)

    def half(self) -> "Share":
        return Share(
            tokens=self.tokens // 2, usd=None if self.usd is None else part_of(self.usd, 2)
        )


class ShareRefused(ValueError):
    """The share doesn't fit what is left. Says which cap is in the way."""


class Ledger(Record):
    """A budget and what has been spent of it.

    A sub-agent's share is reserved before it starts, counts as spent while it runs, and is replaced
    by what it did spend when it ends. So the spends of a tree stay within its root's budget without
    anybody who adds them up while they are made.
    """

    budget: Budget
    spend: Spend = Spend()
    ceiling: Ceiling = Ceiling()
    descendants: Spend = Spend()
    """Of sub-agents that ended."""
    reserved: Share = Share(tokens=0, usd=Decimal(0))
    """For sub-agents that have not ended."""

    @property
    def tokens_committed(self) -> int:
        """Spent by the run and its sub-agents, or set aside for them."""
        return self.spend.usage.total + self.descendants.usage.total + self.reserved.tokens

    @property
    def usd_committed(self) -> Decimal:
        return self.spend.usd + self.descendants.usd + (self.reserved.usd or 0)

    @property
    def tokens_left(self) -> int:
        limits = [t for t in (self.budget.tokens, self.ceiling.tokens) if t is not None]
        return max(min(limits) - self.tokens_committed, 0)

    @property
    def usd_left(self) -> Decimal | None:
        """None: no limit."""
        limits = [u for u in (self.budget.usd, self.ceiling.usd) if u is not None]
        return max(min(limits) - self.usd_committed, Decimal(0)) if limits else None

    def reserve(self, share: Share) -> "Ledger":
        """Set a share aside.

        Raises:
            ShareRefused: it is more than what is left, or has no limit in USD where the budget has.
        """
        if share.tokens > self.tokens_left:
            raise ShareRefused(
                f"tokens: a share of {share.tokens:,} was asked for, and {self.tokens_left:,} of "
                f"{self._smaller('tokens')} are left"
            )
        left = self.usd_left
        if left is not None and (share.usd is None or share.usd > left):
            raise ShareRefused(
                f"usd: a share of {share.usd} was asked for, and {left} of {self._smaller('usd')} "
                "are left"
            )
        return self.model_copy(update={"reserved": self.reserved.plus(share)})

    def give_back(self, share: Share, spent: Spend | None) -> "Ledger":
        """End a share's reservation and book what was spent of it. `spent` is None where that is not
        known, as of an agent that was killed from outside; the whole share then counts."""
        if spent is None:
            spent = Spend(usage=Usage(input=share.tokens), usd=share.usd or Decimal(0))
        freed = self.freed(share)
        return freed.model_copy(update={"descendants": self.descendants + spent})

    def hold_all_but(self, kept: Share) -> "tuple[Ledger, Share]":
        """Set aside what is left, but for what sub-agents may still be granted, and give it too: the
        spend of a model call is booked at its end, and they may ask meanwhile."""
        left = self.usd_left
        usd = None if left is None else left - (kept.usd or 0)
        held = Share(tokens=self.tokens_left - kept.tokens, usd=usd)
        return self.reserve(held), held

    def freed(self, share: Share) -> "Ledger":
        """The ledger without the share's reservation."""
        less = Share(tokens=-share.tokens, usd=-(share.usd or Decimal(0)))
        return self.model_copy(update={"reserved": self.reserved.plus(less)})

    def time_to_share(self, wall_seconds: float) -> None:
        """Whether a sub-agent that starts so long after the run's start could still do anything.

        Raises:
            ShareRefused: its time would be over before its first step.
        """
        left = self.wall_left(wall_seconds)
        if left is not None and left < LEAST_AGENT_SECONDS:
            raise ShareRefused(
                f"wall_seconds: {left:.0f} s of {self._smaller('wall_seconds')} are left, and a "
                f"sub-agent needs {LEAST_AGENT_SECONDS} at least"
            )

    def grant(self, tokens: int, usd: Decimal | None) -> "tuple[Ledger, Share]":
        """Set more aside for a sub-agent that asks: that much, but not over half of what is left.

        Raises:
            ShareRefused: nothing is left.
        """
        left = self.usd_left
        more = Share(
            tokens=min(tokens, self.tokens_left // 2),
            usd=None if left is None else min(usd or Decimal(0), part_of(left, 2)),
        )
        if more.tokens < 1:
            raise ShareRefused(self.exhausted("tokens"))
        return self.reserve(more), more

    def extended(self, more: Share) -> "Ledger":
        """The ledger of a sub-agent whose parent set more aside for it."""
        budget = self.budget.model_copy(
            update={
                "tokens": self.budget.tokens + more.tokens,
                "usd": None if self.budget.usd is None else self.budget.usd + (more.usd or 0),
            }
        )
        return self.model_copy(update={"budget": budget})

    def exhausted(self, unit: Literal["tokens", "usd"]) -> str:
        """That nothing is left, and of which cap."""
        return f"{unit}: nothing of {self._smaller(unit)} is left to give"

    def _smaller(self, unit: Literal["tokens", "usd", "wall_seconds"]) -> str:
        """The cap that holds, for people."""
        own, whole = getattr(self.budget, unit), getattr(self.ceiling, unit)
        if _is_smaller(whole, own):
            return f"the {whole:,} of containment.{unit}"
        return f"the {own:,} of budget.{unit}"

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
        left = self.tokens_left - bound
        if left < LEAST_OUTPUT_TOKENS:
            of_tree = _is_smaller(self.ceiling.tokens, self.budget.tokens)
            raise BudgetEnded(
                Outcome.BUDGET_CEILING_REACHED if of_tree else Outcome.TOKEN_BUDGET_EXCEEDED,
                f"{self.tokens_committed} of "
                f"{self.ceiling.tokens if of_tree else self.budget.tokens} tokens are used, and "
                f"the next call could need {bound} for its input alone",
            )
        ceiling = min(model.options.max_output_tokens, left)
        waived = price is None and self.budget.unpriced == "allow"
        usd_left = self.usd_left
        if usd_left is not None and not waived:
            ceiling = min(ceiling, self._affordable(bound, price, usd_left))
        return ceiling

    def spare(self, *, input_tokens: int, output_tokens: int, price: Price | None) -> Share:
        """What is left beside a model call that takes all it may: so much may failed attempts at it
        use, and it can still be made again."""
        bound = input_tokens + CALL_OVERHEAD_TOKENS
        left = self.usd_left
        if left is not None and price is not None:
            call = _dearest_input(price) * bound + price.output * output_tokens
            left = max(left - call / _MILLION, Decimal(0))
        return Share(tokens=max(self.tokens_left - bound - output_tokens, 0), usd=left)

    def _affordable(self, input_tokens: int, price: Price | None, usd_left: Decimal) -> int:
        if price is None:
            raise BudgetEnded(
                Outcome.COST_BUDGET_EXCEEDED,
                "the contract has a budget in USD, and the price of the model is not known",
            )
        left = usd_left - _dearest_input(price) * input_tokens / _MILLION
        if left < price.output * LEAST_OUTPUT_TOKENS / _MILLION:
            of_tree = _is_smaller(self.ceiling.usd, self.budget.usd)
            raise BudgetEnded(
                Outcome.BUDGET_CEILING_REACHED if of_tree else Outcome.COST_BUDGET_EXCEEDED,
                f"{self.usd_committed} of {self.ceiling.usd if of_tree else self.budget.usd} USD "
                "are spent, and the next call could pass the rest",
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
        if self.ceiling.wall_seconds is not None:
            of_tree = self.ceiling.wall_seconds - wall_seconds
            if of_tree <= 0:
                raise BudgetEnded(
                    Outcome.BUDGET_CEILING_REACHED,
                    f"the time of the tree is used: {wall_seconds:.0f} s since the start",
                )
            left = min(left, of_tree)
        if left <= 0:
            raise BudgetEnded(
                Outcome.TIME_BUDGET_EXCEEDED,
                f"the time budget is used: {self.spend.working_seconds:.0f} s of work, "
                f"{wall_seconds:.0f} s since the start",
            )
        return left

    def wall_left(self, wall_seconds: float) -> float | None:
        """Time left to the earliest end that waiting doesn't put off; None: no limit."""
        limits = [w for w in (self.budget.wall_seconds, self.ceiling.wall_seconds) if w is not None]
        return max(min(limits) - wall_seconds, 0) if limits else None

    def _spent(self, **changes: object) -> "Ledger":
        return self.model_copy(update={"spend": self.spend.model_copy(update=changes)})


def _dearest_input(price: Price) -> Decimal:
    return max(price.input, price.cache_write or price.input)


def part_of(usd: Decimal, parts: int) -> Decimal:
    """One of so many equal parts, down to a millionth of a dollar."""
    return (usd / parts).quantize(_MILLIONTH, rounding=ROUND_FLOOR)


def _is_smaller(of_tree: Decimal | int | None, own: Decimal | int | None) -> bool:
    return of_tree is not None and (own is None or of_tree < own)


def input_bound(counted: int, uncounted_bytes: int) -> int:
    """Upper bound of a request's input in tokens.

    `counted` tokens were reported by the provider for the part that it has seen; a token of the rest
    holds a byte at least (byte-level tokenizers have no empty token).
    """
    return counted + uncounted_bytes
