"""One nudge, then stalled; any change of the workspace starts afresh."""

from io_harness.workflows.messages import Observation, ToolCall
from io_harness.workflows.progress import IDLE_TURNS, SAME_CALL_LIMIT, Pace, Progress


def turns(progress: Progress, count: int, *, changed: bool = False) -> tuple[Progress, list[Pace]]:
    paces: list[Pace] = []
    for _ in range(count):
        call = ToolCall(id="x", name="read_file", arguments={"path": "a"})
        progress, pace = progress.after_turn(((call, Observation(text="same")),), changed=changed)
        paces.append(pace)
    return progress, paces


def test_the_same_call_with_the_same_result_gets_a_nudge_and_then_ends() -> None:
    _, paces = turns(Progress(), 2 * SAME_CALL_LIMIT)
    assert paces[: SAME_CALL_LIMIT - 1] == ["moving"] * (SAME_CALL_LIMIT - 1)
    assert paces[SAME_CALL_LIMIT - 1] == "nudge"
    assert paces[-1] == "stalled"


def test_a_change_of_the_workspace_is_progress_even_if_the_call_repeats() -> None:
    assert set(turns(Progress(), 20, changed=True)[1]) == {"moving"}


def test_a_change_after_the_nudge_forgives_it() -> None:
    nudged, _ = turns(Progress(), SAME_CALL_LIMIT)
    assert nudged.nudged
    forgiven, _ = turns(nudged, 1, changed=True)
    assert not forgiven.nudged


def test_new_results_are_progress_without_a_change() -> None:
    progress, pace = Progress(), "moving"
    for index in range(2 * IDLE_TURNS):
        call = ToolCall(id="x", name="read_file", arguments={"path": str(index)})
        progress, pace = progress.after_turn(((call, Observation(text="t")),), changed=False)
        assert pace == "moving"
