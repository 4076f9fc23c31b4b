"""The `io-harness` command.

Modules named like a command hold its options and import nothing heavy, so that help is instant; what a
command does is in a module of its own, imported when the command runs.
"""

import click

from io_harness import __version__

from .approve import approvals, approve, deny
from .codec_server import codec_server
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
from .serve import up, worker


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="io-harness")
def group() -> None:
    """Run an AI agent from a task contract to a verified result, durably, on Temporal.

    Start with `io-harness demo`. A server is started where none is configured (TEMPORAL_ADDRESS,
    TEMPORAL_PROFILE); `io-harness doctor` checks what else is needed.
    """


for _command in (
    demo, run, watch, status, list_, trace, approvals, approve, deny, inbox, cancel, up, worker, mcp,
    schema, models, gc, doctor, sandbox, replay, schedule, codec_server,
):  # fmt: skip
    group.add_command(_command)


def main() -> None:
    group(prog_name="io-harness")
