"""The egress proxy: what a run may reach, decided in one place and dialled as decided.

Use: make one `Proxy` per worker and one `Session` per run, then await `Proxy.serve(sock, session,
role)` for each socket of `INSIDE_LISTENERS` that was created in a command's network namespace, or
enter `Proxy.loopback(session)` where there are no namespaces. `EgressTransport` holds the
harness's own connections to the same rules.

Limits of what it can do: TLS is not opened, so that an allowed host which others share (a content
delivery network, a hosting service) is a bridge to whatever that host serves. The name in the
ClientHello is checked, the Host header and any encrypted ClientHello inside are not. Behind a
NAT64 prefix of its own choice a network can hide private addresses in public-looking ones.
"""

from io_harness.sandbox.egress.addresses import Network, refusal
from io_harness.sandbox.egress.audit import AuditLog, AuditRow, Via
from io_harness.sandbox.egress.decision import (
    Allowed,
    Ask,
    Decision,
    Denied,
    Question,
    Reason,
    decide,
)
from io_harness.sandbox.egress.hosts import (
    Address,
    BadHost,
    Host,
    Target,
    canonical_host,
    parse_authority,
)
from io_harness.sandbox.egress.limits import (
    INSIDE_LISTENERS,
    RESOLV_CONF,
    EgressLimits,
    InsideListener,
    Role,
    proxy_env,
)
from io_harness.sandbox.egress.proxy import Proxy
from io_harness.sandbox.egress.resolver import NotResolved, Resolver, SystemResolver
from io_harness.sandbox.egress.rules import BadRule, Effect, Judge, Rule, Rules, Verdict
from io_harness.sandbox.egress.session import LimitExceeded, Session, Usage

__all__ = [
    "INSIDE_LISTENERS",
    "RESOLV_CONF",
    "Address",
    "Allowed",
    "Ask",
    "AuditLog",
    "AuditRow",
    "BadHost",
    "BadRule",
    "Decision",
    "Denied",
    "Effect",
    "EgressLimits",
    "Host",
    "InsideListener",
    "Judge",
    "LimitExceeded",
    "Network",
    "NotResolved",
    "Proxy",
    "Question",
    "Reason",
    "Resolver",
    "Role",
    "Rule",
    "Rules",
    "Session",
    "SystemResolver",
    "Target",
    "Usage",
    "Verdict",
    "Via",
    "canonical_host",
    "decide",
    "parse_authority",
    "proxy_env",
    "refusal",
]
