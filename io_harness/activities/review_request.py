"""The request by which a model reviews a change."""

from io_harness.workflows.contract import Model, TaskContract
from io_harness.workflows.messages import UserMessage
from io_harness.workflows.payloads import CompleteInput
from io_harness.workflows.review_prompt import REVIEWER, VERDICT, VerdictArgs, review_prompt

from .providers.base import ModelRequest, ToolSpec
from .tools.base import schema_of


def review_request(call: CompleteInput, contract: TaskContract, model: Model) -> ModelRequest:
    """Ask a model that has seen nothing of the run for its verdict on the change."""
    text = review_prompt(contract, call.model - len(contract.models), call.change)
    return ModelRequest(
        turn=call.reviews,
        model=model.name,
        system=REVIEWER,
        messages=(UserMessage(origin="verification", text=text),),
        max_output_tokens=call.max_output_tokens,
        tools=(verdict_tool(),),
        options=model.options,
    )


def verdict_tool() -> ToolSpec:
    description = "Say whether the change keeps to the rubric, and why."
    return ToolSpec(VERDICT, description, schema_of(VerdictArgs), enforced=True)
