"""A worker in a process of its own, which may have orders to kill itself at a point of an activity."""

import asyncio
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from temporalio import activity
from temporalio.client import Client
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.service import GrpcCompression
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin, harness_worker


@dataclass(frozen=True)
class Moment:
    """A point of a run that history doesn't show: an activity's work is done, and nobody was told."""

    activity: str
    time: int
    """1 for the activity's first call, 2 for its second."""
    when: Literal["before", "after"]

    def __str__(self) -> str:
        return f"{self.when} {self.activity} {self.time}"


def serve(address: str, data_dir: Path, task_queue: str, moment: Moment | None) -> None:
    asyncio.run(_serve(address, data_dir, task_queue, moment))


async def _serve(address: str, data_dir: Path, task_queue: str, moment: Moment | None) -> None:
    client = await Client.connect(
        address,
        plugins=[HarnessPlugin(Settings(data_dir=data_dir))],
        grpc_compression=GrpcCompression.NONE,
        interceptors=[_Killing(moment)] if moment else [],
    )
    async with harness_worker(client, task_queue=task_queue):
        await asyncio.Event().wait()


class _Killing(ClientInterceptor, Interceptor):
    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _KillingActivity(next, self._moment)


@dataclass
class _Calls:
    seen: int = field(default=0)


_CALLS = _Calls()


class _KillingActivity(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, moment: Moment) -> None:
        super().__init__(next)
        self._moment = moment

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if activity.info().activity_type != self._moment.activity:
            return await self.next.execute_activity(input)
        _CALLS.seen += 1
        if (_CALLS.seen, self._moment.when) == (self._moment.time, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        result = await self.next.execute_activity(input)
        if (_CALLS.seen, self._moment.when) == (self._moment.time, "after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return result
