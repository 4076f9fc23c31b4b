"""The attacks that run inside: `main` tries them one by one, all or those that are named.

Each case is a function that returns True when it broke out. `OSError` and False mean that it was
held. Each runs in a process of its own and is reported as one line of JSON:
`{"case": ..., "outcome": "breached" | "held" | "error", "detail": ...}`.

Runs in any Python from 3.11 on, with nothing but the standard library: see `command`.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Scene = dict[str, Any]
Needs = Literal["user", "root", "feature"]
"""Who can do the act where nothing holds it: anybody, only root, or only some kernels."""
CASE_SECONDS = 20


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    needs: Needs
    act: Callable[[Scene], object]


CASES: dict[str, Case] = {}


def case(
    kind: str, needs: Needs = "user"
) -> Callable[[Callable[[Scene], object]], Callable[[Scene], object]]:
    def register(act: Callable[[Scene], object]) -> Callable[[Scene], object]:
        CASES[act.__name__] = Case(act.__name__, kind, needs, act)
        return act

    return register


MODULES = ("reading", "writing", "observing", "privilege", "network", "later")


def load() -> dict[str, Case]:
    """All cases, by name."""
    for module in MODULES:
        importlib.import_module(f".attacks.{module}", __package__)
    return CASES


def run_one(each: Case, scene: Scene) -> dict[str, str]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        enter_copy(each, scene)
        os.write(write, json.dumps(_try(each, scene)).encode())
        os._exit(0)
    os.close(write)
    deadline = time.monotonic() + CASE_SECONDS
    data = b""
    while time.monotonic() < deadline:
        if select.select([read], [], [], 0.2)[0]:
            chunk = os.read(read, 65536)
            if not chunk:
                break
            data += chunk
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    if data:
        return dict(json.loads(data))
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSYS:
        return {"outcome": "held", "detail": "killed by seccomp"}
    return {"outcome": "error", "detail": f"ended with status {status}"}


def enter_copy(each: Case, scene: Scene) -> None:
    """Where nothing holds the attacks, each gets a copy of the workspace, or they meet each
    other's ruins."""
    template = scene.get("template")
    if template is None:
        return
    copy = f"{template}-{each.name}"
    shutil.copytree(template, copy, symlinks=True, ignore=shutil.ignore_patterns("planted-socket"))
    os.symlink(f"{template}/planted-socket", f"{copy}/planted-socket")
    os.chdir(copy)


def _try(each: Case, scene: Scene) -> dict[str, str]:
    try:
        broke = each.act({**scene, "case": each.name})
    except OSError as error:
        return {"outcome": "held", "detail": str(error)}
    except Exception:  # noqa: BLE001 - the report of a fault in the case itself
        return {"outcome": "error", "detail": traceback.format_exc()[-1500:]}
    return {"outcome": "breached" if broke else "held", "detail": ""}


def main() -> None:
    with open(sys.argv[1]) as file:
        scene = json.load(file)
    cases = load()
    for name in sys.argv[2:] or list(cases):
        result = {"case": name, **run_one(cases[name], scene)}
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


def command(python: str, scene_file: str, *names: str) -> tuple[str, ...]:
    """What runs the attacks, wherever this package's directory can be read."""
    here = os.path.dirname(os.path.abspath(__file__))
    # By its own place alone: the directory above may be out of sight.
    start = (
        "import sys; from importlib.util import spec_from_file_location, module_from_spec; "
        f"spec = spec_from_file_location('escape', {here + '/__init__.py'!r}, "
        f"submodule_search_locations=[{here!r}]); "
        "sys.modules['escape'] = module_from_spec(spec); "
        "from escape.inside import main; main()"
    )
    return (python, "-I", "-S", "-c", start, scene_file, *names)
