"""What a benchmark found: tables and targets, as JSON and as Markdown."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.machine import Machine

Cell = str | float | int | None


@dataclass(frozen=True)
class Target:
    text: str
    found: str
    met: bool | None
    """None where it could not be measured."""


@dataclass(frozen=True)
class Section:
    """One benchmark's result."""

    name: str
    """As on the command line."""
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    samples: dict[str, list[float]] = field(default_factory=dict)
    """Every single measurement, for whoever wants another statistic."""


def markdown(machine: Machine, sections: Iterable[Section]) -> str:
    parts = ["\n".join(machine.lines())]
    for section in sections:
        parts += [f"## {section.title}", _table(section.columns, section.rows)]
        if section.targets:
            words = {True: "met", False: "missed", None: "not measured"}
            rows: list[tuple[Cell, ...]] = [
                (each.text, each.found, words[each.met]) for each in section.targets
            ]
            parts.append(_table(("target", "found", ""), rows))
        parts += section.notes
    return "\n\n".join(parts) + "\n"


def store(folder: Path, machine: Machine, sections: Sequence[Section]) -> Path:
    """Write `NAMES-TIME.json` and the same as Markdown; gives the path of the JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = machine.at.replace(" UTC", "").replace(" ", "T").replace(":", "")
    path = folder / f"{'-'.join(section.name for section in sections)}-{stamp}.json"
    document = {"machine": asdict(machine), "sections": [asdict(each) for each in sections]}
    path.write_text(json.dumps(document, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(machine, sections))
    return path


def spread(samples: Sequence[float]) -> str:
    """The middle half."""
    if len(samples) < 4:
        return f"{min(samples):.1f}-{max(samples):.1f}"
    low, _, high = statistics.quantiles(samples, n=4)
    return f"{low:.1f}-{high:.1f}"


def p95(samples: Sequence[float]) -> float:
    return statistics.quantiles(samples, n=20)[-1] if len(samples) > 1 else samples[0]


def _table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_shown(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case float():
            return f"{cell:,.1f}" if abs(cell) < 100 else f"{cell:,.0f}"
        case int():
            return f"{cell:,}"
        case str():
            return cell
