"""Where log records go, and how they look. Only the command line decides that; a host application of
the plugin decides for itself."""

import logging
import logging.handlers
import os
import sys
from collections.abc import Mapping, MutableMapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import structlog
from structlog.types import Processor
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from io_harness.data_dir import usable

CORE = "temporalio.core"
"""Logger of the SDK's native part."""
_BYTES = 2_000_000
_OURS = ("io_harness", activity.logger.base_logger.name, workflow.logger.base_logger.name)
_ATTRIBUTES = ("temporal_activity", "temporal_workflow", "__temporal_error_identifier", "taskName")
"""What the SDK adds to its records; what matters of it gets a field of its own."""

Event = MutableMapping[str, Any]


class Format(StrEnum):
    CONSOLE = "console"
    """A line for people, in colour on a terminal."""
    JSON = "json"
    """An object a line, for collectors."""


def to_file(data_dir: Path) -> None:
    """Keep records out of the terminal, where steps are shown; what went wrong is shown there too.

    Raises:
        DataDirUnusable
    """
    handler = logging.handlers.RotatingFileHandler(
        usable(data_dir) / "io-harness.log", maxBytes=_BYTES, backupCount=1, delay=True
    )
    _use(handler, Format.CONSOLE, "info", colors=False)


def to_stderr(format: Format, level: str) -> None:
    """For `up` and `worker`."""
    colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    _use(logging.StreamHandler(sys.stderr), format, level, colors=colors)


def _use(handler: logging.Handler, format: Format, level: str, *, colors: bool) -> None:
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendered(format, colors=colors),
            ],
        )
    )
    # Others' libraries tell each request at INFO; their warnings are kept.
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())
    # What a record is about is told in fields, and not at the end of its message too.
    activity.logger.activity_info_on_message = False
    workflow.logger.workflow_info_on_message = False


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.ExtraAdder(),
        _of_temporal,
        _by_code,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.format_exc_info,  # never with locals: they can hold secrets
    ]


def _rendered(format: Format, *, colors: bool) -> list[Processor]:
    match format:
        case Format.JSON:
            return [
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.EventRenamer("message"),
                structlog.processors.JSONRenderer(),
            ]
        case Format.CONSOLE:
            return [
                structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
                _for_people,
                structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=22),
            ]


def _of_temporal(_logger: object, _method: str, event: Event) -> Event:
    """Fields of ours for the run, the activity and the attempt that a record of the SDK is about."""
    about: Mapping[str, Any] = (
        event.get("temporal_activity") or event.get("temporal_workflow") or {}
    )
    if "workflow_id" in about:
        event.setdefault("run", about["workflow_id"])
    if "activity_type" in about:
        event.setdefault("activity", about["activity_type"])
        event.setdefault("attempt", about["attempt"])
    for name in _ATTRIBUTES:
        event.pop(name, None)
    return event


def _for_people(_logger: object, _method: str, event: Event) -> Event:
    """Without what only a program asks for."""
    if event["logger"].startswith(_OURS):
        del event["logger"]
    return {name: value for name, value in event.items() if value is not None}


def _by_code(_logger: object, _method: str, event: Event) -> Event:
    """A failure that has a code is told by code and message. What has none is a bug and keeps its
    trace."""
    info = event.get("exc_info")
    error = info[1] if isinstance(info, tuple) else info
    if isinstance(error, ApplicationError) and error.type:
        del event["exc_info"]
        event["event"] = "attempt failed"
        event.update(code=error.type, error=error.message, final=error.non_retryable)
    return event
