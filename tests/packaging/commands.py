"""Commands as deployment files write them: parsed by the command line itself, not run."""

from __future__ import annotations

import importlib.util
import re

import click

from compare.cli.main import cli


def check_command(command: list[str]) -> None:
    """Raise where `gnomon ...` or `python -m ...` names what does not exist."""
    program, *arguments = command
    if program == "gnomon":
        context = click.Context(cli)
        group: click.Command | None = cli
        while isinstance(group, click.Group):
            name = arguments.pop(0)
            group = group.get_command(context, name)
            assert group is not None, f"no such command: {command}"
        assert group is not None
        group.make_context(command[1], arguments)
    else:
        assert command[:2] == ["python", "-m"], command
        assert importlib.util.find_spec(command[2]), command


def option(command: list[str], name: str) -> str:
    """The value of an option in a command."""
    return command[command.index(name) + 1]


def port_of(text: str) -> int:
    """The port of the first loopback URL in a text."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", text)
    assert found, text
    return int(found.group(1))
