"""What real programs do through the proxy, with and without proxy variables."""

# ruff: noqa: E501 - a table reads best with few breaks in a row

import sys
from dataclasses import dataclass
from itertools import product
from typing import Literal

Mode = Literal["variables", "captured", "loopback", "wrong token"]
"""variables: proxy variables in a namespace. captured: none there, so that names are answered by
the proxy's name server. loopback: variables with the token, without a namespace of its own."""

_PYTHON = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
"""
# Node before 22.21 knows no proxy variables: with them set, this does what a library would do.
_NODE = """
const http = require('http'), https = require('https'), tls = require('tls')
const url = new URL(process.argv[1])
const proxy = process.env.http_proxy && new URL(process.env.http_proxy)
const fail = error => { console.error(String(error)); process.exit(1) }
const show = reply => {
  let text = ''
  reply.on('data', part => text += part)
  reply.on('end', () => { console.log(text); process.exit(reply.statusCode === 200 ? 0 : 1) })
}
const headers = {}
let to
if (proxy) {
  to = { host: proxy.hostname, port: proxy.port, headers }
  const user = Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64')
  if (proxy.username) headers['Proxy-Authorization'] = 'Basic ' + user
}
if (!proxy) {
  fetch(url).then(r => r.text().then(t => { console.log(t); process.exit(r.ok ? 0 : 1) }), fail)
} else if (url.protocol === 'http:') {
  headers.Host = url.host
  http.get({ ...to, path: url.href }, show).on('error', fail)
} else {
  const connect = http.request({ ...to, method: 'CONNECT', path: url.hostname + ':443' })
  connect.on('error', fail).on('connect', (reply, socket) => {
    if (reply.statusCode !== 200) fail(reply.statusCode)
    const createConnection = () => tls.connect({ socket, servername: url.hostname })
    https.get(url, { createConnection }, show).on('error', fail)
  }).end()
}
"""

CLIENTS: dict[str, list[str]] = {
    "curl": ["curl", "-sS", "--fail", "--max-time", "10"],
    "python": [sys.executable, "-c", _PYTHON],
    "node": ["node", "-e", _NODE],
    "git": ["git", "ls-remote"],
}


@dataclass(frozen=True)
class ClientCase:
    """One program run.

    Attributes:
        succeeds: whether the program must end with 0; a success has "hello" or a ref in its output.
        reason: of the refusal that the audit log must hold.
    """

    name: str
    command: list[str]
    mode: Mode
    succeeds: bool
    reason: str | None = None


def _url(client: str, scheme: str, host: str) -> str:
    return f"{scheme}://{host}/{'repo.git' if client == 'git' else 'hello.txt'}"


def _matrix() -> list[ClientCase]:
    cases = []
    hosts: list[tuple[str, dict[Mode, str | None]]] = [
        ("a.example", {"variables": None, "captured": None}),
        ("other.test", {"variables": "no_rule", "captured": "no_rule"}),
        ("private.example", {"variables": "address_refused", "captured": "address_refused"}),
    ]
    for client, scheme, (host, reasons) in product(CLIENTS, ("http", "https"), hosts):
        for mode, reason in reasons.items():
            name = f"{client} {scheme} {host} {mode}"
            command = [*CLIENTS[client], _url(client, scheme, host)]
            cases.append(ClientCase(name, command, mode, reason is None, reason))
    return cases


def _tokens() -> list[ClientCase]:
    modes: tuple[Mode, ...] = ("loopback", "wrong token")
    return [
        ClientCase(
            f"{client} {scheme} {mode}",
            [*CLIENTS[client], _url(client, scheme, "a.example")],
            mode,
            mode == "loopback",
            None if mode == "loopback" else "bad_token",
        )
        for client, scheme, mode in product(CLIENTS, ("http", "https"), modes)
    ]  # fmt: skip


_CURL = CLIENTS["curl"]
_FORBIDDEN = "http://127.0.0.1/hello.txt"
CASES = [
    *_matrix(),
    *_tokens(),
    ClientCase("curl tunnels to port 80", [*_CURL, "-p", "http://a.example/hello.txt"], "variables", True),
    ClientCase("curl with HTTP/1.0", [*_CURL, "-0", "http://a.example/hello.txt"], "variables", True),
    ClientCase("curl follows a redirect to another allowed host",
               [*_CURL, "-L", "http://a.example/to-b"], "variables", True),
    ClientCase("curl follows a redirect to a forbidden service",
               [*_CURL, "-L", "--noproxy", "", "http://a.example/to-inside"], "variables", False, "no_rule"),
    ClientCase("curl goes past the variables by address",
               [*_CURL, "--noproxy", "*", _FORBIDDEN], "variables", False, "unknown_address"),
    ClientCase("curl tells the proxy the forbidden address",
               [*_CURL, "--noproxy", "", _FORBIDDEN], "variables", False, "no_rule"),
    ClientCase("curl connects to an allowed host under another name",
               [*_CURL, "--connect-to", "b.example:443:a.example:443", "https://b.example/hello.txt"],
               "captured", False, "sni_mismatch"),
    ClientCase("curl sends another host header",
               [*_CURL, "-H", "Host: b.example", "http://a.example/hello.txt"], "captured", False,
               "host_mismatch"),
    ClientCase("the forbidden service without a sandbox", [*_CURL, _FORBIDDEN], "loopback", True),
]  # fmt: skip
