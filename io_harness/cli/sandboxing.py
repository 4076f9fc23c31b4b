"""What `io-harness sandbox` does."""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import get_args

import click

from io_harness import sandbox
from io_harness.sandbox import Limits, Mode, NetNone, NetProxy, Plan
from io_harness.sandbox.egress import BadRule, Proxy, Rules, Session
from io_harness.sandbox.network import through_proxy

from .exits import CommandFailed, Exit

_COLOURS = {"enforced": "green", "partial": "yellow", "advisory": "yellow", "none": "red"}

__all__ = ["Limits", "mode_named", "run_held", "show_levels"]


def mode_named(name: str) -> Mode:
    return next(mode for mode in get_args(Mode) if mode == name)


async def run_held(
    argv: tuple[str, ...],
    *,
    hosts: tuple[str, ...],
    write: tuple[Path, ...],
    read: tuple[Path, ...],
    mode: Mode,
    env: tuple[str, ...],
    limits: Limits,
    backend: str | None,
    weak: bool,
) -> Exit | None:
    """Ends this process with the command's exit code, or 128 more than its signal's number."""
    here = Path.cwd()
    plan = Plan(
        argv=argv,
        cwd=here,
        workspace=here,
        mode=mode,
        read_only_roots=tuple(path.resolve() for path in read),
        writable_roots=tuple(path.resolve() for path in write),
        protected=sandbox.protected_in(here),
        env=sandbox.base_env(env),
        limits=limits,
        net=_network(hosts),
        stdin=None if sys.stdin.isatty() else sys.stdin.buffer.read(),
        require=frozenset() if weak else sandbox.DEFAULT_REQUIRE,
    )
    try:
        done = await sandbox.run(plan, backend=backend, on_output=_pass_on)
    except sandbox.SandboxError as error:
        raise CommandFailed(Exit.SANDBOX, str(error)) from error
    if done.cause == "exited" and done.exit_code is not None:
        _leave(done.exit_code)
    if done.cause != "signalled":
        message = f"stopped at its limit of {done.cause} after {done.seconds:.1f} s"
        raise CommandFailed(Exit.SANDBOX, message)
    _leave(128 + (done.signal or 0))
    return None


def _network(hosts: tuple[str, ...]) -> NetNone | NetProxy:
    if not hosts:
        return NetNone()
    try:
        rules = Rules.allowing(*hosts, layer="command line")
    except BadRule as error:
        raise CommandFailed(Exit.USAGE, str(error)) from error
    return through_proxy(Proxy(), Session("sandbox", rules))


def _pass_on(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _leave(code: int) -> None:
    """The command's code is any number, not only those of `Exit`."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    raise SystemExit(code)


async def show_levels(as_json: bool) -> None:
    """Every backend of this system with the level of each property, or why it can't be used."""
    found: list[dict[str, object]] = []
    for name in sandbox.backend_names():
        if (objection := sandbox.objection(name)) is not None:
            found.append({"backend": name, "works": False, "reason": objection})
            continue
        try:
            isolation = await sandbox.probe(name)
        except sandbox.SandboxError as error:
            found.append({"backend": name, "works": False, "reason": str(error)})
            continue
        levels = {key: isolation.levels[key] for key in sandbox.PROPERTIES}
        notes = list(isolation.notes)
        found.append({"backend": name, "works": True, "levels": levels, "notes": notes})
    if as_json:
        user = os.geteuid() if hasattr(os, "geteuid") else None
        click.echo(json.dumps({"platform": sys.platform, "user": user, "backends": found}))
        return
    _table(found)


def _table(found: list[dict[str, object]]) -> None:
    working = [each for each in found if each["works"]]
    names = [str(each["backend"]) for each in working]
    click.echo(f"{'':18}" + "".join(f"{name:>20}" for name in names))
    for key in sandbox.PROPERTIES:
        line = f"{key:18}"
        for each in working:
            levels = each["levels"]
            level = levels[key] if isinstance(levels, dict) else ""
            line += click.style(f"{level:>20}", fg=_COLOURS[level])
        click.echo(line)
    for each in found:
        if not each["works"]:
            click.echo(f"{each['backend']} can't be used: {each['reason']}")
    best = names[0] if names else "none"
    click.echo(f"\nCommands run in {best}, the first that can carry out what is asked.")
