"""What becomes of a log record, whoever made it."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from temporalio.exceptions import ApplicationError

from io_harness.cli import logs
from io_harness.sandbox.log import get_logger

NAMES = ("", "io_harness", "temporalio.activity", "temporalio.workflow", "httpx")


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger()
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in NAMES]
    handlers = list(root.handlers)
    yield
    root.handlers[:] = handlers
    for logger, level in before:
        logger.setLevel(level)


def records(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_has_its_fields_and_those_that_are_bound(capsys: pytest.CaptureFixture[str]) -> None:
    logs.to_stderr(logs.Format.JSON, "info")
    with structlog.contextvars.bound_contextvars(run="fix-7", step=3, attempt=2):
        get_logger("io_harness.x").info("done", seconds=0.5)
    (line,) = records(capsys.readouterr().err)
    assert line.pop("timestamp")
    assert line == {
        "message": "done", "level": "info", "logger": "io_harness.x",
        "run": "fix-7", "step": 3, "attempt": 2, "seconds": 0.5,
    }  # fmt: skip


def test_others_libraries_are_heard_from_their_warnings_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.to_stderr(logs.Format.JSON, "debug")
    logging.getLogger("httpx").info("HTTP Request: GET http://127.0.0.1/?key=secret")
    logging.getLogger("temporalio.worker._worker").info("Beginning worker shutdown")
    logging.getLogger("httpx").warning("odd")
    get_logger("io_harness.x").debug("ours")
    assert [line["message"] for line in records(capsys.readouterr().err)] == ["odd", "ours"]


@pytest.mark.parametrize("format", list(logs.Format))
def test_a_failure_with_a_code_has_no_trace_and_a_bug_has_one(
    capsys: pytest.CaptureFixture[str], format: logs.Format
) -> None:
    logs.to_stderr(format, "info")
    log = logging.getLogger("temporalio.activity")
    secret = "sk-in-a-local-variable"
    about = {"temporal_activity": {"workflow_id": "w", "activity_type": "complete", "attempt": 2}}
    for error in (ApplicationError("slow down", type="RateLimited"), ZeroDivisionError("bug")):
        try:
            assert secret
            raise error
        except (ApplicationError, ZeroDivisionError):
            log.warning("Completing activity as failed", exc_info=True, extra=about)
    shown = capsys.readouterr().err
    known, _, bug = shown.partition("\n")
    assert "RateLimited" in known
    assert "Traceback" not in known
    assert "Traceback" in bug
    assert "ZeroDivisionError: bug" in bug
    assert secret not in shown
    if format is logs.Format.JSON:
        told = {"code": "RateLimited", "error": "slow down", "run": "w", "attempt": 2,
                "activity": "complete", "message": "attempt failed"}  # fmt: skip
        assert told.items() <= records(shown)[0].items()


def test_a_host_applications_logging_is_left_alone(tmp_path: Path) -> None:
    """Making a plugin and logging through it changes no handler, no level, and prints nothing."""
    program = """
import logging, sys
from pathlib import Path
import structlog
before = (list(logging.getLogger().handlers), logging.getLogger().level)
from io_harness.activities.settings import Settings
from io_harness.plugin import HarnessPlugin, _log
HarnessPlugin(Settings(data_dir=Path(sys.argv[1])))
_log.info("quiet")
assert not structlog.is_configured()
assert before == (list(logging.getLogger().handlers), logging.getLogger().level)
class Seen(logging.Handler):
    def emit(self, record): print(record.getMessage(), record.what)
logging.getLogger().addHandler(Seen())
_log.warning("heard", what="by the host")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("heard by the host\n", "", 0)
