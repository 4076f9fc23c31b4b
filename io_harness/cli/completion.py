"""`io-harness completion`."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "io-harness"
_VARIABLE = f"_{PROGRAM}_complete".replace("-", "_").upper()  # the name that click looks for


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options, for the shell's start file.

    \b
    Examples:
      eval "$(io-harness completion bash)"          # ~/.bashrc
      eval "$(io-harness completion zsh)"           # ~/.zshrc
      io-harness completion fish | source           # ~/.config/fish/config.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root().command
    click.echo(found(root, {}, PROGRAM, _VARIABLE).source())
