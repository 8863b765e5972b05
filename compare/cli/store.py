"""`gnomon sql` and `gnomon migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from compare.cli.locate import locate_store, store_options


@click.command()
@click.argument("statement")
@store_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How rows are printed.",
)
@click.option(
    "--rows",
    "shown_rows",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The most rows that a table shows; csv and json are never cut.",
)
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop the statement after this many seconds. [default: the store's own limit]",
)
def sql(
    statement: str,
    folder: Path | None,
    config_file: Path | None,
    output_format: Literal["table", "csv", "json"],
    shown_rows: int,
    seconds: float | None,
) -> None:
    """Run one SQL statement, read-only.

    Prints the rows of STATEMENT as they arrive; Ctrl-C cancels it.
    Works while a run or a demo owns the embedded folder: it then asks that process.
    """
    from compare.cli.output import write_all
    from compare.store.print_rows import printed
    from compare.store.row_stream import stream_rows

    settings = locate_store(folder, config_file)
    with stream_rows(settings, statement, seconds=seconds) as rows:
        write_all(printed(rows.column_names, rows, output_format, shown_rows=shown_rows))


@click.command()
@store_options
@click.option("--dry-run", is_flag=True, help="Say what would be applied, change nothing.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the statements too.")
def migrate(folder: Path | None, config_file: Path | None, dry_run: bool, with_sql: bool) -> None:
    """Bring the store to this program's schema.

    Numbered migrations first, then the views, then the TTLs of [store.ttl_days].
    Processes that start at once wait for each other; what is up to date is left alone.
    """
    from compare.store import migrate as migrations
    from compare.store.client import open_store
    from compare.store.steps_text import steps_text

    settings = locate_store(folder, config_file)
    with open_store(settings, role="any") as store:
        steps = migrations.plan(store, settings) if dry_run else migrations.apply(store, settings)
    click.echo(steps_text(steps, verb="would apply" if dry_run else "applied", with_sql=with_sql))
