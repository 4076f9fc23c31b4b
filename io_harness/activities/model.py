"""The activity that asks a model for the next message."""

import asyncio
import dataclasses
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from typing import NoReturn, Protocol

from temporalio import activity
from temporalio.exceptions import ApplicationError

from io_harness.workflows.contract import Model, TaskContract
from io_harness.workflows.ledger import Share
from io_harness.workflows.messages import (
    AssistantMessage,
    Message,
    ModelRef,
    ToolMessage,
)
from io_harness.workflows.payloads import (
    CompleteInput,
    Completion,
    ModelFailure,
    RunScope,
    TranscriptMark,
    Used,
)
from io_harness.workflows.policy import policy_of
from io_harness.workflows.result import Usage

from .fold_prompt import fold_request
from .network import RunNetwork
from .prices import cost_of
from .prompt import system_prompt
from .providers.base import (
    CallProgress,
    Failure,
    ModelReply,
    ModelRequest,
    ProviderError,
    ToolSpec,
)
from .providers.reach import ProviderWires, reach_of
from .providers.recording import RecordingError
from .providers.registry import ModelConfigError, catalogue_of, provider_for
from .providers.replay import record
from .providers.safety import safe_parts
from .review_request import review_request
from .settings import Settings
from .speaking import speaking
from .telemetry.spans import ModelCall, model_call

COMPLETION_BYTES = 1_000_000
"""Ceiling of one reply. A result over 2 MB is refused by the server, and the call bought again."""
PATIENCE_SECONDS = 60.0
"""A provider that asks for a longer wait is given up where the chain has another model."""
_HEARTBEAT_SECONDS = 1.0
_FIRST_BACKOFF_SECONDS = 1.0
_LAST_BACKOFF_SECONDS = 60.0


class Reader(Protocol):
    """Reads the run that the activity works for."""

    async def contract(self, scope: RunScope) -> TaskContract: ...

    async def transcript(self, mark: TranscriptMark) -> tuple[Message, ...]: ...

    def expect(self, message: AssistantMessage) -> None: ...


class Beat(Used):
    """Details of a heartbeat: progress for people, and for the next attempt what this one used."""

    received_bytes: int
    empty_replies: int
    tail: str = ""
    """The end of what the model has said so far."""


class _Call:
    """One attempt: what it has used, on top of the attempts before it."""

    def __init__(self) -> None:
        self.model: Model | None = None
        """None until the contract is read."""
        self.progress = CallProgress()
        details = activity.info().heartbeat_details
        earlier = Beat.model_validate(details[0]) if details else None
        self.earlier = earlier.usage if earlier else Usage()
        self._earlier_cost = earlier.cost_usd if earlier else Decimal(0)
        self.empty_replies = earlier.empty_replies if earlier else 0

    def within(self, spare: Share) -> bool:
        """Whether the attempts before this one left enough of the budget for it."""
        cost = self._earlier_cost
        dear = spare.usd is not None and cost is not None and cost > spare.usd
        return self.earlier.total <= spare.tokens and not dear

    def own_cost(self) -> Decimal | None:
        """Of this attempt alone; None if the price is not known."""
        own = self.progress.cost_usd
        if self.model is not None and (own is None or self.model.price is not None):
            own = cost_of(self.model, catalogue_of(self.model), self.progress.usage)
        return own

    def cost(self) -> Decimal | None:
        """Of this attempt and those before it."""
        own = self.own_cost()
        if own is None or self._earlier_cost is None:
            return None
        return own + self._earlier_cost

    def beat(self) -> Beat:
        unused = self.progress.usage.total == 0  # as far as is known of an incomplete attempt
        return Beat(
            received_bytes=self.progress.received_bytes,
            usage=self.earlier + self.progress.usage,
            cost_usd=self._earlier_cost if unused else self.cost(),
            empty_replies=self.empty_replies,
            tail=self.progress.tail,
        )


class ModelActivities:
    """Model calls. One per worker."""

    def __init__(
        self,
        settings: Settings,
        reader: Reader,
        tools: Callable[[TaskContract, bool], tuple[ToolSpec, ...]],
        read_blob: Callable[[str], Awaitable[bytes]] | None = None,
        run_tools: Callable[[RunScope], Awaitable[tuple[ToolSpec, ...]]] | None = None,
        network: RunNetwork | None = None,
    ) -> None:
        """`tools` says what the model is offered under a contract, as a sub-agent or not; `run_tools`
        what it is offered in one run besides: the tools of its MCP servers. `read_blob` gives the
        bytes of an image by its object id; without it images are only named to the model."""
        self._settings = settings
        self._reader = reader
        self._tools = tools
        self._read_blob = read_blob
        self._run_tools = run_tools
        self._network = network or RunNetwork()
        self._wires = ProviderWires(self._network)

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._wires.aclose()

    @activity.defn(name="complete")
    async def complete(self, call: CompleteInput) -> Completion:
        """Ask the model for the message that follows the transcript.

        Raises:
            ApplicationError: of a type in `Failure`, its detail a `ModelFailure`; or, not retryable,
                RetriesOverBudget, MissingCredential, UnknownProvider, MissingBaseUrl or BadRecording.
        """
        attempt = _Call()
        async with _heartbeats(attempt):
            contract = await self._reader.contract(call.run)
            model = attempt.model = contract.all_models[call.model]
            if call.spare is not None and not attempt.within(call.spare):
                _stop_retries(attempt)
            with speaking(_workflow_id(), attempt.progress), model_call(call, model) as told:
                try:
                    return await self._complete(call, contract, model, attempt, told)
                finally:
                    told.usage, told.cost_usd = attempt.progress.usage, attempt.own_cost()

    async def _complete(
        self,
        call: CompleteInput,
        contract: TaskContract,
        model: Model,
        attempt: _Call,
        told: ModelCall,
    ) -> Completion:
        last = call.model + 1 >= len(contract.models)
        try:
            request = await self._request(call, contract, model)
            told.asked(request)
            reach = reach_of(model, policy_of(contract.policy))
            async with self._wires.wire(call.run.key, reach) as wire:
                provider = provider_for(model, self._settings, wire)
                async with asyncio.timeout(model.options.seconds):
                    reply = await provider.complete(request, attempt.progress)
            completion = self._completion(request, reply, attempt, model)
            if call.purpose != "review":
                self._record(request, reply, completion)
            told.replied(completion)
            if call.purpose == "turn":
                self._reader.expect(completion.message)
            counts = self._network.take_counts(call.run.key)
            return completion.model_copy(update={"egress": counts})
        except TimeoutError:
            failure = ProviderError(
                Failure.TIMED_OUT, f"no complete reply in {model.options.seconds} s"
            )
            _fail(failure, attempt, last=last)
        except ProviderError as failure:
            _fail(failure, attempt, last=last)
        except ModelConfigError as error:
            raise ApplicationError(str(error), type=error.code, non_retryable=True) from error
        except RecordingError as error:
            raise ApplicationError(str(error), type="BadRecording", non_retryable=True) from error

    async def _request(
        self, call: CompleteInput, contract: TaskContract, model: Model
    ) -> ModelRequest:
        if call.purpose == "review":
            return review_request(call, contract, model)
        messages = await self._reader.transcript(call.transcript)
        folding = call.purpose == "fold"
        if folding:
            messages = fold_request(messages)
        more = await self._run_tools(call.run) if self._run_tools else ()
        return ModelRequest(
            turn=call.step - 1 - call.reviews,
            model=model.name,
            system=system_prompt(contract),
            messages=messages,
            max_output_tokens=call.max_output_tokens,
            # A fold offers tools that must not be called: Anthropic refuses a conversation with tool
            # results in it where no tool is defined.
            tools=(*self._tools(contract, call.run.sub_agent), *more),
            tool_choice="none" if folding else "auto",
            options=model.options,
            images=await self._images(messages),
        )

    async def _images(self, messages: tuple[Message, ...]) -> dict[str, bytes]:
        if self._read_blob is None:
            return {}
        blobs = {
            image.blob
            for message in messages
            if isinstance(message, ToolMessage)
            for image in message.observation.images
        }
        return {blob: await self._read_blob(blob) for blob in sorted(blobs)}

    def _completion(
        self, request: ModelRequest, reply: ModelReply, attempt: _Call, model: Model
    ) -> Completion:
        parts = safe_parts(reply, request)
        served_by = ModelRef(provider=model.provider, name=model.name)
        attempt.progress.usage = reply.usage
        attempt.progress.cost_usd = reply.cost_usd
        completion = Completion(
            message=AssistantMessage(parts=parts, served_by=served_by),
            finish=reply.finish,
            usage=reply.usage,
            retried=attempt.earlier,
            cost_usd=attempt.cost(),
        )
        size = len(completion.model_dump_json().encode())
        if size > COMPLETION_BYTES:
            raise ProviderError(
                Failure.REPLY_TOO_LARGE,
                f"the reply has {size} bytes, over the {COMPLETION_BYTES} that history takes",
            )
        return completion

    def _record(self, request: ModelRequest, reply: ModelReply, completion: Completion) -> None:
        """Keep a turn for the provider `replay`, where the worker is told to."""
        if self._settings.record is not None:
            charged = dataclasses.replace(reply, cost_usd=completion.cost_usd)
            record(self._settings.record, request, charged, completion.message.served_by)


@asynccontextmanager
async def _heartbeats(attempt: _Call) -> AsyncIterator[None]:
    """Report progress after every second. Without heartbeats a cancellation would not arrive."""

    async def report() -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            activity.heartbeat(attempt.beat())

    task = asyncio.create_task(report())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _workflow_id() -> str:
    found = activity.info().workflow_id
    assert found is not None  # a workflow makes the call
    return found


def _fail(error: ProviderError, attempt: _Call, *, last: bool) -> NoReturn:
    """Leave the activity. Temporal retries; how long it waits is decided here, as only this side
    knows what the provider asked for, and Temporal's own backoff has no jitter. A long wait is not
    worth it while another model of the chain is left."""
    retryable = error.retryable and (last or (error.retry_after or 0) <= PATIENCE_SECONDS)
    if error.failure is Failure.EMPTY_REPLY:
        attempt.empty_replies += 1
        retryable = attempt.empty_replies == 1
    beat = attempt.beat()
    activity.heartbeat(beat)
    raise ApplicationError(
        error.message,
        ModelFailure(
            fallback_may_help=error.failure.fallback_may_help,
            usage=beat.usage,
            cost_usd=beat.cost_usd,
        ),
        type=error.failure.value,
        non_retryable=not retryable,
        next_retry_delay=_delay(error, activity.info().attempt) if retryable else None,
        # Without the chain of causes: their traces pass the size at which the server shows nothing of a
        # failure but that it is too large.
    ) from None


def _stop_retries(attempt: _Call) -> NoReturn:
    beat = attempt.beat()
    raise ApplicationError(
        "another attempt could pass the budget",
        ModelFailure(fallback_may_help=True, usage=beat.usage, cost_usd=beat.cost_usd),
        type="RetriesOverBudget",
        non_retryable=True,
    )


def _delay(error: ProviderError, attempt: int) -> timedelta:
    """What the provider asks for and up to a tenth more, or else exponential with equal jitter."""
    if error.retry_after is not None:
        return timedelta(seconds=error.retry_after * random.uniform(1.0, 1.1))
    ceiling = min(_LAST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2 ** min(attempt, 10))
    return timedelta(seconds=random.uniform(ceiling / 2, ceiling))
