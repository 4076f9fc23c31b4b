"""A name server for the inside of a network namespace. No query leaves.

A name that the rules could allow gets an invented address in 127.1.0.0/16, where the capture
listeners wait; every other name does not exist.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from io_harness.sandbox.egress.audit import Via
from io_harness.sandbox.egress.decision import Denied, Reason, by_verdict
from io_harness.sandbox.egress.hosts import BadHost, Target, address_of, canonical_host
from io_harness.sandbox.egress.rules import DEFAULT_PORTS, Effect
from io_harness.sandbox.egress.session import Session
from io_harness.sandbox.log import get_logger

log = get_logger(__name__)

_TTL = 60
_MAX_QUERY = 4096


async def answer_queries(sock: socket.socket, session: Session) -> None:
    """Answer on a bound UDP socket until cancelled.

    Queries above the session's rate stay in the socket's buffer and are dropped there by the
    kernel, so that a flood costs the worker little.
    """
    loop = asyncio.get_running_loop()
    pause = 1 / session.limits.queries_per_second
    told: set[str] = set()
    while True:
        wire, sender = await loop.sock_recvfrom(sock, _MAX_QUERY)
        if (reply := answer(wire, session, told)) is not None:
            try:
                await loop.sock_sendto(sock, reply, sender)
            except OSError as error:
                # The program that asked is gone, or its port can't be reached.
                log.debug("DNS reply not delivered", error=str(error))
        await asyncio.sleep(pause)


def answer(wire: bytes, session: Session, told: set[str]) -> bytes | None:
    """The reply to one query, or None when the bytes deserve none.

    Args:
        told: refused names that have their audit row; a resolver asks for each several times.
    """
    try:
        query = dns.message.from_wire(wire)
    except (dns.exception.DNSException, ValueError):
        return None
    if query.flags & dns.flags.QR:
        return None
    reply = dns.message.make_response(query, recursion_available=True)
    if query.opcode() != dns.opcode.QUERY or len(query.question) != 1:
        reply.set_rcode(dns.rcode.NOTIMP)
        return reply.to_wire()
    question = query.question[0]
    if question.rdclass != dns.rdataclass.IN:
        reply.set_rcode(dns.rcode.REFUSED)
        return reply.to_wire()
    name = question.name.to_text(omit_final_dot=True)
    found = _address_for(name, session)
    if isinstance(found, Denied):
        out_of_names = found.reason is Reason.LIMIT
        reply.set_rcode(dns.rcode.SERVFAIL if out_of_names else dns.rcode.NXDOMAIN)
        _tell_once(found, session, told)
    elif question.rdtype in (dns.rdatatype.A, dns.rdatatype.ANY):
        reply.answer.append(dns.rrset.from_text(question.name, _TTL, "IN", "A", found))
    return reply.to_wire()


def _address_for(name: str, session: Session) -> str | Denied:
    """An invented address if the rules could allow a port that is captured."""
    try:
        host = canonical_host(name)
    except BadHost as error:
        return Denied(name[:253], 0, Reason.BAD_HOST, detail=str(error))
    if address_of(host) is not None:
        return Denied(host, 0, Reason.BAD_HOST, detail="an address is no name")
    verdicts = [session.rules.judge(Target(host, port)) for port in sorted(DEFAULT_PORTS)]
    if all(verdict.effect is Effect.DENY for verdict in verdicts):
        refused = by_verdict(Target(host, 443), verdicts[-1])
        # Programs that use the proxy don't ask here, whatever the port.
        return replace(
            refused, port=0, detail="asked for past the proxy, which serves 80 and 443 only"
        )
    if (address := session.invent_address(host)) is not None:
        return address
    return Denied(host, 0, Reason.LIMIT, detail=f"{session.limits.names} names have an address")


def _tell_once(denied: Denied, session: Session, told: set[str]) -> None:
    if denied.host not in told and len(told) < session.limits.names:
        told.add(denied.host)
        session.audit.record(Via.DNS, denied)
