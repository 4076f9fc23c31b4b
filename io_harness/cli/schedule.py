"""`io-harness schedule`."""

from pathlib import Path

import click

from .command import runs as runs_async
from .exits import Exit


@click.group()
def schedule() -> None:
    """Start runs by the clock, like every night. Needs a server and a worker that stay.

    \b
    Examples:
      io-harness schedule create nightly task.yaml --cron '0 2 * * *'
      io-harness schedule list
      io-harness schedule delete nightly
    """


@schedule.command()
@click.argument("name")
@click.argument("contract", type=click.Path(path_type=Path))
@click.option("--cron", required=True, metavar="EXPRESSION",
              help="Minute, hour, day of month, month, day of week, like '0 2 * * *'.")  # fmt: skip
@click.option("--time-zone", metavar="ZONE", help="Of the expression, like Europe/Zurich; UTC.")
@click.option("--set", "settings", metavar="FIELD=VALUE", multiple=True,
              help="Any contract field, like budget.usd=1.5. May be given again.")  # fmt: skip
@runs_async
async def create(
    name: str, contract: Path, cron: str, time_zone: str | None, settings: tuple[str, ...]
) -> Exit:
    """Start the CONTRACT again and again. A run's id is NAME and the time of its start.

    The contract is read now; a later change of the file changes nothing. A start is left out while
    the run before is still on. After an outage, a start of the last day is made up for.

    \b
    Examples:
      io-harness schedule create nightly task.yaml --cron '0 2 * * *' --time-zone Europe/Zurich
      io-harness schedule create weekly task.yaml --cron '0 2 * * 1' --set budget.usd=5
    """
    from .scheduling import create_schedule

    return await create_schedule(name, contract, settings, cron=cron, time_zone=time_zone)


@schedule.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per schedule.")
@runs_async
async def list_(as_json: bool) -> Exit:
    """List the schedules that start runs.

    \b
    Examples:
      io-harness schedule list
      io-harness schedule list --json | jq -r .name
    """
    from .scheduling import list_schedules

    return await list_schedules(as_json=as_json)


@schedule.command()
@click.argument("name")
@runs_async
async def delete(name: str) -> Exit:
    """End a schedule. Runs that it started go on.

    \b
    Examples:
      io-harness schedule delete nightly
    """
    from .scheduling import delete_schedule

    return await delete_schedule(name)
