"""The `io-harness` command.

Modules named like a command hold its options and import nothing heavy, so that help is instant; what a
command does is in a module of its own, imported when the command runs.
"""

import click

from io_harness import __version__

from .approve import approvals, approve, deny
from .codec_server import codec_server
from .completion import PROGRAM, completion
from .demo import demo
from .doctor import doctor
from .gc import gc
from .inbox import inbox
from .inspect import cancel, list_, schema, status, trace, watch
from .mcp import mcp
from .models import models
from .replay import replay
from .run import run
from .sandbox import sandbox
from .schedule import schedule
from .sections import Sections
from .serve import up, worker

_SECTIONS = {
    "Runs": (demo, run, watch, status, list_, trace, cancel),
    "Decisions": (approvals, approve, deny, inbox),
    "Processes that stay": (up, worker, schedule, mcp, codec_server),
    "This machine": (doctor, sandbox, gc, models),
    "Contracts and code": (schema, replay, completion),
}
_HELP = """\
Run an AI agent from a task contract to a verified result, durably, on Temporal.

A server is started where none is configured (TEMPORAL_ADDRESS,
TEMPORAL_PROFILE); `io-harness doctor` checks what else is needed. Each command has --help; exit codes
and environment variables are in docs/reference.md.

\b
Examples:
  io-harness demo
  io-harness run task.yaml
  io-harness run --goal "Make the tests pass" --verify "make test" -m openai/gpt-5.5
"""

group = Sections(
    sections=_SECTIONS,
    name=PROGRAM,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(__version__, prog_name=PROGRAM)(group)


def main() -> None:
    group(prog_name=PROGRAM)
