"""`io-harness` of a build whose workflow code has a bug: it raises where a run publishes its state.

python -m tests.crash.broken worker --task-queue NAME
"""

from typing import NoReturn

from io_harness.cli import main
from io_harness.workflows import agent_run


def bug(state: object) -> NoReturn:
    raise RuntimeError("a bug of this build")


if __name__ == "__main__":
    agent_run.__dict__["publish"] = bug
    main()
