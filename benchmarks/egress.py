"""What the egress proxy costs: dial latency and throughput against direct connections.

Run: python benchmarks/egress.py [--dials N] [--megabytes N] [--json]

Server, proxy and client are three processes on loopback. The kinds of dial take turns within one
run, so that a busy machine slows all of them alike; read the ratios, not the milliseconds. A dial is
everything up to the first echoed byte (or the refusal's status line), the connection's end included.
"""

import argparse
import asyncio
import ipaddress
import json
import multiprocessing
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from io_harness.sandbox.egress import Address, Host, Role, Rules, Session
from io_harness.sandbox.egress.listener import Listeners

HERE = "127.0.0.1"
CHUNK = 1 << 18


class Loopback:
    """A name server of one answer."""

    async def resolve(self, host: Host) -> Sequence[Address]:
        return [ipaddress.ip_address(HERE)]


def serve_bytes(ready: Connection) -> None:
    """Echo one byte, or send as many as asked for: the request is a decimal number and a newline."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        block = bytes(CHUNK)
        line = await reader.readline()
        if line.startswith(b"GET"):
            left = int(line.split()[1].rsplit(b"/", 1)[1])
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
        else:
            left = int(line)
        while left > 0:
            writer.write(block[:left])
            await writer.drain()
            left -= CHUNK
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, HERE, 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def serve_proxy(ready: Connection, port: int) -> None:
    async def main() -> None:
        rules = Rules.allowing(
            f"allowed.example:{port}", opened=(ipaddress.ip_network(f"{HERE}/32"),)
        )
        sock = socket.create_server((HERE, 0))
        sock.setblocking(False)
        ready.send(sock.getsockname()[1])
        session = Session("benchmark", rules)
        await Listeners(Loopback(), 100).accept(sock, session, Role.PROXY, None)

    asyncio.run(main())


def start(target: Callable[..., None], *args: int) -> tuple[multiprocessing.Process, int]:
    """Run `target` in a process of its own and wait for its port."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=target, args=(theirs, *args), daemon=True)
    process.start()
    return process, ours.recv()


def ask(port: int, request: bytes) -> socket.socket:
    sock = socket.create_connection((HERE, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(request)
    return sock


def connect(proxy: int, host: str, port: int) -> tuple[socket.socket, bytes]:
    sock = ask(proxy, b"CONNECT %s:%d HTTP/1.1\r\nHost: x\r\n\r\n" % (host.encode(), port))
    return sock, sock.recv(4096)


def dials(server: int, proxy: int, count: int) -> dict[str, list[float]]:
    """Seconds of each dial, by kind."""

    def direct() -> None:
        with ask(server, b"1\n") as sock:
            assert sock.recv(1) == b"\0"

    def allowed() -> None:
        sock, head = connect(proxy, "allowed.example", server)
        with sock:
            assert head.startswith(b"HTTP/1.1 200")
            sock.sendall(b"1\n")
            assert sock.recv(1) == b"\0"

    def refused() -> None:
        sock, head = connect(proxy, "refused.example", server)
        with sock:
            assert head.startswith(b"HTTP/1.1 403")

    kinds = {"direct": direct, "allowed": allowed, "refused": refused}
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(count + 20):
        for name, dial in kinds.items():
            began = time.perf_counter()
            dial()
            if turn >= 20:
                taken[name].append(time.perf_counter() - began)
    return taken


def drain(sock: socket.socket, size: int) -> None:
    buffer = bytearray(CHUNK)
    while size > 0:
        count = sock.recv_into(buffer)
        assert count
        size -= count


def throughput(server: int, proxy: int, size: int) -> dict[str, float]:
    """Megabytes per second, the best of three turns."""

    def direct() -> None:
        with ask(server, b"%d\n" % size) as sock:
            drain(sock, size)

    def tunnelled() -> None:
        sock, _ = connect(proxy, "allowed.example", server)
        with sock:
            sock.sendall(b"%d\n" % size)
            drain(sock, size)

    def forwarded() -> None:
        url = f"http://allowed.example:{server}/{size}"
        with ask(proxy, f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) as sock:
            drain(sock, size)

    best: dict[str, float] = {}
    for _ in range(3):
        for transfer in (direct, tunnelled, forwarded):
            began = time.perf_counter()
            transfer()
            rate = size / 1e6 / (time.perf_counter() - began)
            name = transfer.__name__
            best[name] = max(rate, best.get(name, 0))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dials", type=int, default=500, help="of each kind")
    parser.add_argument("--megabytes", type=int, default=200, help="of each transfer")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    server_process, server = start(serve_bytes)
    proxy_process, proxy = start(serve_proxy, server)
    try:
        taken = dials(server, proxy, options.dials)
        rates = throughput(server, proxy, options.megabytes * 1_000_000)
    finally:
        server_process.terminate()
        proxy_process.terminate()
    p50 = {name: 1000 * statistics.median(values) for name, values in taken.items()}
    p95 = {name: 1000 * statistics.quantiles(values, n=20)[-1] for name, values in taken.items()}
    more = p50["refused"] - p50["allowed"]
    result = {
        "dial_ms_p50": p50,
        "dial_ms_p95": p95,
        "dial_ratio_to_direct": {name: value / p50["direct"] for name, value in p50.items()},
        "refused_minus_allowed_ms": more,
        "throughput_mb_per_s": rates,
        "throughput_ratio_to_direct": {n: rate / rates["direct"] for n, rate in rates.items()},
        "target_met": more < 1,
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return 0
    print(f"{'dial':<12}{'p50 ms':>9}{'p95 ms':>9}{'x direct':>10}")
    for name in p50:
        print(f"{name:<12}{p50[name]:>9.3f}{p95[name]:>9.3f}{p50[name] / p50['direct']:>10.2f}")
    print(f"refused - allowed: {more:+.3f} ms (target: under 1 ms)\n")
    print(f"{'transfer':<12}{'MB/s':>9}{'x direct':>10}")
    for name, rate in rates.items():
        print(f"{name:<12}{rate:>9.0f}{rate / rates['direct']:>10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
