"""The proxy under a real sandbox: programs in bubblewrap, served through the plan's doors."""

import asyncio
import gc
import os
import shutil
import socket
import ssl
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import trustme

from io_harness.sandbox import (
    Completed,
    Net,
    NetHost,
    NetNone,
    Plan,
    base_env,
    objection,
    run,
)
from io_harness.sandbox.egress import (
    Effect,
    EgressLimits,
    Proxy,
    Question,
    Reason,
    Rule,
    Rules,
    Session,
    Via,
)
from io_harness.sandbox.network import through_proxy

from .client_cases import CLIENTS
from .client_world import make_site, start_servers
from .names import Names, allow
from .upstream import ALLOWED

BWRAP = "linux-bubblewrap"
NAMESPACED = [BWRAP, "linux-namespaces"]
FLOOR = "portable-floor"
CAPTURED = {Via.CAPTURED_HTTP, Via.CAPTURED_TLS}


def _why_not() -> str | None:
    if not sys.platform.startswith("linux"):
        return "bubblewrap is for Linux"
    return objection(BWRAP)


pytestmark = pytest.mark.skipif(_why_not() is not None, reason=str(_why_not()))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The servers that allowed names lead to; yields the certificate to trust."""
    try:
        for port in (80, 443):
            socket.create_server((ALLOWED, port)).close()
    except OSError as error:
        pytest.skip(f"ports 80 and 443 of {ALLOWED} can't be had: {error}")
    folder = tmp_path_factory.mktemp("site")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.example", "*.sub.example").configure_cert(context)
    make_site(folder / "root")
    servers = start_servers(folder / "root", context, [ALLOWED])
    yield folder / "ca.pem"
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def workspace(tmp_path: Path, site: Path) -> Path:
    """A workspace for programs that ask the site's servers."""
    shutil.copy(site, tmp_path / "ca.pem")
    return tmp_path


@pytest.fixture(scope="module")
def proxy() -> Proxy:
    return Proxy(Names())


async def sandboxed(
    workspace: Path, net: Net, *argv: str, backend: str = BWRAP, unset: bool = False
) -> Completed:
    pem = str(workspace / "ca.pem")
    names = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO")
    command = list(argv)
    if unset:
        variables = ("http_proxy", "https_proxy", "all_proxy")
        both = [name for each in variables for name in (each, each.upper())]
        command = ["env", *(f"--unset={name}" for name in both), *argv]
    plan = Plan(
        argv=tuple(command),
        cwd=workspace,
        workspace=workspace,
        env=base_env() | dict.fromkeys(names, pem),
        net=net,
    )
    return await asyncio.wait_for(run(plan, backend=backend), 60)


def output(completed: Completed) -> str:
    return completed.stdout.text(10_000)


def fetch(client: str, scheme: str, host: str) -> list[str]:
    path = "repo.git" if client == "git" else "hello.txt"
    return [*CLIENTS[client], f"{scheme}://{host}/{path}"]


@pytest.mark.parametrize(
    ("client", "scheme", "captured"), [*product(CLIENTS, ("http", "https"), (False, True))]
)
async def test_programs_reach_what_is_allowed_and_nothing_else(
    client: str, scheme: str, captured: bool, workspace: Path, proxy: Proxy
) -> None:
    if shutil.which(CLIENTS[client][0]) is None:
        pytest.skip(f"{client} is not installed")
    session = Session("run", allow("a.example"))
    net = through_proxy(proxy, session)
    good = await sandboxed(workspace, net, *fetch(client, scheme, "a.example"), unset=captured)
    assert good.exit_code == 0, output(good)
    assert "hello" in output(good) or "refs/heads/main" in output(good)
    ways = {row.via for row in session.audit.rows}
    assert ways <= (
        {Via.CAPTURED_HTTP, Via.CAPTURED_TLS} if captured else {Via.CONNECT, Via.PROXY_HTTP}
    )
    assert session.audit.denied == 0
    bad = await sandboxed(workspace, net, *fetch(client, scheme, "other.test"), unset=captured)
    assert bad.exit_code not in (0, None), output(bad)
    assert set(session.audit.denied_by_reason) == {Reason.NO_RULE}


@pytest.mark.parametrize("backend", NAMESPACED)
async def test_programs_that_ignore_the_variables_are_served_where_there_is_a_namespace(
    backend: str, workspace: Path, proxy: Proxy
) -> None:
    if (reason := objection(backend)) is not None:
        pytest.skip(reason)
    session = Session("run", allow("a.example"))
    net = through_proxy(proxy, session)
    argv = fetch("curl", "https", "a.example")
    done = await sandboxed(workspace, net, *argv, backend=backend, unset=True)
    assert done.exit_code == 0, output(done)
    assert session.audit.allowed == 1


_DIAL = """
import socket, sys
for host, port in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        with socket.create_connection((host, int(port)), 3) as sock:
            sock.sendall(b"x")
            print("got", sock.recv(100))
    except OSError as error:
        print("refused", error)
"""


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says one thing to everyone, as HTTP where HTTP was asked."""
    asked = await reader.read(1000)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" if b"HTTP" in asked else b"")
    writer.write(b"secret")
    writer.close()


@pytest.mark.parametrize("backend", [*NAMESPACED, FLOOR])
async def test_any_user_and_port_through_the_variables(
    backend: str, tmp_path: Path, proxy: Proxy
) -> None:
    if (reason := objection(backend)) is not None:
        pytest.skip(reason)
    service = await asyncio.start_server(greet, ALLOWED, 0)
    port = service.sockets[0].getsockname()[1]
    async with service:
        session = Session("run", allow(f"a.example:{port}"))
        net = through_proxy(proxy, session)
        for host, tunnel, expected in (
            ("a.example", "", "secret"),
            ("a.example", "-p", "secret"),
            ("b.sub.example", "", "no rule"),
            ("b.sub.example", "-p", "403"),
        ):
            argv = ["curl", "-sS", *tunnel.split(), f"http://{host}:{port}/"]
            assert expected in output(await sandboxed(tmp_path, net, *argv, backend=backend))
        assert (session.audit.allowed, session.audit.denied) == (2, 2)


async def test_the_hosts_own_services_are_out_of_reach_by_any_address(
    tmp_path: Path, proxy: Proxy
) -> None:
    service = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = str(service.sockets[0].getsockname()[1])
    dial = [sys.executable, "-c", _DIAL, "127.0.0.1", port, "127.1.0.1", port]
    async with service:
        session = Session("run", Rules((Rule.parse(Effect.ALLOW, "*:*"),)))
        inside = await sandboxed(tmp_path, through_proxy(proxy, session), *dial)
        assert output(inside).count("Connection refused") == 2, output(inside)
        url = f"http://127.0.0.1:{port}/"
        asked = await sandboxed(
            tmp_path, through_proxy(proxy, session), "curl", "-sS", "--noproxy", "", url
        )
        assert "loopback" in output(asked)
        assert session.audit.denied_by_reason == {Reason.ADDRESS_REFUSED: 1}
        # The service is there: with the host's network the same program reaches it.
        outside = await sandboxed(tmp_path, NetHost(), *dial[:-2], backend=FLOOR)
        assert "secret" in output(outside)


async def test_without_the_proxy_there_is_no_network(workspace: Path, proxy: Proxy) -> None:
    argv = fetch("curl", "http", "a.example")
    none = await sandboxed(workspace, NetNone(), *argv)
    assert none.exit_code not in (0, None)
    some = await sandboxed(
        workspace, through_proxy(proxy, Session("run", allow("a.example"))), *argv
    )
    assert some.exit_code == 0


async def test_a_command_waits_while_a_person_is_asked(workspace: Path, proxy: Proxy) -> None:
    answers = iter((True, False))
    questions: list[str] = []

    async def ask(question: Question) -> bool:
        questions.append(str(question.target))
        await asyncio.sleep(0.2)
        return next(answers)

    rules = Rules((Rule.parse(Effect.ASK, "a.example"),), opened=allow("a.example").opened)
    session = Session("run", rules, ask=ask)
    net = through_proxy(proxy, session)
    argv = fetch("curl", "https", "a.example")
    assert (await sandboxed(workspace, net, *argv)).exit_code == 0
    assert (await sandboxed(workspace, net, *argv)).exit_code not in (0, None)
    assert questions == ["a.example:443", "a.example:443"]

    async def silent(_: Question) -> bool:
        await asyncio.Event().wait()
        return True

    session = Session("run", rules, ask=silent, limits=EgressLimits(ask_seconds=0.3))
    late = await sandboxed(workspace, through_proxy(proxy, session), *argv)
    assert late.exit_code not in (0, None)
    assert session.audit.denied_by_reason == {Reason.ASK_TIMED_OUT: 1}


async def test_runs_side_by_side_have_rules_of_their_own(workspace: Path, proxy: Proxy) -> None:
    one, two = Session("one", allow("a.example")), Session("two", allow("x.sub.example"))
    argv = [
        *CLIENTS["curl"][:-2],
        "--max-time",
        "10",
        "-w",
        "%{url} %{http_code}\n",
        "-o",
        os.devnull,
    ]
    urls = ["http://a.example/hello.txt", "http://x.sub.example/hello.txt"]
    command = [word for word in argv if word != "--fail"]
    results = await asyncio.gather(
        *(
            sandboxed(workspace, through_proxy(proxy, session), *command, url)
            for session in (one, two)
            for url in urls
        )
    )
    assert [output(each).split()[-1] for each in results] == ["200", "403", "403", "200"]
    assert (one.audit.allowed, one.audit.denied) == (two.audit.allowed, two.audit.denied) == (1, 1)
    assert {row.session for row in one.audit.rows} == {"one"}


async def test_where_there_is_no_namespace_the_token_admits(workspace: Path, proxy: Proxy) -> None:
    session = Session("run", allow("a.example"))
    net = through_proxy(proxy, session)
    good = await sandboxed(workspace, net, *fetch("curl", "https", "a.example"), backend=FLOOR)
    assert good.exit_code == 0, output(good)
    strip = 'http_proxy="http://${http_proxy#*@}" curl -sS http://a.example/hello.txt'
    bad = await sandboxed(workspace, net, "/bin/sh", "-c", strip, backend=FLOOR)
    assert "proxy credentials" in output(bad), output(bad)
    assert session.audit.denied_by_reason == {Reason.BAD_TOKEN: 1}


async def test_nothing_is_left_after_a_command(workspace: Path, proxy: Proxy) -> None:
    session = Session("run", allow("a.example"))
    net = through_proxy(proxy, session)
    argv = ["/bin/sh", "-c", "curl -sS http://a.example/hello.txt & sleep 0.3"]
    await sandboxed(workspace, net, *argv)
    gc.collect()
    tasks, fds = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await sandboxed(workspace, net, *argv)
    assert session.audit.allowed == 4
    assert session.usage.open_connections == 0
    assert len(asyncio.all_tasks()) <= tasks
    assert len(os.listdir("/proc/self/fd")) <= fds
