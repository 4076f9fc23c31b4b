"""A worker of a later release: what it knows of contracts and messages has a field more.

    python -m tests.crash.newer ADDRESS DATA_DIR TASK_QUEUE

The fields are added before anything is built from the models.
"""

import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from io_harness.workflows import contract, mcp, messages


def add_field(model: type[BaseModel], *holders: type[BaseModel]) -> None:
    """Give a model the field `newest`, and build anew what holds it."""
    model.__annotations__["newest"] = str
    model.__pydantic_fields__["newest"] = FieldInfo(annotation=str, default="as before")
    for each in (model, *holders):
        each.model_rebuild(force=True)


def main(address: str, data_dir: str, task_queue: str) -> None:
    add_field(contract.TaskContract)
    add_field(messages.UserMessage)
    add_field(messages.Observation, messages.ToolMessage)
    add_field(messages.AssistantMessage)
    add_field(mcp.McpTools, mcp.McpState)
    from .victim import serve

    serve(address, Path(data_dir), task_queue, None)


if __name__ == "__main__":
    main(*sys.argv[1:])
