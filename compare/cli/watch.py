"""`gnomon watch`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.locate import locate_store, settings_in_force, store_options
from compare.stop_signals import StopSignals

if TYPE_CHECKING:
    from compare.watch import Watched
    from ingest.settings import OperationsSettings


@click.command()
@click.option("--experiment", help="Which one.  [default: that of the settings, else the store's only one]")
@click.option(
    "--candidate", "candidates", multiple=True, help="Only this one; may be repeated.  [default: all]"
)
@click.option("--once", is_flag=True, help="Do what is to be done now, and end: for cron.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics here, on operations.host.  [default: not at all]",
)
@store_options
def watch(
    experiment: str | None,
    candidates: tuple[str, ...],
    once: bool,
    port: int | None,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Run the alerts alone, beside the service or in its place.

    Reads and writes the store, sends alerts, keeps the ship rule's verdict every hour; runs the golden set
    and evaluates rollback conditions if a settings file says so. Needs no Kafka, and no model but for the
    golden set. Of all that watch an experiment, in `gnomon run` or here, one acts and the others stand by.
    SIGTERM ends it with 0.
    """
    # Before the imports, which take seconds: a signal that comes meanwhile is no crash.
    with StopSignals():
        from compare.operations.logs import logging_to_stderr
        from compare.watch import watch as watch_on
        from compare.watch import watch_once

        watched, operations = _watched(experiment, candidates, folder, config_file)
        with logging_to_stderr(operations):
            if not once:
                watch_on(watched, port=port, host=operations.host)
                return
            run = watch_once(watched)
    if run.watched_by is not None:
        # The golden set, rollback conditions and verdicts have leases of their own.
        click.echo(f"alerts of {run.experiment} are watched by {run.watched_by}; nothing was done about them")
        return
    states = Counter(alert.state for alert in run.events)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    click.echo(f"{run.experiment}: {told or 'nothing new'}")


def _watched(
    experiment: str | None, candidates: tuple[str, ...], folder: Path | None, config_file: Path | None
) -> tuple[Watched, OperationsSettings]:
    """What the options name: a settings file with all of it, or a store with the alerts' defaults."""
    from compare.watch import Watched

    settings = settings_in_force(folder, config_file)
    if settings is not None:
        mine = settings.experiment
        is_mine = experiment in (None, mine.name)
        return (
            Watched(
                settings.store,
                settings.alerts,
                settings.notify,
                settings.verdict,
                mine.name if is_mine else experiment,
                candidates or (tuple(mine.candidates) if is_mine else ()),
                settings if is_mine else None,
            ),
            settings.operations,
        )
    from ingest.settings import OperationsSettings
    from ingest.settings_alerts import AlertSettings

    store = locate_store(folder, config_file)
    watched = Watched(store, AlertSettings(), experiment=experiment, candidates=candidates)
    return watched, OperationsSettings()
