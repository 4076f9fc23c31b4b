"""A history in chapters: what led up to the first model call, each call with what came of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from io_harness import trace
from io_harness.workflows.messages import MalformedToolCall, ToolCall
from io_harness.workflows.payloads import NeedsApproval, ToolDone

Entry = trace.Step


@dataclass
class Chapter:
    """A model call and all that happened until the next one; without `model`, what came before."""

    model: trace.ModelStep | None
    entries: list[Entry] = field(default_factory=list)
    before: trace.ModelStep | None = None
    """The model call before this one."""

    @property
    def prompt(self) -> str:
        """What the model was sent for this call, in terms of what stands above it."""
        if self.model is not None and self.model.purpose == "review":
            return "The goal, the rubric and the diff, and nothing else of the run."
        if self.before is None:
            return "The system prompt, the tools and the first message."
        called = [call.name for call in self.before.completion.message.calls]
        more = f"the results of {', '.join(called)}" if called else "what followed it"
        if self.before.purpose == "fold":
            return (
                "The system prompt, the tools, the goal, the summary, and the turns that were kept."
            )
        return f"All that step {self.before.step} was sent, its reply, and {more}."

    @property
    def own_calls(self) -> tuple[ToolCall | MalformedToolCall, ...]:
        """Calls that no activity answered: the plan, a question, the claim to be done, what could not
        be read or was not carried out."""
        assert self.model is not None
        used = {
            step.call.id for step in self.entries if isinstance(step, trace.ToolStep) and step.call
        }
        return tuple(c for c in self.model.completion.message.calls if c.id not in used)

    @property
    def trouble(self) -> str:
        """In a few words what did not go as it was meant to."""
        found = [word for entry in self.entries if (word := _trouble(entry))]
        return ", ".join(dict.fromkeys(found))


def chapters(steps: Sequence[trace.Step]) -> Iterator[Chapter]:
    current = Chapter(None)
    for step in steps:
        match step:
            case trace.ModelStep():
                yield current
                current = Chapter(step, before=current.model)
            case trace.Began() | trace.EndedStep():
                continue
            case _:
                current.entries.append(step)
    yield current


def _trouble(entry: Entry) -> str:
    match entry:
        case trace.ToolStep(outcome=ToolDone(refused=refused)) if refused is not None:
            return "refused"
        case trace.ToolStep(outcome=ToolDone(observation=observation)) if observation.is_error:
            return "error"
        case trace.ToolStep(outcome=NeedsApproval()) | trace.LandedStep(report=NeedsApproval()):
            return "asked"
        case trace.VerifiedStep(report=report) if report.verdict != "passed":
            return f"verification {report.verdict}"
        case trace.FailedStep():
            return f"{entry.activity} {entry.how.replace('_', ' ')}"
        case _:
            return ""
