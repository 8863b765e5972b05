"""A group whose commands are imported when they are asked for: `gnomon --help` reads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """Knows of each command its name, its place and one line of help.

    `lazy` maps a name to ("module:attribute", the first line of its help). A test holds the lines against
    the commands' own.
    """

    def __init__(self, *args: object, lazy: Mapping[str, tuple[str, str]], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self._places = {name: place for name, (place, _) in lazy.items()}
        # Stand-ins: for the list of commands, and for what click proposes instead of a misspelt one.
        for name, (_, line) in lazy.items():
            self.add_command(click.Command(name, short_help=line))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself; None if there is none of this name."""
        place = self._places.get(cmd_name)
        if place is None:
            return None
        module, attribute = place.split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The section of commands, from the lines that are known."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands[name].get_short_help_str(limit)) for name in self.list_commands(ctx)]
            )
