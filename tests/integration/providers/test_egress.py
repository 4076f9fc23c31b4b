"""The harness's own connection to a provider obeys the run's policy."""

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from io_harness.workflows.egress import EgressCount
from io_harness.workflows.result import Outcome
from tests.fakes.provider import FakeProvider, Received
from tests.fakes.script import Answer, Call, Say
from tests.integration.site import policy

from .conftest import FINISH, Begin, model_of


async def test_the_providers_address_is_opened_to_it_and_counted(begin: Begin) -> None:
    async with FakeProvider(FINISH) as fake:
        port = int(fake.url.rpartition(":")[2])
        run = await begin(model_of(fake))
        result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    assert result.egress == (EgressCount(by="harness", host="127.0.0.1", port=port, allowed=1),)


@pytest.mark.parametrize("rule", ["127.0.0.1:{port}", "*", "*:*"])
async def test_a_rule_that_denies_it_ends_the_run_before_the_first_call(
    begin: Begin, rule: str
) -> None:
    async with FakeProvider(FINISH) as fake:
        port = fake.url.rpartition(":")[2]
        pattern = rule.format(port=port)
        run = await begin(model_of(fake), policy=policy(("deny", pattern)))
        with pytest.raises(WorkflowFailureError) as failed:
            await run.result()
        assert fake.requests == []
        assert await run.model_calls() == 0
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "ProviderDenied"
    for piece in (f"127.0.0.1:{port}", f"deny net {pattern}", "layer 'contract'"):
        assert piece in cause.message


async def test_a_rule_that_asks_does_not_hold_up_the_model(begin: Begin) -> None:
    """Who named the model has answered."""
    async with FakeProvider(FINISH) as fake:
        run = await begin(model_of(fake), policy=policy(("ask", "*:*")))
        result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason


async def test_what_is_opened_to_the_harness_is_not_opened_to_commands(begin: Begin) -> None:
    def wget(port: str) -> str:
        return (
            'no_proxy= NO_PROXY= python -c "import urllib.request as u; '
            f"print(u.urlopen('http://127.0.0.1:{port}/').status)\""
        )

    asked: list[int] = []

    def respond(received: Received) -> Answer:
        asked.append(1)
        tries = Call("run_command", {"command": wget(port)}, id="a")
        return FINISH if len(asked) > 1 else Say(calls=(tries,))

    async with FakeProvider(respond=respond) as fake:
        port = fake.url.rpartition(":")[2]
        # Some other host is allowed, so that the command has the proxy at all.
        run = await begin(model_of(fake), policy=policy(("allow", "other.example")))
        result = await run.result()
        told = str(fake.requests[-1].body)
    assert result.outcome is Outcome.FINISHED, result.reason
    assert f"127.0.0.1:{port} was refused" in told
    assert {(c.by, c.allowed > 0, c.denied) for c in result.egress} == {
        ("harness", True, 0),
        ("commands", False, 1),
    }
