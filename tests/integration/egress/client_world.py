"""Runs the table of programs, each in a network namespace of its own, and prints JSON lines."""

import asyncio
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from threading import Thread

import trustme

from io_harness.sandbox.egress import (
    INSIDE_LISTENERS,
    RESOLV_CONF,
    EgressLimits,
    Proxy,
    Session,
    proxy_env,
)
from tests.integration.egress.client_cases import CASES, ClientCase
from tests.integration.egress.names import Names, allow
from tests.integration.egress.namespaces import loopback_up
from tests.integration.egress.upstream import ALLOWED, FORBIDDEN

ROOT = Path(__file__).parents[3]


class Site(SimpleHTTPRequestHandler):
    """Static files, and redirects."""

    def do_GET(self) -> None:
        targets = {
            "/to-b": "http://b.sub.example/hello.txt",
            "/to-inside": "http://127.0.0.1/hello.txt",
        }
        if self.path in targets:
            self.send_response(302)
            self.send_header("Location", targets[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def make_site(folder: Path) -> None:
    folder.mkdir()
    (folder / "hello.txt").write_text("hello")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    work = folder / "work"
    for command in (
        ["init", "-q", "-b", "main", str(work)],
        ["-C", str(work), "commit", "-q", "--allow-empty", "-m", "one"],
        ["clone", "-q", "--bare", str(work), str(folder / "repo.git")],
        ["-C", str(folder / "repo.git"), "update-server-info"],
    ):
        subprocess.run([*git, *command], check=True)


def start_servers(
    folder: Path, context: ssl.SSLContext, addresses: Sequence[str]
) -> list[ThreadingHTTPServer]:
    """HTTP on port 80 and HTTPS on 443 of each address."""
    servers = []
    for address, port in product(addresses, (80, 443)):
        server = ThreadingHTTPServer((address, port), partial(Site, directory=str(folder)))
        if port == 443:
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
    return servers


class Runner:
    def __init__(self, scratch: Path, trust: dict[str, str]) -> None:
        self._proxy = Proxy(Names())
        self._scratch = scratch
        home = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "GIT_TERMINAL_PROMPT": "0",
            "PYTHONPATH": str(ROOT),
        }
        self._env = home | {"GIT_CONFIG_NOSYSTEM": "1"} | trust

    async def run(self, case: ClientCase) -> dict[str, object]:
        session = Session("run", allow("a.example", "*.sub.example", "private.example"),
                          limits=EgressLimits(head_seconds=5))  # fmt: skip
        async with AsyncExitStack() as stack:
            if case.mode in ("loopback", "wrong token"):
                env = await stack.enter_async_context(self._proxy.loopback(session))
                if case.mode == "wrong token":
                    env = {
                        name: value.replace(session.token, "x" * 43) for name, value in env.items()
                    }
                process = await self._start(case.command, env)
            else:
                env = proxy_env() if case.mode == "variables" else {}
                process = await self._start_inside(case.command, env, session, stack)
            out, err = await asyncio.wait_for(process.communicate(), 30)
        return {
            "name": case.name,
            "code": process.returncode,
            "out": out.decode(errors="replace"),
            "err": err.decode(errors="replace"),
            "rows": [(r.allowed, r.reason, r.via, r.host, r.port) for r in session.audit.rows],
        }

    async def _start(
        self, command: list[str], env: dict[str, str], fds: tuple[int, ...] = ()
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command,
            env=self._env | env,
            cwd=self._scratch,
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    async def _start_inside(
        self, command: list[str], env: dict[str, str], session: Session, stack: AsyncExitStack
    ) -> asyncio.subprocess.Process:
        ours, theirs = socket.socketpair()
        listeners = json.dumps([(one.kind, one.address, one.port) for one in INSIDE_LISTENERS])
        resolv_conf = self._scratch / "resolv.conf"
        resolv_conf.write_text(RESOLV_CONF)
        inside = [sys.executable, "-m", "tests.integration.egress.inside"]
        handed = [str(theirs.fileno()), listeners, str(resolv_conf)]
        wrapped = ["unshare", "--mount", *inside, *handed, *command]
        with ours, theirs:
            process = await self._start(wrapped, env, (theirs.fileno(),))
            theirs.close()
            _, fds, _, _ = await asyncio.to_thread(socket.recv_fds, ours, 1, len(INSIDE_LISTENERS))
            for fd, one in zip(fds, INSIDE_LISTENERS, strict=True):
                work = self._proxy.serve(socket.socket(fileno=fd), session, one.role)
                task = asyncio.create_task(work)
                stack.push_async_callback(asyncio.wait, {task})
                stack.callback(task.cancel)
            ours.send(b"x")
        return process


async def main() -> None:
    loopback_up()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        authority = trustme.CA()
        pem = scratch / "ca.pem"
        authority.cert_pem.write_to_path(str(pem))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("a.example", "b.example", "*.sub.example").configure_cert(context)
        make_site(scratch / "site")
        start_servers(scratch / "site", context, (ALLOWED, FORBIDDEN))
        variables = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO")
        runner = Runner(scratch, dict.fromkeys(variables, str(pem)))
        for case in CASES:
            if shutil.which(case.command[0]) is None:
                continue
            print(json.dumps(await runner.run(case)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
