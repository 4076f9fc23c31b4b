"""Search attributes by which people list runs."""

from typing import Literal

AttributeType = Literal["Keyword", "Int", "Double"]

STATE = "HarnessState"
REPO = "HarnessRepo"
MODEL = "HarnessModel"
STEP = "HarnessStep"
SPEND_USD = "HarnessSpendUsd"

NAMES: dict[str, AttributeType] = {
    STATE: "Keyword",  # preparing, working, verifying, waiting, landing, or the outcome
    REPO: "Keyword",
    MODEL: "Keyword",  # provider/name of the first choice
    STEP: "Int",
    SPEND_USD: "Double",
}
