import ipaddress
import socket
import threading

import pytest

from io_harness.sandbox.egress.hosts import canonical_host
from io_harness.sandbox.egress.resolver import NotResolved, SystemResolver

NAME = canonical_host("a.example")


async def test_the_systems_answers_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, str]] = []

    def getaddrinfo(host: object, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append((host, threading.current_thread().name))
        return [
            (socket.AF_INET6, 1, 6, "", ("2606:4700::1111", 0, 0, 0)),
            (socket.AF_INET, 1, 6, "", ("1.1.1.1", 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    found = await SystemResolver().resolve(NAME)
    assert found == tuple(map(ipaddress.ip_address, ("2606:4700::1111", "1.1.1.1")))
    assert asked[0][0] == "a.example"
    assert asked[0][1].startswith("egress-resolver")


@pytest.mark.parametrize("error", [socket.gaierror(-2, "no such name"), UnicodeError("too long")])
async def test_what_the_system_can_not_find_is_not_resolved(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(NotResolved, match=r"a\.example"):
        await SystemResolver().resolve(NAME)


async def test_names_of_the_hosts_own_file_are_found() -> None:
    found = await SystemResolver().resolve(canonical_host("localhost"))
    assert all(address.is_loopback for address in found)
    assert found
