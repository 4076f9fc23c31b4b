"""Loggers of this package: structlog in front, the standard library behind.

The host application's `logging` decides what is kept, as of any library, and structlog's own global
configuration (which prints to standard output where nobody set it) is left alone.
"""

import logging
from typing import cast

import structlog
from structlog.stdlib import BoundLogger


def get_logger(name: str) -> BoundLogger:
    """A logger whose fields, and those bound by `structlog.contextvars`, are the record's `extra`."""
    return cast(
        BoundLogger,
        structlog.wrap_logger(
            logging.getLogger(name),
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.render_to_log_kwargs,
            ],
            wrapper_class=BoundLogger,
            cache_logger_on_first_use=True,
        ),
    )
