"""What can be found wrong with a contract's models before the first call."""

from decimal import Decimal

from temporalio.exceptions import ApplicationError

from io_harness.activities.prices import price_of
from io_harness.activities.settings import Settings
from io_harness.workflows.contract import Model, Price, TaskContract
from io_harness.workflows.policy import policy_of

from .reach import reach_of
from .recording import RecordingError, load
from .registry import REPLAY, ModelConfigError, catalogue_of, provider_for
from .wire import Wire

_FREE = Price(input=Decimal(0), output=Decimal(0))


def check_models(contract: TaskContract, settings: Settings) -> tuple[Price | None, ...]:
    """Prices of all the contract's models, as it lists them; None where one is not known.

    Raises:
        ApplicationError: not retryable, of type UnknownProvider, MissingBaseUrl, MissingCredential,
            ProviderDenied (the policy denies its host), UnknownPrice (there is a budget in USD), or
            BadRecording. The message says what to do.
    """
    return tuple(_check(model, contract, settings) for model in contract.all_models)


def _check(model: Model, contract: TaskContract, settings: Settings) -> Price | None:
    try:
        provider_for(model, settings, Wire())
        reach = reach_of(model, policy_of(contract.policy))
        if model.provider == REPLAY:
            load(model.base_url or "")
    except ModelConfigError as error:
        raise _refuse(error.code, str(error)) from error
    except RecordingError as error:
        raise _refuse("BadRecording", str(error)) from error
    if reach is not None and (denial := reach.denial):
        raise _refuse(
            "ProviderDenied",
            f"policy: the provider of {model.provider}/{model.name} at {denial}. Take the host out of "
            "that rule (`unless`), or name another model",
        )
    if model.provider == REPLAY:
        return model.price or _FREE  # a recording states what each turn cost
    price = price_of(model, catalogue_of(model))
    budget = contract.budget
    if price is None and budget.usd is not None and budget.unpriced == "refuse":
        raise _refuse(
            "UnknownPrice",
            f"budget.usd is set, and the price of {model.provider}/{model.name} is not known: give "
            "it as model.price (input and output, US dollars per million tokens), set "
            "budget.unpriced to allow, or leave budget.usd out",
        )
    return price


def _refuse(code: str, message: str) -> ApplicationError:
    return ApplicationError(message, type=code, non_retryable=True)
