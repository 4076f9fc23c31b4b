"""Renders the pages. Everything that a run says is escaped, and made visible."""

from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from io_harness.diff import lines_of
from io_harness.visible import visible

from .form import ARGUMENT, editable
from .guard import CSRF_FIELD
from .reading import Closed, Inbox, Open, Seen

_REFRESH_SECONDS = 10
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (0, "s"))
_VERDICTS = {
    "approve": "Approved",
    "deny": "Denied",
    "retry": "Run again",
    "skip": "Skipped",
    "abort": "Run ended",
}


@dataclass(frozen=True)
class Notice:
    """What became of what the person just did."""

    text: str
    bad: bool = True


class Pages:
    """The templates, with what is the same on every page."""

    def __init__(self, *, by: str, namespace: str, csrf: str) -> None:
        """
        Args:
            by: Who decides here, as runs log it.
            csrf: Goes into every form.
        """
        self._environment = Environment(
            loader=PackageLoader("io_harness.inbox"),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            # Whatever a page shows goes through it, so that no template can forget.
            finalize=_shown,
        )
        self._environment.filters |= {
            "ago": _ago, "until": _until, "clock": _clock, "diff": lines_of, "edits": editable,
        }  # fmt: skip
        self._environment.globals |= {
            "by": by, "namespace": namespace, "csrf": csrf, "csrf_field": CSRF_FIELD,
            "argument": ARGUMENT, "verdicts": _VERDICTS,
        }  # fmt: skip

    def inbox(self, inbox: Inbox, *, idle: bool) -> str:
        """
        Args:
            idle: Nobody works on the queue, so that what is approved goes on later.
        """
        return self._render("inbox.html", inbox=inbox, idle=idle, refresh=_REFRESH_SECONDS)

    def request(
        self,
        run: str,
        seen: Seen,
        inbox: Inbox,
        *,
        ui: str | None,
        notice: Notice | None = None,
        typed: dict[str, str] | None = None,
    ) -> str:
        """
        Args:
            ui: Address of the run in the Temporal UI.
            typed: The form that could not be taken, so that nothing typed is lost.
        """
        template = "open.html" if isinstance(seen.state, Open) else "closed.html"
        return self._render(
            template, run=run, seen=seen, inbox=inbox, ui=ui, notice=notice, typed=typed or {}
        )

    def failure(self, title: str, text: str) -> str:
        return self._render("failure.html", title=title, text=text)

    def _render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(**values)


def too_late(seen: Seen) -> str:
    """What the notice of a decision that came too late says."""
    closed = seen.state
    if not isinstance(closed, Closed) or closed.decided is None:
        return "Not taken: this request waits no more."
    decision = closed.decided.decision
    what = _VERDICTS[decision.verdict].lower()
    return f"Not taken: {decision.by or 'somebody'} decided first ({what})."


def _shown(value: object) -> object:
    return visible(value) if isinstance(value, str) and type(value) is str else value


def _ago(seconds: float) -> str:
    return f"{_long(datetime.now(UTC).timestamp() - seconds)} ago"


def _until(seconds: float) -> str:
    return f"in {_long(seconds - datetime.now(UTC).timestamp())}"


def _long(seconds: float) -> str:
    whole = max(int(seconds), 0)
    size, name = next(unit for unit in _UNITS if whole >= unit[0])
    return f"{whole // max(size, 1)} {name}"


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
