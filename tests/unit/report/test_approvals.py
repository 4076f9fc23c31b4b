"""Requests and decisions are brought together as they took effect."""

from io_harness.report.approvals import approvals_of

from . import scene


def test_who_decided_what_and_when() -> None:
    command, question, landing = approvals_of(scene.steps() + scene.end())
    assert command.request
    assert (command.request.target, command.who, command.waited_seconds) == ("make test", "ann", 10)
    assert [late.by for late in command.late] == ["bob"]
    assert question.request is None
    assert question.question == "Which table?"
    assert question.decision
    assert question.decision.reason == "the staging table"
    assert landing.waited_seconds == 3600


def test_what_waits_has_no_decision() -> None:
    *_, landing = approvals_of(scene.steps())
    assert landing.decision is None
    assert landing.request
    assert landing.request.act == "land"


def test_a_request_that_is_made_twice_is_asked_once() -> None:
    steps = scene.steps()
    assert approvals_of([*steps, *steps[4:5]]) == approvals_of(steps)
