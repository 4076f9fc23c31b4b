"""A name server for the inside of a network namespace. No query leaves.

A name that the rules could allow gets an invented address in 127.1.0.0/16, where the capture
listeners wait; every other name does not exist.
"""

from __future__ import annotations

import asyncio
import logging
import socket

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from io_harness.sandbox.egress.audit import Via
from io_harness.sandbox.egress.decision import Denied, Reason
from io_harness.sandbox.egress.hosts import BadHost, address_of, canonical_host
from io_harness.sandbox.egress.session import Session

log = logging.getLogger(__name__)

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
                log.debug("a DNS reply was not delivered: %s", error)
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
    address, why = _address_for(name, session)
    if why is not None:
        reply.set_rcode(dns.rcode.NXDOMAIN if address is None else dns.rcode.SERVFAIL)
        _tell_once(Denied(name[:253], 0, why), session, told)
    elif address is not None and question.rdtype in (dns.rdatatype.A, dns.rdatatype.ANY):
        reply.answer.append(dns.rrset.from_text(question.name, _TTL, "IN", "A", address))
    return reply.to_wire()


def _address_for(name: str, session: Session) -> tuple[str | None, Reason | None]:
    try:
        host = canonical_host(name)
    except BadHost:
        return None, Reason.BAD_HOST
    if address_of(host) is not None or not session.rules.may_reach(host):
        return None, Reason.NO_RULE
    address = session.invent_address(host)
    return (address, None) if address is not None else ("", Reason.LIMIT)


def _tell_once(denied: Denied, session: Session, told: set[str]) -> None:
    if denied.host not in told and len(told) < session.limits.names:
        told.add(denied.host)
        session.audit.record(Via.DNS, denied)
