"""Connects to Temporal: the server that Temporal's own configuration names, else the embedded one."""

import asyncio
import dataclasses
import importlib
import ipaddress
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, TypedDict

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.envconfig import ClientConfigProfile, ClientConnectConfig
from temporalio.runtime import Runtime
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from io_harness.activities.settings import Settings
from io_harness.data_dir import usable
from io_harness.server import Held, Server, embedded_server
from io_harness.workflows.attributes import NAMES

_DEFAULT_TARGET = "localhost:7233"
_CONNECT_SECONDS = 20
_CLOUD_SUFFIX = ".tmprl.cloud"
_CLOUD_UI = "https://cloud.temporal.io"


class ConnectionFailed(Exception):
    """The Temporal server can't be used. The message says which, why, and what to do."""


@dataclass(frozen=True)
class Observed:
    """What watches the work of this process."""

    plugins: tuple[Plugin, ...] = ()
    runtime: Runtime | None = None
    """The SDK's native part, with its logs and metrics; None is its usual one."""


UNOBSERVED = Observed()


@dataclass(frozen=True)
class Connection:
    """A client, and how people reach the same server."""

    client: Client
    held: Held | None
    """Our use of the embedded server; None if a server is configured."""

    @property
    def server(self) -> Server | None:
        return self.held.server if self.held else None

    @property
    def address(self) -> str:
        return self.client.service_client.config.target_host

    def ui(
        self,
        workflow_id: str,
        run_id: str | None = None,
        page: Literal["history", "user-metadata"] = "history",
    ) -> str | None:
        """Address of the run in the Temporal UI, where it is known. What a run that waits asks is on
        the page `user-metadata`, which needs the `run_id`."""
        root = self.server.ui if self.server else _ui_root(self.address)
        if root is None:
            return None
        tail = f"/{run_id}/{page}" if run_id else ""
        return f"{root}/namespaces/{self.client.namespace}/workflows/{workflow_id}{tail}"


def configured() -> ClientConnectConfig | None:
    """What Temporal's environment configuration says (TEMPORAL_ADDRESS, TEMPORAL_PROFILE,
    TEMPORAL_CONFIG_FILE, TLS, API key); None if it names no server.

    Raises:
        ConnectionFailed: It can't be read, or names a profile that isn't there.
    """
    try:
        profile = ClientConfigProfile.load()
        config = profile.to_client_connect_config()
    except (RuntimeError, OSError, ValueError) as error:
        raise ConnectionFailed(
            f"Temporal's configuration can't be used: {error}; see TEMPORAL_CONFIG_FILE and "
            "TEMPORAL_PROFILE"
        ) from error
    named = config.get("target_host") or config.get("api_key") or config.get("tls")
    return config if named else None


@asynccontextmanager
async def connect(
    settings: Settings, *, works: bool = False, observed: Observed = UNOBSERVED
) -> AsyncIterator[Connection]:
    """Connect for as long as the block runs; the embedded server is started where it is needed.

    Args:
        works: Whether workers are made from the client.
        observed: How they are observed.

    Raises:
        ConnectionFailed: The configured server can't be reached.
        ServerError: The embedded server can't be used.
        DataDirUnusable: The data directory is needed and can't be written.
    """
    config = configured()
    if works or config is None:
        usable(settings.data_dir)
    if config is not None:
        extras = _extras(settings, observed, works=works)
        yield Connection(await _connected(config, extras), held=None)
        return
    loading = _load_plugin() if works else None
    async with embedded_server(settings.data_dir, NAMES) as held:
        if loading is not None:
            await loading
        extras = _extras(settings, observed, works=works)
        client = await _connected({"target_host": held.server.address}, extras)
        yield Connection(client, held)


def _load_plugin() -> "asyncio.Task[ModuleType]":
    """Import all activities while the server starts, which takes about as long."""
    return asyncio.create_task(asyncio.to_thread(importlib.import_module, "io_harness.plugin"))


class _Extras(TypedDict, total=False):
    plugins: Sequence[Plugin]
    data_converter: DataConverter
    runtime: Runtime


def _extras(settings: Settings, observed: Observed, *, works: bool) -> _Extras:
    """What the client has besides its address: all activities for a worker, or no more than it takes
    to read, which is imported in half the time."""
    codec = configured_codec()
    if not works:
        return {"data_converter": dataclasses.replace(pydantic_data_converter, payload_codec=codec)}
    from io_harness.plugin import HarnessPlugin

    extras: _Extras = {"plugins": [*observed.plugins, HarnessPlugin(settings, codec=codec)]}
    if observed.runtime is not None:
        extras["runtime"] = observed.runtime
    return extras


def configured_codec() -> PayloadCodec | None:
    """The payload codec that the environment asks for: `IO_HARNESS_CODEC` compresses,
    `IO_HARNESS_ENCRYPTION_KEYS` encrypts. None if neither is set.

    Raises:
        ConnectionFailed: there is no codec of that name, or a key can't be used.
    """
    match os.environ.get("IO_HARNESS_CODEC", ""):
        case "":
            compressing: PayloadCodec | None = None
        case "zstd":
            from io_harness.codec import ZstdCodec

            compressing = ZstdCodec()
        case other:
            raise ConnectionFailed(f"IO_HARNESS_CODEC={other}: no such codec; it may be zstd")
    references = os.environ.get("IO_HARNESS_ENCRYPTION_KEYS", "")
    if not references:
        return compressing
    from io_harness.encryption import BadKey, EncryptionCodec, read_keys

    try:
        return EncryptionCodec(read_keys(references), inner=compressing)
    except BadKey as error:
        raise ConnectionFailed(f"IO_HARNESS_ENCRYPTION_KEYS: {error}") from error


async def _connected(config: ClientConnectConfig, extras: _Extras) -> Client:
    target = config.get("target_host") or _DEFAULT_TARGET
    merged: ClientConnectConfig = {**config, "target_host": target}
    # Compressing payloads for the loopback interface takes longer than sending them.
    compression = GrpcCompression.NONE if _is_loopback(target) else GrpcCompression.GZIP
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            client = await Client.connect(**merged, **extras, grpc_compression=compression)
            await _check_namespace(client)
    except (RPCError, RuntimeError, TimeoutError, ValueError) as error:
        raise ConnectionFailed(_told(target, error)) from error
    return client


_REFUSALS = (
    (
        ("code: Unauthenticated", "code: PermissionDenied"),
        "the Temporal server at {target} doesn't accept the credentials ({why}): check "
        "TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_NAMESPACE",
    ),
    (
        ("InvalidCertificate",),
        "the certificate of the Temporal server at {target} isn't trusted ({why}): name its "
        "authority in TEMPORAL_TLS_SERVER_CA_CERT_PATH, and the host in TEMPORAL_TLS_SERVER_NAME "
        "where it differs from the address",
    ),
    (
        ("InvalidContentType",),
        "the server at {target} speaks no TLS ({why}): set TEMPORAL_TLS=false, or another "
        "TEMPORAL_ADDRESS",
    ),
    (
        ("`get_system_info` call error", "Connection reset", "broken pipe"),
        "the server at {target} hangs up ({why}): does it want TLS, or a certificate that it "
        "trusts (TEMPORAL_TLS, TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH)?",
    ),
)
"""Words of the SDK's error, which has no code for them, and what they mean; the first that fits."""


def _told(target: str, error: Exception) -> str:
    """What to say of a connection that failed."""
    words = str(error) or f"silence for {_CONNECT_SECONDS} s"
    found = re.search(r'message: "([^"]*)"|error: (Invalid\w+(?:\(\w+\))?)', words)
    why = (found[1] or found[2]) if found else words
    for signs, text in _REFUSALS:
        if any(sign in words for sign in signs):
            return text.format(target=target, why=why)
    return f"no Temporal server answers at {target}: {why}; does it run? is TEMPORAL_ADDRESS right?"


async def _check_namespace(client: Client) -> None:
    """A worker would find out only later, and a client only by its first call.

    Raises:
        ConnectionFailed: the server has no such namespace.
    """
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace)
        )
    except RPCError as error:
        if error.status == RPCStatusCode.UNAUTHENTICATED:
            raise
        if error.status != RPCStatusCode.NOT_FOUND:
            return  # it may be that this client may not ask; what it may do is told by its calls
        raise ConnectionFailed(
            f"the Temporal server has no namespace {client.namespace!r}: set TEMPORAL_NAMESPACE, or "
            f"create it by `temporal operator namespace create -n {client.namespace}`"
        ) from error


def _is_loopback(target: str) -> bool:
    host = target.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ui_root(target: str) -> str | None:
    named = os.environ.get("IO_HARNESS_UI")
    if named:
        return named.rstrip("/")
    if target.rpartition(":")[0].endswith(_CLOUD_SUFFIX):
        return _CLOUD_UI
    return None
