"""`io-harness run`."""

from pathlib import Path
from typing import Literal

import click

from .command import runs as runs_async
from .command import shows_a_run
from .exits import CommandFailed, Exit

Approvals = Literal["prompt", "approve", "deny"]


@click.command()
@click.argument("contract", type=click.Path(path_type=Path), required=False)
@click.option("--goal", help="What is to be done, instead of or over the contract's.")
@click.option("--verify", metavar="COMMAND", help="The command that must exit with 0.")
@click.option(
    "--workspace", "-w", metavar="DIR", help="Directory to work on; by default the current one."
)
@click.option("--model", "-m", metavar="PROVIDER/NAME", help="The model that does the work.")
@click.option(
    "--policy", metavar="PRESET|FILE", help="careful, unattended, read-only, or a policy file."
)
@click.option(
    "--land",
    metavar="HOW",
    help="apply, branch[:NAME] or patch:FILE. Only verified work lands.",
)
@click.option("--set", "settings", metavar="FIELD=VALUE", multiple=True,
              help="Any contract field, like budget.usd=1.5. May be given again.")  # fmt: skip
@click.option("--id", "run_id", metavar="ID", help="The run's id; by default made from the goal.")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE",
              help="Record the model's replies, for the provider `replay`.")  # fmt: skip
@click.option("--approve-all", "approvals", flag_value="approve", default="prompt",
              help="Approve whatever asks. A deny of the policy still holds.")  # fmt: skip
@click.option("--deny-asks", "approvals", flag_value="deny", help="Deny whatever asks.")
@click.option("--detach", "-d", is_flag=True, help="Start the run, print its id, and leave.")
@shows_a_run
@runs_async
async def run(
    contract: Path | None,
    goal: str | None,
    verify: str | None,
    workspace: str | None,
    model: str | None,
    policy: str | None,
    land: str | None,
    settings: tuple[str, ...],
    run_id: str | None,
    record: Path | None,
    approvals: Approvals,
    detach: bool,
    as_json: bool,
    verbose: bool,
    quiet: bool,
    plain: bool,
) -> Exit:
    """Run a task to a verified result, and show it live.

    Give a CONTRACT file (YAML or JSON), or --goal and --verify. Options win over the file.
    Without a terminal nothing is approved: a run that asks is left waiting (exit code 5).

    \b
    Examples:
      io-harness run task.yaml
      io-harness run task.yaml --set budget.usd=0.50 --land branch:agent/fix
      io-harness run --goal "Make the tests pass" --verify "make test" -m openai/gpt-5.5
      io-harness run task.yaml --json 2>progress.log | jq .outcome

    \b
    Exit codes:
      0 verified and landed     3 no verified work     4 denied or expired
      5 waits for a decision    6 no usable model      7 sandbox    9 workspace
      1, 2, 8: other failure, wrong input, no server   130 cancelled
    """
    from . import task

    if contract is None and goal is None:
        raise CommandFailed(Exit.USAGE, "give a CONTRACT file, or --goal and --verify")
    flags = task.flag_fields(goal, verify, workspace, model, policy, land)
    ready = task.build(contract, flags, settings)

    from .running import Shown, Start, start_and_follow, start_and_leave

    start = Start(ready, run_id, record.absolute() if record else None)
    if detach:
        return await start_and_leave(start, as_json=as_json)
    shown = Shown(as_json, verbose, quiet, plain)
    return await start_and_follow(start, approvals=approvals, shown=shown)
