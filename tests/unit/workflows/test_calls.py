"""No payload is scheduled that the server could choke on."""

import pytest

from io_harness.workflows.calls import PAYLOAD_BYTES, SIDE_BY_SIDE, check_size
from io_harness.workflows.ended import RunEnded
from io_harness.workflows.messages import ToolCall
from io_harness.workflows.payloads import (
    INLINE_ARGUMENTS_BYTES,
    InlineCall,
    RunScope,
    UseToolInput,
    VerifyInput,
)
from io_harness.workflows.rules import Rule

SCOPE = RunScope(key="k" * 70, contract_digest="d" * 64)


def test_a_payload_over_the_ceiling_ends_the_run_before_it_is_scheduled() -> None:
    check_size(
        "verify", VerifyInput(run=SCOPE, base="b", head="h", answer="x" * (PAYLOAD_BYTES - 1_000))
    )
    with pytest.raises(RunEnded, match="the input of verify has") as caught:
        check_size("verify", VerifyInput(run=SCOPE, base="b", head="h", answer="x" * PAYLOAD_BYTES))
    assert caught.value.code == "PayloadTooLarge"


def test_the_largest_tool_calls_side_by_side_stay_under_a_megabyte() -> None:
    rule = Rule.model_validate({"effect": "allow", "act": "exec", "target": "x" * 500})
    largest = UseToolInput(
        run=SCOPE,
        step=1,
        base="b" * 40,
        call=InlineCall(
            call=ToolCall(id="i", name="n", arguments={"t": "x" * INLINE_ARGUMENTS_BYTES})
        ),
        remembered=(rule,) * 100,
    )
    assert len(largest.model_dump_json()) * SIDE_BY_SIDE < 1024 * 1024
