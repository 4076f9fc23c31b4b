"""When the list of servers' tools is due, and what names it."""

import pytest

from io_harness.workflows.mcp import McpSource, McpState, McpTools


def listed(*seconds: float | None) -> McpTools:
    return McpTools(
        servers=tuple(
            McpSource(id=f"s{n}", protocol="p", software="s", refresh_seconds=each)
            for n, each in enumerate(seconds)
        )
    )


@pytest.mark.parametrize(
    ("state", "now", "due"),
    [
        (McpState(), 0.0, True),
        (McpState(tools=listed(None), listed_at=0), 1e9, False),
        (McpState(tools=listed(None), stale=True), 0.0, True),
        (McpState(tools=listed(60, 20, None), listed_at=100), 119.0, False),
        (McpState(tools=listed(60, 20, None), listed_at=100), 120.0, True),
    ],
)
def test_the_list_is_due_first_when_it_changed_and_when_its_time_is_over(
    state: McpState, now: float, due: bool
) -> None:
    assert state.due(now) is due


def test_the_digest_of_a_list_is_of_its_content() -> None:
    assert listed(1).digest == listed(1).digest != listed(2).digest
    assert McpTools.model_validate_json(listed(1).model_dump_json()).digest == listed(1).digest
