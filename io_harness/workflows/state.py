"""Everything a run knows between two turns, and how it crosses continue-as-new."""

from dataclasses import dataclass, field

from pydantic import JsonValue
from temporalio import workflow

from .approvals import ApprovalBook, BookState
from .child import Child
from .children import Children
from .contract import TaskContract
from .egress import EgressCount, added
from .ledger import Ledger
from .lineage import AgentMessage, Lineage
from .mcp import McpState
from .messages import ModelRef
from .model import Record
from .own_tools import Plan
from .payloads import Admitted, Effect, Prepared, RunScope
from .progress import Progress
from .result import LandReport, VerificationReport
from .rules import Rule
from .transcript import Transcript
from .tree import Tree


class Carried(Record):
    """A run's state as the input of its continuation."""

    scope: RunScope
    admitted: Admitted
    prepared: Prepared
    head: str
    transcript: str
    """Packed: it may be long, and history takes it twice per continuation."""
    ledger: Ledger
    book: BookState
    progress: Progress
    started_at: float
    waited_seconds: float
    counted_tokens: int
    counted_messages: int
    model: int
    served: tuple[ModelRef, ...]
    malformed_turns: int
    silent_turns: int
    verification: VerificationReport | None
    plan: Plan
    remembered: tuple[Rule, ...]
    summary: str
    answer: JsonValue
    mcp: McpState = McpState()
    egress: tuple[EgressCount, ...] = ()
    agents: tuple[Child, ...] = ()
    """Sub-agents, all of which have ended."""
    agents_started: int = 0
    inbox: tuple[AgentMessage, ...] = ()
    asked_budget: bool = False
    lineage: Lineage | None = None
    published: str | None = None
    reviews: int = 0


@dataclass
class RunState:
    """Owned by one workflow; its handlers and its loop run in one thread."""

    contract: TaskContract
    scope: RunScope
    admitted: Admitted
    prepared: Prepared
    head: str
    transcript: Transcript
    ledger: Ledger
    book: ApprovalBook
    tree: Tree
    started_at: float
    waited_seconds: float = 0
    counted_tokens: int = 0
    """Input and output tokens of the last model call, as its provider counted them."""
    counted_messages: int = 0
    """Messages that `counted_tokens` covers."""
    model: int = 0
    served: list[ModelRef] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    malformed_turns: int = 0
    """Turns in a row of which no tool call could be used."""
    silent_turns: int = 0
    """Turns in a row without a tool call."""
    verification: VerificationReport | None = None
    plan: Plan = field(default_factory=Plan)
    remembered: list[Rule] = field(default_factory=list)
    """Rules that a human allowed for the rest of the run."""
    summary: str = ""
    """What the agent said it did, in its last claim."""
    answer: JsonValue = None
    mcp: McpState = field(default_factory=McpState)
    egress: tuple[EgressCount, ...] = ()
    """Connections so far, as the activities' results told."""
    children: Children = field(default_factory=Children)
    asked_budget: bool = False
    """Whether it asked its parent for more."""
    landing: LandReport | None = None
    waits: int = 0
    """Approvals waited for at this moment, and since when."""
    waiting_since: float = 0
    published: str | None = None
    """State that the search attributes tell of."""
    reviews: int = 0
    """Model calls so far that were reviews."""
    activity: str = "preparing"
    """What the run does now, for people."""

    @staticmethod
    def resumed(
        contract: TaskContract, carried: Carried, book: ApprovalBook, tree: Tree
    ) -> "RunState":
        return RunState(
            contract=contract,
            scope=carried.scope,
            admitted=carried.admitted,
            prepared=carried.prepared,
            head=carried.head,
            transcript=Transcript.unpack(carried.transcript),
            ledger=carried.ledger,
            book=book,
            tree=tree,
            started_at=carried.started_at,
            waited_seconds=carried.waited_seconds,
            counted_tokens=carried.counted_tokens,
            counted_messages=carried.counted_messages,
            model=carried.model,
            served=list(carried.served),
            progress=carried.progress,
            malformed_turns=carried.malformed_turns,
            silent_turns=carried.silent_turns,
            verification=carried.verification,
            plan=carried.plan,
            remembered=list(carried.remembered),
            summary=carried.summary,
            answer=carried.answer,
            mcp=carried.mcp,
            egress=carried.egress,
            asked_budget=carried.asked_budget,
            children=Children(
                known={child.id: child for child in carried.agents}, started=carried.agents_started
            ),
            published=carried.published,
            reviews=carried.reviews,
            activity="working",
        )

    def carried(self) -> Carried:
        return Carried(
            scope=self.scope,
            admitted=self.admitted.model_copy(update={"briefing": ""}),
            prepared=self.prepared,
            head=self.head,
            transcript=self.transcript.pack(),
            ledger=self.ledger,
            book=self.book.state(),
            progress=self.progress,
            started_at=self.started_at,
            waited_seconds=self.waited_seconds,
            counted_tokens=self.counted_tokens,
            counted_messages=self.counted_messages,
            model=self.model,
            served=tuple(self.served),
            malformed_turns=self.malformed_turns,
            silent_turns=self.silent_turns,
            verification=self.verification,
            plan=self.plan,
            remembered=tuple(self.remembered),
            summary=self.summary,
            answer=self.answer,
            mcp=self.mcp,
            egress=self.egress,
            agents=tuple(self.children.known.values()),
            agents_started=self.children.started,
            inbox=tuple(self.tree.inbox),
            asked_budget=self.asked_budget,
            lineage=self.lineage,
            published=self.published,
            reviews=self.reviews,
        )

    @property
    def lineage(self) -> Lineage | None:
        """None: this run is nobody's sub-agent."""
        return self.tree.lineage

    def effect_of(self, tool: str) -> Effect:
        """How a lost call of this tool is dealt with."""
        return self.admitted.effects.get(tool) or self.mcp.effect_of(tool) or "write"

    def tool_seconds(self, tool: str) -> float:
        """How long one attempt at a call of this tool may take."""
        servers = self.contract.mcp_servers if self.mcp.effect_of(tool) else ()
        slowest = max(
            (2 * s.connect_seconds + s.list_seconds + s.call_seconds for s in servers), default=0
        )
        return max(slowest, self.contract.sandbox.limits.wall_seconds) + 120

    @property
    def prompt_tokens(self) -> int:
        """Upper bound of the tokens of the system prompt and all tool descriptions together."""
        return self.admitted.prompt_tokens + (self.mcp.tools.prompt_tokens if self.mcp.tools else 0)

    @property
    def tools_queue(self) -> str | None:
        """Task queue of what touches the workspace; None: the run's own."""
        return self.contract.sandbox.task_queue

    def count(self, egress: tuple[EgressCount, ...]) -> None:
        """Add connections that an activity's result tells of."""
        self.egress = added(self.egress, egress)

    @property
    def step(self) -> int:
        """Number of the model call that was made last, from 1."""
        return self.ledger.spend.steps

    def begin_wait(self) -> None:
        """A human is waited for: from now on time is not working time."""
        if self.waits == 0:
            self.waiting_since = workflow.time()
        self.waits += 1

    def end_wait(self) -> None:
        self.waits -= 1
        if self.waits == 0:
            self.waited_seconds += workflow.time() - self.waiting_since

    def clock(self) -> float:
        """Bring the ledger up to now; return the seconds left for the next activity.

        Raises:
            BudgetEnded: there are none.
        """
        wall = workflow.time() - self.started_at
        self.ledger = self.ledger.at(wall - self.waited_seconds)
        return self.ledger.seconds_left(wall_seconds=wall)

    def wall_left(self) -> float | None:
        """Seconds to the earliest end that waiting doesn't put off; None: no limit."""
        return self.ledger.wall_left(workflow.time() - self.started_at)
