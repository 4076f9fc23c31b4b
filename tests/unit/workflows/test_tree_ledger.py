"""A tree's ceiling holds by construction, whatever is spent, dies or comes back."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from io_harness.workflows.contract import Budget, Model
from io_harness.workflows.ledger import BudgetEnded, Ceiling, Ledger, Share, ShareRefused
from io_harness.workflows.result import Spend, Usage
from io_harness.workflows.slots import Slots

MODEL = Model(provider="replay", name="m")
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["call", "spawn", "return", "die"]),
        st.integers(0, 9),
        st.integers(1, 40_000),
    ),
    max_size=60,
)


class Agent:
    def __init__(self, ledger: Ledger, parent: "Agent | None", share: Share | None) -> None:
        self.ledger, self.parent, self.share = ledger, parent, share
        self.children: list[Agent] = []

    def spent(self) -> int:
        return self.ledger.spend.usage.total + self.ledger.descendants.usage.total


@given(acts=ACTS, ceiling=st.integers(1_000, 200_000))
def test_no_tree_passes_its_ceiling(acts: list[tuple[str, int, int]], ceiling: int) -> None:
    root = Agent(
        Ledger(budget=Budget(steps=10_000, tokens=150_000), ceiling=Ceiling(tokens=ceiling)),
        None,
        None,
    )
    alive, really = [root], 0
    for act, which, amount in acts:
        agent = alive[which % len(alive)]
        if act == "call":
            try:
                output = agent.ledger.model_call(input_tokens=amount, model=MODEL, price=None)
            except BudgetEnded:
                continue
            used = Usage(input=amount, output=output)
            agent.ledger = agent.ledger.settle(used, Decimal(0))
            really += used.total
        elif act == "spawn":
            share = Share(tokens=amount)
            try:
                agent.ledger = agent.ledger.reserve(share)
            except ShareRefused:
                continue
            child = Agent(Ledger(budget=Budget(steps=10_000, tokens=amount)), agent, share)
            agent.children.append(child)
            alive.append(child)
        elif agent.parent is not None and agent.share is not None and not agent.children:
            total = Spend(usage=Usage(input=agent.spent())) if act == "return" else None
            agent.parent.ledger = agent.parent.ledger.give_back(agent.share, total)
            agent.parent.children.remove(agent)
            alive.remove(agent)
        assert really <= min(ceiling, 150_000)
        assert root.ledger.tokens_committed <= min(ceiling, 150_000)
        assert root.ledger.tokens_committed >= really


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
