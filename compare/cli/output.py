"""How rows are printed, and writing much text to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from ingest.errors import FatalError

F = TypeVar("F", bound=Callable[..., object])


def format_option(function: F) -> F:
    """Add `--format`, given to the command as `output_format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["table", "csv", "json"]),
        default="table",
        show_default=True,
        help="How rows are printed.",
    )(function)


def write_all(pieces: Iterable[str]) -> None:
    """Write the pieces as they come. Raises FatalError if the disk is full or the reader has gone."""
    for piece in pieces:
        try:
            click.echo(piece, nl=False)
        except OSError as error:
            _forget_output()
            raise FatalError(f"standard output cannot be written: {error.strerror}") from error


def _forget_output() -> None:
    """Point standard output at nothing, or Python complains again when it flushes at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
