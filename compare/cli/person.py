"""Who gives an order, and whether it is meant."""

from __future__ import annotations

import getpass
import os
import socket

import click


def who() -> str:
    """Return `user@host` of this process."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def confirm(question: str) -> None:
    """Ask on standard error; return for a yes, end the command with code 1 and one line for a no.

    Without anybody to answer (standard input is at its end) the line names `--yes`. A Ctrl-C at the question
    stays click.Abort.
    """
    try:
        is_meant = click.confirm(question, err=True)
    except click.Abort as error:
        # click makes one error of Ctrl-C and of the end of standard input, and keeps which it was.
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)
        raise click.ClickException("nobody answered, nothing was done; --yes does not ask") from error
    if not is_meant:
        raise click.ClickException("answered no, nothing was done")
