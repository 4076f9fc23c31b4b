"""What keeps every run from starting: one clear error, its exit code, and no traceback."""

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import trustme

from io_harness.server import running_server
from tests.crash.servers import ServerProcess, connected
from tests.fakes.frontend import refusing_frontend

from .conftest import Done, Recorded, Shell
from .test_disk import FINISH


def run(shell: Shell, *arguments: str, **variables: str) -> Done:
    done = shell.run(*arguments, **variables)
    assert "Traceback" not in done.err, done.err
    return done


def test_a_namespace_that_is_not_there(shared: Shell) -> None:
    server = running_server(shared.home)
    assert server is not None
    there = run(shared, "list", TEMPORAL_ADDRESS=server.address)
    assert there.code == 0, there.err
    for command in (("list",), ("worker",)):
        done = run(shared, *command, TEMPORAL_ADDRESS=server.address, TEMPORAL_NAMESPACE="nowhere")
        assert (done.code, "nowhere" in done.err) == (8, True), done.err


@pytest.mark.parametrize(
    ("command", "variable", "value", "code"),
    [
        (("list",), "TEMPORAL_ADDRESS", "127.0.0.1:99999", 8),
        (("gc", "--dry-run"), "IO_HARNESS_DATA", "/dev/null/x", 9),
    ],
)
def test_a_setting_that_nothing_can_be_done_with(
    shared: Shell, command: tuple[str, ...], variable: str, value: str, code: int
) -> None:
    done = run(shared, *command, **{variable: value})
    assert (done.code, variable in done.err, value in done.err) == (code, True, True), done.err


def test_a_server_that_accepts_and_says_nothing(shared: Shell) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = run(shared, "list", TEMPORAL_ADDRESS=address)
    assert (done.code, address in done.err) == (8, True), done.err


@dataclass(frozen=True)
class Certificates:
    """Of an authority and of one that nobody trusts, as files."""

    authority: trustme.CA
    folder: Path

    @staticmethod
    def made(folder: Path) -> "Certificates":
        authority = trustme.CA()
        for name, by in (("trusted", authority), ("strange", trustme.CA())):
            by.cert_pem.write_to_path(str(folder / f"{name}-ca.pem"))
            own = by.issue_cert("client@example.org")
            own.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
            own.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        return Certificates(authority, folder)

    def settings(self, ca: str, client: str | None) -> dict[str, str]:
        found = {"TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(self.folder / f"{ca}-ca.pem")}
        if client is not None:
            found["TEMPORAL_TLS_CLIENT_CERT_PATH"] = str(self.folder / f"{client}.pem")
            found["TEMPORAL_TLS_CLIENT_KEY_PATH"] = str(self.folder / f"{client}.key")
        return found


@pytest.mark.parametrize(
    ("ca", "client", "says"),
    [
        ("trusted", "trusted", "doesn't accept the credentials (Request unauthorized.)"),
        ("trusted", "strange", "TEMPORAL_TLS_CLIENT_CERT_PATH"),
        ("trusted", None, "TEMPORAL_TLS_CLIENT_CERT_PATH"),
        ("strange", "trusted", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"),
    ],
)
async def test_wrong_credentials(
    shell: Shell, tmp_path: Path, ca: str, client: str | None, says: str
) -> None:
    """An API key that isn't accepted; a certificate that isn't trusted, or none; a server whose own
    isn't trusted."""
    certificates = Certificates.made(tmp_path)
    status = grpc.StatusCode.UNAUTHENTICATED
    async with refusing_frontend(
        status, "Request unauthorized.", certificates.authority
    ) as address:
        settings = {"TEMPORAL_ADDRESS": address, **certificates.settings(ca, client)}
        for command in ("list", "worker"):
            done = await asyncio.to_thread(
                run, shell, command, TEMPORAL_API_KEY="wrong", **settings
            )
            assert (done.code, says in done.err) == (8, True), done.err


def test_tls_where_the_server_speaks_none(shared: Shell) -> None:
    server = running_server(shared.home)
    assert server is not None
    key = {"TEMPORAL_ADDRESS": server.address, "TEMPORAL_API_KEY": "any"}
    done = run(shared, "list", **key)
    assert (done.code, "speaks no TLS" in done.err) == (8, True), done.err
    assert "TEMPORAL_TLS=false" in done.err
    followed = run(shared, "list", TEMPORAL_TLS="false", **key)
    assert followed.code == 0, followed.err


def test_a_server_that_is_not_there(shell: Shell) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        done = run(shell, "worker", TEMPORAL_ADDRESS=address)
    assert (done.code, address in done.err, "refused" in done.err) == (8, True, True), done.err


async def test_search_attributes_that_are_not_registered(
    shell: Shell, recorded: Recorded, tmp_path: Path
) -> None:
    """An upsert of one would fail each workflow task: they are left out, and the doctor says so."""
    server = ServerProcess(tmp_path / "server", attributes={})
    server.start()
    try:
        await connected(server.address, tmp_path / "data")
        there = {"TEMPORAL_ADDRESS": server.address}
        model = recorded(FINISH)
        done = await asyncio.to_thread(
            run, shell, "run", "--goal", "x", "--model", model, "-w", ".", **there
        )
        assert done.code == 0, done.out + done.err
        doctor = await asyncio.to_thread(run, shell, "doctor", **there)
        assert "missing: HarnessState" in doctor.out
        assert "temporal operator search-attribute create --name HarnessState" in doctor.out
    finally:
        server.kill()


def test_a_codec_that_there_is_not(shared: Shell) -> None:
    done = run(shared, "list", IO_HARNESS_CODEC="lz4")
    assert (done.code, "IO_HARNESS_CODEC=lz4" in done.err) == (8, True), done.err
