"""The command's own help: its commands by what they are for, each with its whole first sentence."""

from collections.abc import Mapping, Sequence

import click

_WHOLE = 200


class Sections(click.Group):
    """A group whose help lists its commands under headings."""

    def __init__(self, *, sections: Mapping[str, Sequence[click.Command]], **more: object) -> None:
        super().__init__(**more)  # type: ignore[arg-type]
        self._sections = sections
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(str(each.name), each.get_short_help_str(_WHOLE)) for each in commands]
                )
