"""Search attributes by which people list runs."""

from typing import Literal

AttributeType = Literal["Keyword", "Int", "Double"]

STATE = "HarnessState"
REPO = "HarnessRepo"
MODEL = "HarnessModel"
STEP = "HarnessStep"
SPEND_USD = "HarnessSpendUsd"

NAMES: dict[str, AttributeType] = {
    STATE: "Keyword",
    REPO: "Keyword",
    MODEL: "Keyword",
    STEP: "Int",
    SPEND_USD: "Double",
}

MEANINGS = {
    STATE: "preparing, working, verifying, waiting, landing, or the outcome",
    REPO: "short name of the source",
    MODEL: "provider/name of the first choice",
    STEP: "model calls, when the state last changed",
    SPEND_USD: "US dollars, when the state last changed",
}
