"""`gnomon alerts baseline`: what the alerts are judged against, and choosing it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.locate import locate_store, settings_in_force, store_options
from compare.cli.person import who
from compare.cli.times import TimeOrAgo

if TYPE_CHECKING:
    from compare.store.client import Store
    from ingest.settings import StoreSettings
    from ingest.settings_alerts import AlertSettings

_experiment = click.option(
    "--experiment", help="Which one.  [default: that of the settings, else the store's only one]"
)
_candidate = click.option("--candidate", help="Which one.  [default: the experiment's only one]")
_metrics = click.option(
    "--metric", "metrics", multiple=True, help="Only this metric; may be repeated.  [default: all]"
)
_note = click.option("--note", default="", help="Why, for those who look at it later.")
_json_option = click.option(
    "--json", "is_json", is_flag=True, help="Print JSON: the rows of alert_baselines_v1."
)
_COLUMNS = (
    "metric", "version", "chosen_by", "is_open", "from_at", "to_at", "pairs", "mean", "bound", "swing",
    "own_slices", "note", "recorded_at",
)  # fmt: skip


@click.group()
def baseline() -> None:
    """Show and choose the baselines that alerts are judged against.

    The program learns one for each metric from an experiment's first comparable pairs. A person may choose a
    better time, or have it learned anew; the detectors start anew with the next run of the alerts.
    """


@baseline.command("list")
@_experiment
@_candidate
@_metrics
@_json_option
@store_options
def list_baselines(
    experiment: str | None,
    candidate: str | None,
    metrics: tuple[str, ...],
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """List every version of each metric's baseline, newest first. The first of a metric is in force."""
    _print(experiment, candidate, metrics, is_json, folder, config_file, newest_only=False)


@baseline.command()
@_experiment
@_candidate
@_metrics
@_json_option
@store_options
def show(
    experiment: str | None,
    candidate: str | None,
    metrics: tuple[str, ...],
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Show the baseline in force of each metric, and what is tested against a declared tolerance."""
    _print(experiment, candidate, metrics, is_json, folder, config_file, newest_only=True)


@baseline.command("set")
@click.option(
    "--from", "start", type=TimeOrAgo(), required=True, metavar="TIME", help="First, as 7d or a time."
)
@click.option("--to", "end", type=TimeOrAgo(), metavar="TIME", help="Last.  [default: now]")
@_experiment
@_candidate
@_metrics
@_note
@store_options
def set_window(
    start: datetime,
    end: datetime | None,
    experiment: str | None,
    candidate: str | None,
    metrics: tuple[str, ...],
    note: str,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Judge by the traffic of a time: the pairs mirrored between --from and --to.

    A time of a day or more shows the swing of the traffic, and gives slices a bound of their own. A metric
    with fewer comparable pairs than alerts.baseline_min_pairs keeps what it has; with --metric that is an
    error.
    """
    from compare.alerts.baseline_choice import choose_window, learnable
    from compare.row_values import milliseconds
    from compare.store.client import open_store
    from ingest.errors import FatalError

    end = end or datetime.now(UTC)
    if start >= end:
        raise click.UsageError("--from must be before --to")
    store_settings, settings, named = _settings(folder, config_file)
    chosen_metrics = learnable(settings, metrics)
    with open_store(store_settings, role="any") as store:
        experiment, candidate = _which(store, experiment or named, candidate)
        chosen, few = choose_window(
            store,
            settings,
            experiment,
            candidate,
            chosen_metrics,
            start_ms=milliseconds(start),
            end_ms=milliseconds(end),
            note=_signed(note),
        )
    for one in chosen:
        click.echo(f"{one.metric}: version {one.version} of {one.whole.moments.n} pairs")
    for name, count in few.items():
        click.echo(f"{name}: {count} comparable pairs, needs {settings.baseline_min_pairs}: kept as it is")
    if few and (metrics or not chosen):
        name, count = next(iter(few.items()))
        raise FatalError(
            f"{name} of {experiment}/{candidate} has {count} comparable pairs in that time;"
            f" a baseline needs {settings.baseline_min_pairs} (alerts.baseline_min_pairs)"
        )


@baseline.command()
@_experiment
@_candidate
@_metrics
@_note
@store_options
def reset(
    experiment: str | None,
    candidate: str | None,
    metrics: tuple[str, ...],
    note: str,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Forget the baselines and learn them anew, from the next pairs on.

    Until they are complete these metrics raise no alert, and open alerts of theirs stay open.
    """
    from compare.alerts.baseline_choice import learn_anew, learnable
    from compare.store.client import open_store

    store_settings, settings, named = _settings(folder, config_file)
    chosen = learnable(settings, metrics)
    with open_store(store_settings, role="any") as store:
        experiment, candidate = _which(store, experiment or named, candidate)
        for one in learn_anew(store, experiment, candidate, chosen, _signed(note)):
            click.echo(f"{one.metric}: learned anew as version {one.version + 1}")


def _signed(note: str) -> str:
    return f"{who()}: {note}" if note else who()


def _print(
    experiment: str | None,
    candidate: str | None,
    metrics: tuple[str, ...],
    is_json: bool,
    folder: Path | None,
    config_file: Path | None,
    *,
    newest_only: bool,
) -> None:
    from compare.alerts.metrics import METRICS
    from compare.store.client import open_store
    from compare.store.print_table import format_result, json_row

    store_settings, settings, named = _settings(folder, config_file)
    with open_store(store_settings, role="reader") as store:
        experiment, candidate = _which(store, experiment or named, candidate)
        rows = store.query(
            f"SELECT {', '.join(_COLUMNS)} FROM alert_baselines_v1"
            " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
            " AND (empty({metrics:Array(String)}) OR has({metrics:Array(String)}, metric))"
            " ORDER BY metric, version DESC" + (" LIMIT 1 BY metric" if newest_only else ""),
            {"experiment": experiment, "candidate": candidate, "metrics": list(metrics)},
        ).rows
    if is_json:
        objects = [json_row(_COLUMNS, row) for row in rows]
        click.echo(json.dumps(objects, ensure_ascii=False, indent=2, allow_nan=False))
        return
    if rows:
        click.echo(format_result(_COLUMNS, rows, "table"))
    else:
        click.echo(f"{experiment}/{candidate} has no complete baseline yet")
    for metric in METRICS if newest_only else ():
        declared = metric.declared_in(settings)
        if declared is not None and (not metrics or metric.name in metrics):
            click.echo(f"{metric.name}: {declared:g} is declared (alerts.{metric.setting})")


def _settings(
    folder: Path | None, config_file: Path | None
) -> tuple[StoreSettings, AlertSettings, str | None]:
    """The store, the alerts' settings and the experiment that the options name."""
    from ingest.settings_alerts import AlertSettings

    settings = settings_in_force(folder, config_file)
    if settings is not None:
        return settings.store, settings.alerts, settings.experiment.name
    return locate_store(folder, config_file), AlertSettings(), None


def _which(store: Store, experiment: str | None, candidate: str | None) -> tuple[str, str]:
    """The experiment and its candidate. Raises FatalError where the store knows none such, or several."""
    from compare.alerts.watched import candidates_of, the_only_experiment
    from ingest.errors import FatalError

    experiment = experiment or the_only_experiment(store)
    known = candidates_of(store, experiment)
    if candidate is None:
        if len(known) != 1:
            raise FatalError(
                f"experiment {experiment} has the candidates {', '.join(known)}: give --candidate"
            )
        return experiment, known[0]
    if candidate not in known:
        raise FatalError(f"experiment {experiment} has no candidate {candidate}; it has {', '.join(known)}")
    return experiment, candidate
