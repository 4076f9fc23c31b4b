"""What other scripts and tests of the repository measure, in one place."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from benchmarks.arena import ROOT
from benchmarks.report import Cell, Section, Target

_SHOWN_BY_TESTS = {
    "edit fidelity": "tests/unit/tools/test_fidelity.py",
    "bypass corpus": "tests/unit/policy/test_bypass_corpus.py",
}


_LISTENING = "linux-bubblewrap, listener"


async def sandbox(rounds: int) -> Section:
    found: dict[str, list[float]] = json.loads(
        await _python("benchmarks/sandbox.py", "launch", "--json", "--rounds", str(rounds))
    )
    bases = ("a bare subprocess", "plain bubblewrap with a network namespace")
    targets = [
        Target(
            f"with a listener at most {most} times {base}, median", f"{ratio:.2f}", ratio <= most
        )
        for base, most, ratio in zip(bases, (8, 1.3), found.get(_LISTENING, [])[::2], strict=False)
    ]
    columns = (
        "x bare, median",
        "x bare, fastest",
        "x plain bwrap, median",
        "x plain bwrap, fastest",
    )
    return Section(
        name="sandbox",
        title=f"Launch of `true` in the sandbox, as ratios ({rounds} rounds)",
        columns=("variant", *columns[: len(found["bare"])]),
        rows=[(name, *ratios) for name, ratios in found.items()],
        targets=targets,
    )


async def egress(dials: int) -> Section:
    found = json.loads(
        await _python("benchmarks/egress.py", "--json", "--dials", str(dials), "--megabytes", "100")
    )
    dial, rate = found["dial_ratio_to_direct"], found["throughput_ratio_to_direct"]
    more = found["refused_minus_allowed_ms"]
    return Section(
        name="egress",
        title=f"Egress proxy beside direct connections ({dials} dials)",
        columns=("what", "x direct"),
        rows=[
            *((f"dial: {name}", ratio) for name, ratio in dial.items()),
            *((f"throughput: {name}", ratio) for name, ratio in rate.items()),
        ],
        targets=[
            Target("a refusal costs less than 1 ms more than a dial", f"{more:+.2f} ms", more < 1)
        ],
    )


async def resilience() -> Section:
    """The table of `benchmarks/resilience.py`: a fault in each row, a provider in each column."""
    lines = (await _python("benchmarks/resilience.py")).splitlines()
    header, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows: list[tuple[Cell, ...]] = [tuple(cells) for cells in body]
    return Section("resilience", "When a provider fails", tuple(header), rows)


async def corpora() -> Section:
    """How many cases of each corpus hold: they are tests, and here is their count."""
    rows: list[tuple[Cell, ...]] = []
    targets: list[Target] = []
    for name, path in _SHOWN_BY_TESTS.items():
        cases, failed = await _tests(path)
        rows.append((name, path, cases, failed))
        targets.append(Target(f"{name}: every case holds", f"{failed} failed", failed == 0))
    return Section("corpora", "Corpora", ("corpus", "test", "tests", "failed"), rows, targets)


async def _tests(path: str) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        await _python("-m", "pytest", "-q", f"--junitxml={report}", path, codes=(0, 1))
        suite = ElementTree.parse(report).getroot().find("testsuite")
        assert suite is not None
        return int(suite.attrib["tests"]), int(suite.attrib["failures"]) + int(
            suite.attrib["errors"]
        )


async def _python(*words: str, codes: tuple[int, ...] = (0,)) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    if process.returncode not in codes:
        raise RuntimeError(f"{' '.join(words)}: {stderr.decode(errors='replace')[-2000:]}")
    return stdout.decode()
