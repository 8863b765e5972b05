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
def sql(
    statement: str,
    folder: Path | None,
    config_file: Path | None,
    output_format: Literal["table", "csv", "json"],
) -> None:
    """Run one SQL statement, read-only.

    Prints the rows of STATEMENT.
    Works while a run or a demo owns the embedded folder: it then asks that process.
    """
    from compare.store.client import open_store
    from compare.store.print_table import format_result

    settings = locate_store(folder, config_file)
    with open_store(settings, role="reader") as store:
        result = store.query(statement)
        click.echo(format_result(result.column_names, result.rows, output_format))


@click.command()
@store_options
@click.option("--dry-run", is_flag=True, help="Say what would be applied, change nothing.")
def migrate(folder: Path | None, config_file: Path | None, dry_run: bool) -> None:
    """Bring the store to this program's schema.

    Numbered migrations first, then the views.
    """
    from compare.store import migrate as migrations
    from compare.store.client import open_store

    settings = locate_store(folder, config_file)
    with open_store(settings, role="any") as store:
        pending = migrations.plan(store)
        if not dry_run:
            migrations.apply(store)
    verb = "would apply" if dry_run else "applied"
    click.echo(f"{verb} {len(pending)} migrations" if pending else "up to date")
    for name in pending:
        click.echo(f"  {name}")
