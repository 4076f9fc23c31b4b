"""Who of a tree of agents may work now: first come, first served, at most so many at once. Pure."""

from dataclasses import dataclass, field


@dataclass
class Slots:
    """Held by the tree's root. Agents are named by their workflow ids, of which a descendant's begins
    with its ancestor's and a slash."""

    limit: int
    holders: set[str] = field(default_factory=set)
    queue: list[tuple[str, str]] = field(default_factory=list)
    """Agents that want to work, each with the run that is to be told."""

    def want(self, agent: str, by: str) -> None:
        if agent not in self.holders and all(agent != waiting for waiting, _ in self.queue):
            self.queue.append((agent, by))

    def free(self, agent: str) -> None:
        """The agent doesn't work at the moment."""
        self.holders.discard(agent)
        self.queue = [entry for entry in self.queue if entry[0] != agent]

    def end(self, agent: str) -> None:
        """The agent and all that descend from it are over."""
        self.holders = {held for held in self.holders if not is_within(held, agent)}
        self.queue = [entry for entry in self.queue if not is_within(entry[0], agent)]

    def grant(self) -> tuple[tuple[str, str], ...]:
        """Those whose turn it is now, each with the run that is to be told."""
        room = max(self.limit - len(self.holders), 0)
        granted, self.queue = tuple(self.queue[:room]), self.queue[room:]
        self.holders |= {agent for agent, _ in granted}
        return granted


def is_within(agent: str, ancestor: str) -> bool:
    """Whether `agent` is `ancestor` or descends from it."""
    return agent == ancestor or agent.startswith(f"{ancestor}/")
