"""The report as one HTML page that needs nothing else: no script, no font, no request.

A page of a run holds text of models, tools and repositories, any of which may be hostile. All of it is
escaped, characters that hide or reorder text are shown as escapes, and the page's own
Content-Security-Policy permits nothing but its one style sheet.
"""

import base64
import functools
import hashlib
import importlib.resources
import json
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import jinja2
from markupsafe import Markup

from io_harness import __version__
from io_harness.diff import files_of
from io_harness.visible import visible
from io_harness.workflows.messages import Reasoning

from .gather import Report
from .timeline import LABELS, WIDTH, bars, totals
from .turns import chapters

_PACKAGE = "io_harness.report"
_GOOD = {"success", "finished"}
_TITLE_CHARS = 140
_SENTENCE = re.compile(r"[.!?](?=\s)")


def page(report: Report) -> str:
    """The whole page."""
    css = _style()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    template = _environment().get_template("page.html")
    text = template.render(report=report, css=Markup(css), style_hash=digest, version=__version__)
    return text.lstrip()  # the macros' own lines


@functools.cache
def _style() -> str:
    return importlib.resources.files(_PACKAGE).joinpath("page.css").read_text("utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, package_path=""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "usd": _usd,
        "clock": _clock,
        "offset": _offset,
        "pretty": _pretty,
        "words": lambda text: str(text).replace("_", " "),
        "files": files_of,
        "gist": _gist,
    }
    environment.globals |= {
        "bars": bars,
        "totals": totals,
        "labels": LABELS,
        "line_width": WIDTH,
        "chapters": chapters,
        "title": _title,
        "tone": _tone,
        "state": _state,
        "reasoning": _reasoning,
    }
    return environment


def _shown(value: Any) -> Any:
    """What is printed, of whatever origin; the template's own text does not come by here."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def duration(seconds: float | None) -> str:
    """As people say it, with two units at most."""
    if seconds is None:
        return ""
    if seconds < 0.95:
        return f"{seconds:.2f} s"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = timedelta(seconds=round(seconds))
    hours, rest = divmod(whole.seconds, 3600)
    minutes, left = divmod(rest, 60)
    units = [(whole.days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    first = next(i for i, (number, _) in enumerate(units) if number)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2] if number)


def _usd(amount: Decimal | float | None) -> str:
    return "price unknown" if amount is None else f"${amount:,.4f}"


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _offset(at: datetime, report: Report) -> str:
    seconds = max((at - report.began.at).total_seconds(), 0)
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _gist(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _title(report: Report) -> tuple[str, str]:
    """A heading, and what of the goal it leaves out: its first line or sentence, then the rest; of a
    goal that begins with a long sentence, all of it again."""
    goal = report.began.goal.strip()
    for end in (goal.find("\n"), _sentence(goal), len(goal)):
        if 0 < end <= _TITLE_CHARS:
            return goal[:end], goal[end:].strip()
    return goal[: _TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…", goal


def _sentence(text: str) -> int:
    """Where the first sentence ends; -1 if none does."""
    found = _SENTENCE.search(text)
    return found.end() if found else -1


def _state(report: Report) -> str:
    """The outcome, or what a run without one is."""
    if report.result:
        return report.result.outcome.value
    if report.ended:
        return report.ended.status
    waits = any(each.decision is None for each in report.approvals)
    return "waiting" if waits and not report.running else "running"


def _tone(state: str) -> str:
    if state in _GOOD or state == "passed":
        return "good"
    return "live" if state in ("running", "waiting") else "bad"


def _reasoning(completion: Any) -> str:
    parts = completion.message.parts
    return "\n\n".join(p.text for p in parts if isinstance(p, Reasoning) and p.text)
