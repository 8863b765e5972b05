"""`gnomon alerts backtest`."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from compare.cli.locate import locate_store, settings_in_force, store_options
from compare.cli.times import TimeOrAgo
from ingest.errors import FatalError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from compare.alerts.backtest import Backtest, BaselineChoice
    from compare.store.client import Store
    from ingest.settings import ExperimentSettings, StoreSettings
    from ingest.settings_alerts import AlertSettings


@click.command()
@click.option("--since", type=TimeOrAgo(), required=True, metavar="TIME", help="From 2h, 7d, or a time on.")
@click.option("--until", type=TimeOrAgo(), metavar="TIME", help="Up to this time.  [default: now]")
@click.option("--experiment", help="Which one.  [default: that of the settings, else the store's only one]")
@click.option(
    "--candidate", "candidates", multiple=True, help="Only this one; may be repeated.  [default: all]"
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A key of [alerts] as it might be, such as tolerated_regression_rate=0.02; null for unset.",
)
@click.option(
    "--baseline",
    type=click.Choice(["then", "now", "new"]),
    default="then",
    show_default=True,
    help="Those complete at SINCE, those in force now, or none; what is missing or was reset is learned from"
    " the first pairs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a candidate.")
@store_options
def backtest(
    since: datetime,
    until: datetime | None,
    experiment: str | None,
    candidates: tuple[str, ...],
    changes: tuple[str, ...],
    baseline: BaselineChoice,
    as_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Say what would have fired, when, and on what, had the settings been these.

    The stored pairs go through the same fold as in `gnomon run`, in memory; nothing is written or sent.
    Silence (no_data) goes by the clock of a runner and is left out.
    """
    from rich.console import Console
    from rich.progress import Progress as ProgressBar

    from compare.alerts.backtest import Period, count_records
    from compare.alerts.backtest import backtest as run_backtest
    from compare.alerts.backtest_words import told
    from compare.row_values import milliseconds
    from compare.store.client import open_store

    until = until or datetime.now(UTC)
    if since >= until:
        raise click.UsageError("--since must be before --until")
    period = Period(milliseconds(since), milliseconds(until))
    store_settings, settings, named = _settings(folder, config_file)
    settings = _changed(settings, changes)
    with open_store(store_settings, role="reader") as store:
        experiment, names = _which(store, experiment, candidates, named)
        runs: list[Backtest] = []
        with ProgressBar(console=Console(stderr=True), transient=True) as progress:
            for candidate in names:
                total = count_records(store, experiment, candidate, period)
                task = progress.add_task(f"replaying {candidate}", total=total)
                run = run_backtest(
                    store,
                    settings,
                    experiment,
                    candidate,
                    period,
                    baselines=baseline,
                    on_progress=partial(_show, progress, task),
                )
                runs.append(run)
    if as_json:
        for run in runs:
            click.echo(msgspec.json.encode(run).decode())
        return
    click.echo("\n\n".join(told(run) for run in runs))


def _show(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _settings(
    folder: Path | None, config_file: Path | None
) -> tuple[StoreSettings, AlertSettings, ExperimentSettings | None]:
    """The store, the alerts' settings and the experiment that the options name."""
    settings = settings_in_force(folder, config_file)
    if settings is not None:
        return settings.store, settings.alerts, settings.experiment
    from ingest.settings_alerts import AlertSettings

    return locate_store(folder, config_file), AlertSettings(), None


def _which(
    store: Store, experiment: str | None, candidates: tuple[str, ...], named: ExperimentSettings | None
) -> tuple[str, tuple[str, ...]]:
    """The experiment and its candidates. Raises FatalError where neither store nor settings know one."""
    from compare.alerts.watched import candidates_of, the_only_experiment

    if named is not None and experiment in (None, named.name):
        name, known = named.name, tuple(named.candidates)
    else:
        name = experiment or the_only_experiment(store)
        known = candidates_of(store, name)
    if unknown := [one for one in candidates if one not in known]:
        raise FatalError(f"experiment {name} has no candidate {unknown[0]}; it has {', '.join(known)}")
    return name, candidates or known


def _changed(settings: AlertSettings, changes: tuple[str, ...]) -> AlertSettings:
    """The settings with `--set NAME=VALUE` applied. Raises UsageError, naming what is wrong."""
    from ingest.settings_alerts import AlertSettings

    values: dict[str, object] = msgspec.structs.asdict(settings)
    for change in changes:
        name, is_there, value = change.partition("=")
        if not is_there or name not in values:
            raise click.UsageError(f"--set {change}: write NAME=VALUE, with NAME of {', '.join(values)}")
        values[name] = None if value in ("null", "none", "") else value
        try:
            msgspec.convert(values, AlertSettings, strict=False)
        except msgspec.ValidationError as error:
            raise click.UsageError(f"--set {change}: {error}") from error
    return msgspec.convert(values, AlertSettings, strict=False)
