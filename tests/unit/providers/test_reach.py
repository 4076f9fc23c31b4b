"""The clients that a worker keeps for its runs."""

import asyncio

import pytest

from io_harness.activities.network import RunNetwork
from io_harness.activities.providers import reach as reach_module
from io_harness.activities.providers.reach import ProviderWires, reach_of
from io_harness.activities.providers.wire import Wire
from io_harness.workflows.contract import Model
from io_harness.workflows.policy import policy_of

MODEL = Model(provider="openai-compatible", name="m", base_url="http://127.0.0.1:1/v1")


async def test_many_runs_close_idle_clients_once_and_none_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Closing takes its time, in which other calls begin and end."""
    reach, closed, closing = reach_of(MODEL, policy_of("unattended")), list[Wire](), Wire.aclose

    async def slowly(wire: Wire) -> None:
        closed.append(wire)
        await asyncio.sleep(0.001)
        await closing(wire)

    async def calls(wires: ProviderWires, run: int) -> None:
        for _ in range(5):
            async with wires.wire(f"run-{run}", reach) as wire:
                assert wire not in closed
                await asyncio.sleep(0.001 * (run % 3))
                assert wire not in closed

    monkeypatch.setattr(Wire, "aclose", slowly)
    monkeypatch.setattr(reach_module, "_KEPT", 1)
    wires = ProviderWires(RunNetwork())
    await asyncio.gather(*(calls(wires, run) for run in range(20)))
    await wires.aclose()
    assert len(closed) == len(set(map(id, closed)))
    assert len(closed) > 20
