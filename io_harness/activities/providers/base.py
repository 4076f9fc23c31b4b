"""What a provider of models is to the rest of the harness."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import JsonValue

from io_harness.workflows.contract import ModelOptions
from io_harness.workflows.messages import AssistantPart, Message
from io_harness.workflows.payloads import FinishReason
from io_harness.workflows.result import Usage

ToolChoice = Literal["auto", "required", "none"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model is told of it."""

    name: str
    """Letters, digits, `_` and `-`, at most 64: what every provider accepts."""
    description: str
    input_schema: Mapping[str, JsonValue]
    """JSON Schema of an object."""
    enforced: bool = False
    """Whether the provider is asked to hold the model to the schema, where it can do that for this
    one."""


@dataclass(frozen=True)
class ModelRequest:
    """Asks for the message that follows `messages`."""

    model: str
    """The provider's own name of the model."""
    system: str
    messages: tuple[Message, ...]
    max_output_tokens: int
    turn: int = 0
    """Which call of its run this is, counted from 0. A recording is read by it."""
    tools: tuple[ToolSpec, ...] = ()
    options: ModelOptions = field(default_factory=ModelOptions)
    tool_choice: ToolChoice = "auto"
    images: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes of the images in `messages` by blob id; one that is missing is named in text instead."""


@dataclass(frozen=True)
class ModelReply:
    """A complete reply: its end marker has been seen."""

    parts: tuple[AssistantPart, ...]
    finish: FinishReason
    usage: Usage
    cost_usd: Decimal | None = None
    """What the provider itself says it charged; None where it doesn't say."""


@dataclass
class CallProgress:
    """What is known of a call while it runs. Kept up to date by the provider, so that a call which
    fails half-way still reports what it used."""

    received_bytes: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal | None = None
    tail: str = ""
    """The end of what the model has said so far, for whoever watches."""

    def said(self, text: str) -> None:
        """The model said some more."""
        self.tail = (self.tail + text)[-300:]


@dataclass(frozen=True)
class OfferedModel:
    """A model that a provider lists."""

    name: str
    context_tokens: int | None = None
    """Size of its window, where the provider says."""
    input_usd: Decimal | None = None
    """US dollars per million tokens, where the provider says."""
    output_usd: Decimal | None = None


class Failure(StrEnum):
    """Why a call failed. Each value is the `type` of the ApplicationError that leaves the activity."""

    # Retried by Temporal:
    RATE_LIMITED = "RateLimited"
    OVERLOADED = "Overloaded"
    SERVER_ERROR = "ServerError"
    CONNECTION_LOST = "ConnectionLost"
    TIMED_OUT = "TimedOut"
    STREAM_CUT = "StreamCut"
    MALFORMED_REPLY = "MalformedReply"
    EMPTY_REPLY = "EmptyReply"
    # Not retried, another model may do:
    BAD_REQUEST = "BadRequest"
    UNAUTHENTICATED = "Unauthenticated"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "NotFound"
    QUOTA_EXHAUSTED = "QuotaExhausted"
    """Credit used up or a spend limit reached: waiting seconds doesn't help."""
    CONTENT_FILTERED = "ContentFiltered"
    REPLY_TOO_LARGE = "ReplyTooLarge"
    PROVIDER_DENIED = "ProviderDenied"
    """The policy, or the table of addresses, forbids the connection."""
    UNTRUSTED_SERVER = "UntrustedServer"
    """The server's certificate doesn't verify."""
    # Not retried, and another model is no answer:
    CONTEXT_TOO_LONG = "ContextTooLong"
    """A shorter transcript is the answer."""
    REPLAY_DIVERGED = "ReplayDiverged"

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self in _RETRYABLE

    @property
    def fallback_may_help(self) -> bool:
        """Whether another model of the chain may succeed where this one failed for good."""
        return self not in (Failure.CONTEXT_TOO_LONG, Failure.REPLAY_DIVERGED)


_RETRYABLE = frozenset(
    {
        Failure.RATE_LIMITED,
        Failure.OVERLOADED,
        Failure.SERVER_ERROR,
        Failure.CONNECTION_LOST,
        Failure.TIMED_OUT,
        Failure.STREAM_CUT,
        Failure.MALFORMED_REPLY,
        Failure.EMPTY_REPLY,
    }
)


class ProviderError(Exception):
    """A call failed. The message is for a person: short, and free of secrets."""

    def __init__(
        self,
        failure: Failure,
        message: str,
        *,
        retry_after: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.retry_after = retry_after
        """Seconds that the provider asks to wait, where it does."""
        self.retryable = failure.retryable if retryable is None else retryable
        """As the failure's kind says, unless the provider itself says otherwise."""


class Provider(Protocol):
    """One provider's wire format. Makes no retries: Temporal does."""

    @property
    def name(self) -> str:
        """Name under which it is registered."""
        ...

    async def complete(self, request: ModelRequest, progress: CallProgress) -> ModelReply:
        """Ask for one reply.

        Raises:
            ProviderError: there is no complete reply.
        """
        ...

    async def models(self) -> tuple[OfferedModel, ...]:
        """The models on offer.

        Raises:
            ProviderError: the provider can't be asked.
        """
        ...
