"""Runs the escape suite and prints one line of JSON for each case and backend."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys

from io_harness import sandbox

from .expected import UNGUARDED
from .inside import CASES, command, load
from .scene import host

Outcomes = dict[str, dict[str, str]]
"""By case: outcome and detail."""


async def held(backend: str) -> Outcomes:
    """Every attack, in this backend. Raises when something outside was changed all the same."""
    with host(held=True) as scene:
        os.environ["ESCAPE_SECRET"] = scene.env_secret
        before = scene.outside_digest()
        try:
            done = await sandbox.run(scene.plan(guarded=backend not in UNGUARDED), backend=backend)
        finally:
            del os.environ["ESCAPE_SECRET"]
        if done.exit_code != 0:
            raise AssertionError(f"{backend}: {done.cause} {done.exit_code}: {done.stdout.text()}")
        outcomes = parse(done.stdout.text())
        told = any(
            report["outcome"] == "breached" and CASES[name].kind in ("writing", "observing")
            for name, report in outcomes.items()
        )
        if before != scene.outside_digest() and not told:
            raise AssertionError(f"{backend}: something outside the workspace has changed")
        return outcomes


def control() -> Outcomes:
    """Every attack with nothing in its way: as a plain child process."""
    with host(held=False) as scene:
        leaked = os.open(scene.root / "outside" / "inherit_descriptor", os.O_RDONLY)
        try:
            done = subprocess.run(
                command(sys.executable, str(scene.facts_file)),
                cwd=scene.workspace,
                env={
                    "PATH": os.defpath,
                    "HOME": str(scene.root / "home"),
                    "SECRET": scene.env_secret,
                },
                pass_fds=(leaked,),
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
        finally:
            os.close(leaked)
        return parse(done.stdout)


def parse(output: str) -> Outcomes:
    found: Outcomes = {}
    for line in output.splitlines():
        report = json.loads(line)
        found[report.pop("case")] = report
    missing = set(load()) - set(found)
    if missing:
        raise AssertionError(f"no report of {sorted(missing)}; output ends {output[-500:]!r}")
    return found


def unproven(outcomes: Outcomes) -> dict[str, str]:
    """Cases whose control did not succeed although it should have on this machine."""
    root = os.geteuid() == 0
    return {
        name: outcomes[name]["detail"] or outcomes[name]["outcome"]
        for name, each in CASES.items()
        if outcomes[name]["outcome"] != "breached"
        and (each.needs == "user" or (each.needs == "root" and root))
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.escape", description=__doc__)
    parser.add_argument("backends", nargs="*", help="default: every one that works here")
    parser.add_argument("--no-control", action="store_true", help="only the held runs")
    given = parser.parse_args()
    load()
    names: list[str] = given.backends or [
        name
        for name in sandbox.backend_names()
        if name.startswith("linux-") and sandbox.objection(name) is None
    ]
    runs: dict[str, Outcomes] = {} if given.no_control else {"control": control()}
    for name in names:
        runs[name] = asyncio.run(held(name))
    for run, outcomes in runs.items():
        for name, report in outcomes.items():
            line = {"backend": run, "kind": CASES[name].kind, "case": name, **report}
            sys.stdout.write(json.dumps(line) + "\n")
