"""How rows are printed, and writing much text to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
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


def check_writable(*paths: Path | None) -> None:
    """Raise FatalError for the first report that could not be written: before the work, not after it.

    Leaves no file behind that was not there.
    """
    for path in paths:
        if path is None:
            continue
        was_there = path.exists()
        try:
            with path.open("ab"):
                """Opening it is all."""
            if not was_there:
                path.unlink()
        except OSError as error:
            raise _not_written(path, error) from error


def write_report(path: Path, content: bytes) -> None:
    """Write a report. Raises FatalError, one line, where it cannot; print the result before."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> FatalError:
    return FatalError(f"report {path} cannot be written: {error.strerror}")
