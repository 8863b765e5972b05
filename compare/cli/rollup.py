"""`gnomon rollup`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from compare.cli.locate import locate_store, store_options


@click.command()
@click.option(
    "--day",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Make this day (of ingested_at, UTC) anew, changed or not. [default: the days that changed]",
)
@store_options
def rollup(day: datetime | None, folder: Path | None, config_file: Path | None) -> None:
    """Bring the rollups up to date with the pairs.

    A run does this by itself every minute. It is safe beside one, and to kill at any point.
    """
    from compare.rollups.rebuild import Rollups
    from compare.store.client import open_store

    settings = locate_store(folder, config_file)
    with open_store(settings, role="any") as store:
        rollups = Rollups(store, settings)
        rebuilt = rollups.rebuild_touched() if day is None else [rollups.rebuild_day(day.date())]
    for done in rebuilt:
        hours = f"{done.hours} hour{'s' * (done.hours != 1)}"
        click.echo(f"{done.day}: {hours} anew in {done.seconds:.1f} s")
    if not rebuilt:
        click.echo("up to date")
