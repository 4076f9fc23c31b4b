"""A tree's ceiling holds by construction, whatever is spent, dies or comes back."""

import contextlib
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.workflows.contract import Budget, Model, Price
from io_harness.workflows.ledger import BudgetEnded, Ceiling, Ledger, Share, ShareRefused
from io_harness.workflows.result import Spend, Usage
from io_harness.workflows.slots import Slots

MODEL = Model(provider="replay", name="m")
PRICE = Price(input=Decimal(2), output=Decimal(9), cache_write=Decimal(3))
TOKENS = 150_000
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["call", "begin", "finish", "spawn", "ask", "return", "die"]),
        st.integers(0, 9),
        st.integers(1, 40_000),
    ),
    max_size=60,
)


@dataclass
class Agent:
    ledger: Ledger
    parent: "Agent | None" = None
    share: Share = field(default_factory=lambda: Share(tokens=0))
    children: list["Agent"] = field(default_factory=list)
    under_way: tuple[Spend, Share] | None = None
    """A model call: what it will have spent, and what the ledger holds for it."""

    def begin(self, amount: int) -> None:
        """A call that spends as much as the ledger permits, at the dearest price of the input, after
        attempts that failed and took all that they might."""
        output = self.ledger.model_call(input_tokens=amount, model=MODEL, price=PRICE)
        spare = self.ledger.spare(input_tokens=amount, output_tokens=output, price=PRICE).half()
        self.ledger, held = self.ledger.hold_all_but(spare)
        used = Usage(cache_write=amount, output=output + spare.tokens)
        usd = (3 * Decimal(amount) + 9 * Decimal(output)) / 1_000_000 + (spare.usd or 0)
        self.under_way = Spend(usage=used, usd=usd), held

    def finish(self) -> Spend:
        if self.under_way is None:
            return Spend()
        (spent, held), self.under_way = self.under_way, None
        self.ledger = self.ledger.freed(held).settle(spent.usage, spent.usd)
        return spent

    def spawn(self, amount: int) -> "Agent":
        share = Share(tokens=amount, usd=Decimal(amount) / 200_000)
        self.ledger = self.ledger.reserve(share)
        budget = Budget(steps=10_000, tokens=amount, usd=share.usd)
        self.children.append(Agent(Ledger(budget=budget), self, share))
        return self.children[-1]

    def ask(self, amount: int) -> None:
        if self.parent is not None:
            self.parent.ledger, more = self.parent.ledger.grant(amount, Decimal(amount) / 200_000)
            self.share, self.ledger = self.share.plus(more), self.ledger.extended(more)

    def end(self, *, returns: bool) -> bool:
        """Whether it could: an agent ends after its sub-agents, and the root stays."""
        if self.parent is None or self.children or self.under_way:
            return False
        spent = self.ledger.spend + self.ledger.descendants
        self.parent.ledger = self.parent.ledger.give_back(self.share, spent if returns else None)
        self.parent.children.remove(self)
        return True


@given(acts=ACTS, tokens=st.integers(1_000, 200_000), cents=st.integers(1, 200))
def test_no_tree_passes_its_ceiling(
    acts: list[tuple[str, int, int]], tokens: int, cents: int
) -> None:
    ceiling = Ceiling(tokens=tokens, usd=Decimal(cents) / 100)
    root = Agent(
        Ledger(budget=Budget(steps=10_000, tokens=TOKENS, usd=Decimal(1)), ceiling=ceiling)
    )
    alive, really = [root], Spend()
    for act, which, amount in acts:
        agent = alive[which % len(alive)]
        with contextlib.suppress(BudgetEnded, ShareRefused):
            match act:
                case "call" if not agent.under_way:
                    agent.begin(amount)
                    really += agent.finish()
                case "begin" if not agent.under_way:
                    agent.begin(amount)
                case "finish":
                    really += agent.finish()
                case "spawn" if not agent.under_way:
                    alive.append(agent.spawn(amount))
                case "ask":
                    agent.ask(amount)
                case "call" | "begin" | "spawn":
                    pass  # its loop is in a model call
                case _ if agent.end(returns=act == "return"):
                    alive.remove(agent)
        assert really.usage.total <= root.ledger.tokens_committed <= min(tokens, TOKENS)
        assert really.usd <= root.ledger.usd_committed <= min(Decimal(cents) / 100, 1)


def test_no_agent_starts_when_the_time_is_nearly_over() -> None:
    ledger = Ledger(budget=Budget(wall_seconds=100), ceiling=Ceiling(wall_seconds=60))
    ledger.time_to_share(55)
    with pytest.raises(ShareRefused, match=r"4 s of the 60 of containment\.wall_seconds"):
        ledger.time_to_share(56)
    own = Ledger(budget=Budget(wall_seconds=30))
    with pytest.raises(ShareRefused, match=r"0 s of the 30 of budget\.wall_seconds"):
        own.time_to_share(31)
    Ledger(budget=Budget()).time_to_share(10**9)


def test_what_is_not_spent_comes_back() -> None:
    ledger = Ledger(budget=Budget(tokens=100, usd=Decimal(1)))
    share = Share(tokens=60, usd=Decimal("0.5"))
    held = ledger.reserve(share)
    assert held.tokens_left == 40
    after = held.give_back(share, Spend(usage=Usage(output=10), usd=Decimal("0.1")))
    assert (after.tokens_left, after.usd_left) == (90, Decimal("0.9"))
    assert held.give_back(share, None).tokens_left == 40


@given(
    st.lists(st.tuples(st.sampled_from(["want", "free", "end"]), st.integers(0, 6)), max_size=60)
)
def test_slots_are_granted_in_order_and_never_too_many(acts: list[tuple[str, int]]) -> None:
    slots, waiting = Slots(2), []
    for act, which in acts:
        agent = f"root/{which}"
        if act == "want":
            if agent not in slots.holders and agent not in waiting:
                waiting.append(agent)
            slots.want(agent, "root")
        else:
            (slots.free if act == "free" else slots.end)(agent)
            waiting = [w for w in waiting if w != agent]
        granted = [agent for agent, _ in slots.grant()]
        assert granted == waiting[: len(granted)]
        waiting = waiting[len(granted) :]
        assert len(slots.holders) <= 2
        assert not waiting or len(slots.holders) == 2


def test_an_agents_end_frees_what_its_descendants_hold() -> None:
    slots = Slots(2)
    for agent in ("r/1", "r/1/1", "r/10"):
        slots.want(agent, "r")
    assert [a for a, _ in slots.grant()] == ["r/1", "r/1/1"]
    slots.end("r/1")
    assert [a for a, _ in slots.grant()] == ["r/10"]
