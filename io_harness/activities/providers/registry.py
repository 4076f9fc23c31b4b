"""Which providers there are. How one is found and given its key."""

from collections.abc import Mapping

from io_harness.activities.settings import CredentialUnreadable, Settings, credential
from io_harness.workflows.contract import Model

from .base import Provider
from .kind import Kind
from .presets import PRESETS
from .replay import Replay
from .wire import Wire


class ModelConfigError(Exception):
    """A model of a contract can't be used on this worker."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


REPLAY = "replay"

_KINDS = dict(PRESETS)


def kinds() -> Mapping[str, Kind]:
    """All providers that are spoken to over HTTP, by name."""
    return dict(_KINDS)


def register(name: str, kind: Kind) -> None:
    """Add a provider under a name that contracts can then use."""
    _KINDS[name] = kind


def catalogue_of(model: Model) -> str | None:
    """The provider's id in genai-prices."""
    kind = _KINDS.get(model.provider)
    return kind.catalogue if kind else None


def provider_for(model: Model, settings: Settings, wire: Wire) -> Provider:
    """The provider that serves `model`, its credential resolved on this worker.

    Raises:
        ModelConfigError: UnknownProvider, MissingBaseUrl or MissingCredential.
    """
    if model.provider == REPLAY:
        return Replay(_base_url(model, None))
    return build(_kind_of(model), model, settings, wire)


def base_url_of(model: Model) -> str | None:
    """Where the model's provider listens; None where it has no address.

    Raises:
        ModelConfigError: UnknownProvider or MissingBaseUrl.
    """
    if model.provider == REPLAY:
        return None
    return _base_url(model, _kind_of(model).base_url)


def build(kind: Kind, model: Model, settings: Settings, wire: Wire) -> Provider:
    """The provider of a known kind.

    Raises:
        ModelConfigError: MissingBaseUrl or MissingCredential.
    """
    endpoint = kind.connect(_base_url(model, kind.base_url), _key(model, kind, settings))
    return kind.build(wire, endpoint, model.provider)


def _kind_of(model: Model) -> Kind:
    kind = _KINDS.get(model.provider)
    if kind is None:
        known = ", ".join(sorted((*_KINDS, REPLAY)))
        raise ModelConfigError(
            "UnknownProvider", f"model.provider {model.provider!r} is unknown; known are: {known}"
        )
    return kind


def _base_url(model: Model, usual: str | None) -> str:
    url = model.base_url or usual
    if url is None:
        what = "the recording's path" if model.provider == REPLAY else "the server's address"
        raise ModelConfigError(
            "MissingBaseUrl", f"model.base_url is needed with provider {model.provider}: {what}"
        )
    if model.provider != REPLAY and not url.startswith(("http://", "https://")):
        raise ModelConfigError(
            "MissingBaseUrl", f"model.base_url {url!r} must begin with http:// or https://"
        )
    return url


def _key(model: Model, kind: Kind, settings: Settings) -> str | None:
    """The key's value. By default a key goes to its own provider's address only: with another
    `base_url` the contract must name the key that the server there may see."""
    if model.api_key is not None:
        variable = model.api_key.removeprefix("env:")
    elif kind.key is None or model.base_url is not None:
        return None
    else:
        variable = kind.key
    if variable not in settings.credentials:
        raise ModelConfigError(
            "MissingCredential",
            f"{variable} is not a credential that this worker gives to providers; add it to "
            "IO_HARNESS_CREDENTIALS in the worker's environment",
        )
    try:
        value = credential(variable)
    except CredentialUnreadable as error:
        raise ModelConfigError("MissingCredential", str(error)) from error
    if not value:
        raise ModelConfigError(
            "MissingCredential",
            f"{variable} is not set in the worker's environment, and the model "
            f"{model.provider}/{model.name} needs it",
        )
    return value
