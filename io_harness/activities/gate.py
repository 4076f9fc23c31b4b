"""The gate: the one place that decides, right before an effect."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from io_harness.workflows.contract import Approval, Command
from io_harness.workflows.payloads import ApprovalRequest, Grant, arguments_digest
from io_harness.workflows.policy import Policy
from io_harness.workflows.rules import STRICTNESS, Act, Reason

from .shell import Target, shell, targets_of
from .suggestion import suggest
from .withheld import WithheldFiles

PreviewKind = Literal["diff", "command", "text"]

_WITHHELD = WithheldFiles()


class Refused(Exception):
    """The policy forbids the act. It had no effect."""

    def __init__(self, act: Act, target: str, reason: Reason) -> None:
        super().__init__(f"{act} {target}: denied by {reason.rule!r} of layer {reason.layer!r}")
        self.act: Act = act
        self.target = target
        self.reason = reason


class ApprovalNeeded(Exception):
    """A human is to be asked first. The act had no effect."""

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(f"{request.act} {request.target}: needs approval")
        self.request = request


@dataclass(frozen=True)
class CommandLine:
    """A command, a shell's or an argument vector, and where it will run."""

    command: Command
    root: Path
    """The workspace, as the command sees it."""
    home: str = "/"
    """Value of HOME, as the command sees it."""
    folder: str = ""
    """Where it starts, relative to the workspace."""

    @property
    def text(self) -> str:
        return self.command if isinstance(self.command, str) else " ".join(self.command)

    def targets(self) -> tuple[Target, ...]:
        """The acts it is made of."""
        root = os.path.realpath(self.root)
        return targets_of(
            self.command, root=root, home=self.home, folder=self.folder,
            bash=os.path.basename(shell()) == "bash", resolve=os.path.realpath,
        )  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What the policy says about one act."""

    act: Act
    target: str
    reason: Reason


class Gate:
    """Decides by the run's policy, what humans granted for this call, and whether they can be asked."""

    def __init__(
        self,
        policy: Policy,
        grants: Iterable[Grant] = (),
        *,
        approval: Approval | None = None,
        denied: Iterable[str] = (),
    ) -> None:
        """`denied`: digests of requests to which a human said no."""
        self._policy = policy.at_home(os.path.expanduser("~"))
        grants = tuple(grants)
        self._denied = frozenset(denied)
        self._granted = frozenset((grant.of, grant.digest) for grant in grants)
        self._answers = {grant.digest: grant.answer for grant in grants if grant.of == "request"}
        self._can_ask = (approval or Approval()).can_ask

    @property
    def policy(self) -> Policy:
        """The policy, with `~` resolved."""
        return self._policy

    def explain(self, act: Act, target: str | CommandLine, *, links: int = 1) -> Verdict:
        """The strictest of what the policy says about each act that this is made of.

        Args:
            target: resolved path (relative to the workspace, absolute outside it), simple command as
                shell words, canonical host:port, or a command line that is to be taken apart.
            links: how many names the open file has; a file with several may be one that is denied
                under another name.
        """
        verdicts = self.verdicts(act, target, links=links)
        return max(verdicts, key=lambda v: STRICTNESS[v.reason.effect])

    def verdicts(
        self, act: Act, target: str | CommandLine, *, links: int = 1
    ) -> tuple[Verdict, ...]:
        """What the policy says about each act that this is made of."""
        if isinstance(target, str):
            return (self._verdict(act, target, links),)
        parts = list(target.targets())
        if not any(part == "exec" for part, _ in parts):
            # Nothing but assignments or redirections: still a command that is run.
            parts.append(("exec", "true"))
        return tuple(self._verdict(part, inner) for part, inner in parts)

    def readable(self, path: str) -> bool:
        """Whether a listing or search may show the resolved path. What asks is not shown."""
        return self._verdict("read", path).reason.effect == "allow"

    def withheld(self, root: Path) -> tuple[Path, ...]:
        """Files and folders of the workspace that may not be read, for the sandbox to hide from
        commands: the topmost ones."""
        return _WITHHELD.find(root, self._policy)

    @property
    def can_ask(self) -> bool:
        """Whether there is a human to be asked."""
        return self._can_ask

    def answer_to(self, digest: str) -> str | None:
        """A human's words to the question of that digest; None where none were given."""
        return self._answers.get(digest)

    def require(
        self,
        act: Act,
        target: str | CommandLine,
        *,
        tool: str,
        arguments: dict[str, JsonValue],
        preview: str,
        preview_kind: PreviewKind,
        links: int = 1,
    ) -> None:
        """Return if the act may happen now. `target` and `links` as in `explain`.

        Raises:
            Refused: the policy denies it, or asks where nobody can be asked.
            ApprovalNeeded: a human is to be asked, and no grant covers this call.
        """
        verdicts = self.verdicts(act, target, links=links)
        worst = max(verdicts, key=lambda v: STRICTNESS[v.reason.effect])
        if worst.reason.effect == "deny":
            raise Refused(worst.act, worst.target, worst.reason)
        if worst.reason.effect == "allow":
            return
        shown = target if isinstance(target, str) else target.text
        digest = request_digest(act, shown, arguments, preview)
        if digest in self._denied:
            reason = Reason(effect="deny", rule="a human, who was asked", layer="approval")
            raise Refused(worst.act, worst.target, reason)
        if ("request", digest) in self._granted:
            return
        if ("arguments", arguments_digest(arguments)) in self._granted:
            return
        asked: list[Target] = [(v.act, v.target) for v in verdicts if v.reason.effect == "ask"]
        raise ApprovalNeeded(
            ApprovalRequest(
                act=act,
                target=shown,
                tool=tool,
                why=worst.reason,
                preview=preview,
                preview_kind=preview_kind,
                digest=digest,
                suggestion=suggest(asked) if links == 1 else None,
            )
        )

    def _verdict(self, act: Act, target: str, links: int = 1) -> Verdict:
        reason = self._policy.explain(act, target)
        if links > 1 and reason.effect == "allow":
            rule = f"a file with {links} names (hard links) may be another one"
            reason = Reason(effect="ask", rule=rule, layer="built-in")
        if reason.effect == "ask" and not self._can_ask:
            rule = f"{reason.rule}; nobody can be asked in this run"
            reason = Reason(effect="deny", rule=rule, layer=reason.layer)
        return Verdict(act, target, reason)


def request_digest(act: str, target: str, arguments: dict[str, JsonValue], preview: str) -> str:
    """sha256 of everything that a grant is bound to."""
    shown = {"act": act, "target": target, "arguments": arguments, "preview": preview}
    encoded = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(encoded.encode("utf-8", "surrogatepass")).hexdigest()
