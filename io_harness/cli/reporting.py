"""Behind `trace --format atif` and `trace --html`."""

import json
from pathlib import Path
from typing import Literal

import click

from io_harness import runs
from io_harness.activities.settings import Settings
from io_harness.connection import connect
from io_harness.report.atif import trajectory
from io_harness.report.gather import Report, gather
from io_harness.report.html import page

from .exits import CommandFailed, Exit


async def write_report(run: str, format: Literal["atif", "html"], output: Path | None) -> Exit:
    """Write the run as one document, to `output` or to standard output."""
    async with connect(Settings.from_env()) as connection:
        with runs.named(run):
            report = await gather(connection.client, run)
    text = _text(report, format)
    if output is None:
        click.echo(text, nl=False)
        return Exit.OK
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(Exit.USAGE, f"--output {output}: {error.strerror}") from error
    return Exit.OK


def _text(report: Report, format: Literal["atif", "html"]) -> str:
    if format == "html":
        return page(report)
    return json.dumps(trajectory(report), indent=2, ensure_ascii=False) + "\n"
