"""`io-harness sandbox`."""

from pathlib import Path

import click

from .command import runs as runs_async
from .exits import Exit

_MIB = 1024 * 1024


class _RunByDefault(click.Group):
    """What is no subcommand's name is a command line to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["exec", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunByDefault)
def sandbox() -> None:
    """Run one command held, or see how well this machine can hold one.

    \b
    Examples:
      io-harness sandbox -- pytest -q
      io-harness sandbox doctor
    """


@sandbox.command("exec")
@click.option("--net", multiple=True, metavar="HOST", help="A host that it may reach; repeatable.")
@click.option(
    "--write",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A directory that it may write to besides this one; repeatable.",
)
@click.option(
    "--read",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A directory that it may read besides; repeatable.",
)
@click.option(
    "--mode",
    type=click.Choice(["workspace_write", "read_only", "overlay"]),
    default="workspace_write",
    show_default=True,
    help="What it may do to this directory; overlay: write, and nothing of it stays.",
)
@click.option("--env", multiple=True, metavar="NAME", help="A variable that it may see.")
@click.option("--backend", help="Instead of the best that works; see `doctor`.")
@click.option("--wall", type=float, default=120, show_default=True, help="Seconds it may take.")
@click.option("--cpu", type=int, default=60, show_default=True, help="Seconds of CPU time.")
@click.option("--memory", type=int, default=2048, show_default=True, help="MiB, of all processes.")
@click.option("--processes", type=int, default=256, show_default=True)
@click.option(
    "--weak", is_flag=True, help="Run even where files, network or end can't be held for sure."
)
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@runs_async
async def exec_(
    net: tuple[str, ...],
    write: tuple[Path, ...],
    read: tuple[Path, ...],
    mode: str,
    env: tuple[str, ...],
    backend: str | None,
    wall: float,
    cpu: int,
    memory: int,
    processes: int,
    weak: bool,
    argv: tuple[str, ...],
) -> Exit | None:
    """Run a command in this directory. Its exit code becomes this one's.

    \b
    Examples:
      io-harness sandbox -- pytest -q
      io-harness sandbox --net pypi.org --write build -- make

    \b
    Exit codes:
      That of the command, or 128 and the number of the signal that ended it; 7 if it could not be held.
    """
    from . import sandboxing

    try:
        limits = sandboxing.Limits(
            wall_seconds=wall, cpu_seconds=cpu, memory_bytes=memory * _MIB, processes=processes
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return await sandboxing.run_held(
        argv,
        hosts=net,
        write=write,
        read=read,
        mode=sandboxing.mode_named(mode),
        env=env,
        limits=limits,
        backend=backend,
        weak=weak,
    )


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
@runs_async
async def doctor(as_json: bool) -> None:
    """Attack each backend of this machine, and show what it holds.

    \b
    Examples:
      io-harness sandbox doctor
      io-harness sandbox doctor --json
    """
    from . import sandboxing

    await sandboxing.show_levels(as_json)
