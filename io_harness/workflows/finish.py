"""The tool by which the model says that it is done. The workflow itself handles it."""

from pydantic import Field, JsonValue

from .model import Strict

FINISH = "finish"


class FinishArgs(Strict):
    """Claim that the goal is reached. The claim is then verified."""

    summary: str = Field(min_length=1, max_length=20_000)
    """What was done, for the person who asked."""
    answer: JsonValue = None
    """The structured answer, where one is asked for."""
