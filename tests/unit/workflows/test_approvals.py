"""The approval book: the first decision wins, and nothing else changes anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.workflows.approvals import (
    ApprovalBook,
    BookState,
    Decision,
    PendingApproval,
    UnknownRequest,
)
from io_harness.workflows.payloads import ApprovalRequest, Reason


def request(digest: str = "a" * 64, act: str = "write") -> ApprovalRequest:
    return ApprovalRequest.model_validate(
        {
            "act": act,
            "target": "src/app.py",
            "tool": "edit_file",
            "why": Reason(effect="ask", rule="default", layer="careful"),
            "preview": "-a\n+b",
            "preview_kind": "diff",
            "digest": digest,
        }
    )


def pending(expires_at: float | None = None, act: str = "write") -> PendingApproval:
    shown = request(act=act)
    return PendingApproval(
        id=ApprovalBook.request_id(3, 1, shown),
        step=3,
        request=shown,
        opened_at=0,
        expires_at=expires_at,
    )


def say(verdict: str, request_id: str, **more: object) -> Decision:
    return Decision.model_validate({"request": request_id, "verdict": verdict, **more})


def test_the_first_decision_wins_and_the_second_is_logged() -> None:
    book, asked = ApprovalBook(), pending()
    book.open(asked, 0)
    book.decide(say("deny", asked.id, by="ann"), 1)
    book.decide(say("approve", asked.id, by="bob"), 2)
    assert [entry.effect for entry in book.log] == ["applied", "duplicate"]
    settled = book.close(asked.id)
    assert settled is not None
    assert (settled.verdict, settled.by) == ("deny", "ann")


@pytest.mark.parametrize(
    ("act", "verdict", "more"),
    [
        ("write", "retry", {}),
        ("retry", "approve", {}),
        ("land", "approve", {"edit": {"path": "x"}}),
    ],
)
def test_what_a_request_does_not_take_decides_nothing_whenever_it_comes(
    act: str, verdict: str, more: dict[str, object]
) -> None:
    asked = pending(act=act)
    decision = say(verdict, asked.id, **more)
    early, late = ApprovalBook(), ApprovalBook()
    early.decide(decision, 0)
    early.open(asked, 1)
    late.open(asked, 0)
    late.decide(decision, 1)
    for book in (early, late):
        assert not book.decided((asked.id,))
        assert book.log[-1].effect == "stale"
        with pytest.raises(UnknownRequest, match="does not take"):
            book.check(decision)


def test_an_early_decision_takes_effect_only_for_the_very_request_it_names() -> None:
    book, asked = ApprovalBook(), pending()
    other = ApprovalBook.request_id(3, 1, request(digest="b" * 64))
    book.decide(say("approve", other), 0)
    book.open(asked, 1)
    assert not book.decided((asked.id,))
    again = ApprovalBook()
    again.decide(say("approve", asked.id), 0)
    again.open(asked, 1)
    assert again.decided((asked.id,))


def test_a_decision_after_the_close_is_stale() -> None:
    book, asked = ApprovalBook(), pending()
    book.open(asked, 0)
    assert book.close(asked.id) is None
    book.decide(say("approve", asked.id), 1)
    assert book.log[-1].effect == "stale"
    assert not book.decided((asked.id,))


def test_a_decision_after_the_expiry_does_not_count() -> None:
    book, asked = ApprovalBook(), pending(expires_at=10)
    book.open(asked, 0)
    book.decide(say("approve", asked.id), 10)
    assert book.log[-1].effect == "expired"
    assert not book.decided((asked.id,))
    book.decide(say("approve", asked.id), 9.9)
    assert book.decided((asked.id,))


def test_an_update_is_rejected_where_a_signal_is_only_logged() -> None:
    book, asked = ApprovalBook(), pending()
    with pytest.raises(UnknownRequest, match="waiting: none"):
        book.check(say("approve", "9.9-unknown"))
    book.open(asked, 0)
    book.check(say("approve", asked.id))
    with pytest.raises(UnknownRequest, match="does not take"):
        book.check(say("retry", asked.id))
    book.decide(say("approve", asked.id), 1)
    with pytest.raises(UnknownRequest, match="already decided"):
        book.check(say("approve", asked.id))


def test_a_lost_call_takes_retry_skip_or_abort_only() -> None:
    book, asked = ApprovalBook(), pending(act="retry")
    book.open(asked, 0)
    book.decide(say("approve", asked.id), 1)
    assert not book.decided((asked.id,))
    book.decide(say("skip", asked.id), 2)
    assert book.decided((asked.id,))


@given(st.lists(st.tuples(st.sampled_from(["open", "decide", "carry", "close"]), st.booleans())))
def test_carrying_the_book_over_loses_and_doubles_nothing(moves: list[tuple[str, bool]]) -> None:
    book, twin, asked = ApprovalBook(), ApprovalBook(), pending()
    for move, approve in moves:
        decision = say("approve" if approve else "deny", asked.id)
        for each in (book, twin):
            if move == "open":
                each.open(asked, 0)
            elif move == "decide":
                each.decide(decision, 0)
            elif move == "close":
                each.close(asked.id)
        if move == "carry":
            book = ApprovalBook(BookState.model_validate_json(book.state().model_dump_json()))
        assert book.state() == twin.state()


def test_a_rewritten_call_must_fit_where_arguments_stand_inline() -> None:
    assert say("approve", "r", edit={"text": "x" * 1_000}).edit is not None
    with pytest.raises(ValueError, match="at most 8192 bytes"):
        say("approve", "r", edit={"text": "x" * 10_000})
