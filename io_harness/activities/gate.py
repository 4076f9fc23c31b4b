"""The gate: the one place that decides, right before an effect."""

import hashlib
import json
from collections.abc import Iterable
from typing import Literal

from pydantic import JsonValue

from io_harness.workflows.contract import Approval
from io_harness.workflows.payloads import ApprovalRequest, Grant, arguments_digest
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import Act, Reason, Rule

PreviewKind = Literal["diff", "command", "text"]


class Refused(Exception):
    """The policy forbids the act. It had no effect."""

    def __init__(self, act: Act, target: str, reason: Reason) -> None:
        super().__init__(f"{act} {target}: refused by {reason.rule!r} of layer {reason.layer!r}")
        self.act: Act = act
        self.target = target
        self.reason = reason


class ApprovalNeeded(Exception):
    """A human is to be asked first. The act had no effect."""

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(f"{request.act} {request.target}: needs approval")
        self.request = request


class Gate:
    """Decides by the run's policy, what humans granted for this call, and whether they can be asked."""

    def __init__(
        self, policy: Policy, grants: Iterable[Grant] = (), *, approval: Approval | None = None
    ) -> None:
        self._policy = policy
        self._granted = frozenset((grant.of, grant.digest) for grant in grants)
        self._can_ask = (approval or Approval()).can_ask

    def explain(self, act: Act, target: str) -> Reason:
        """What the policy says, with an ask turned into deny where nobody can be asked."""
        reason = self._policy.explain(act, target)
        if reason.effect == "ask" and not self._can_ask:
            rule = f"{reason.rule}; nobody can be asked in this run"
            return Reason(effect="deny", rule=rule, layer=reason.layer)
        return reason

    def readable(self, path: str) -> bool:
        """Whether a listing or search may show the resolved path. What asks is not shown."""
        return self.explain("read", path).effect == "allow"

    def require(
        self,
        act: Act,
        target: str,
        *,
        tool: str,
        arguments: dict[str, JsonValue],
        preview: str,
        preview_kind: PreviewKind,
    ) -> None:
        """Return if the act may happen now. `target` is a resolved path (relative to the workspace,
        absolute outside it), one simple command as shell words, or a canonical host:port.

        Raises:
            Refused: the policy denies it, or asks where nobody can be asked.
            ApprovalNeeded: a human is to be asked, and no grant covers this call.
        """
        reason = self.explain(act, target)
        if reason.effect == "deny":
            raise Refused(act, target, reason)
        if reason.effect == "allow":
            return
        digest = request_digest(act, target, arguments, preview)
        if ("request", digest) in self._granted:
            return
        if ("arguments", arguments_digest(arguments)) in self._granted:
            return
        raise ApprovalNeeded(
            ApprovalRequest(
                act=act,
                target=target,
                tool=tool,
                why=reason,
                preview=preview,
                preview_kind=preview_kind,
                digest=digest,
                suggestion=suggest(((act, target),)),
            )
        )


def suggest(asked: Iterable[tuple[Act, str]]) -> Rule | None:
    """The narrowest rule under which these targets would not have been asked about."""
    return None


def request_digest(act: Act, target: str, arguments: dict[str, JsonValue], preview: str) -> str:
    """sha256 of everything that a grant is bound to."""
    shown = {"act": act, "target": target, "arguments": arguments, "preview": preview}
    encoded = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(encoded.encode("utf-8", "surrogatepass")).hexdigest()
