"""Baselines that a person chooses: from a time of the stored traffic, or learned anew from now on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compare.alerts.baseline import MetricBaseline
from compare.alerts.baseline_log import next_version, write_baselines
from compare.alerts.chunk import FirstInHour, chunk_of, rows_of
from compare.alerts.learner import Learner
from compare.alerts.learning import HOUR_MS
from compare.alerts.metrics import BY_NAME, METRICS, Metric
from compare.alerts.source import read_window
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.settings_alerts import AlertSettings


def learnable(settings: AlertSettings, names: Sequence[str]) -> list[Metric]:
    """The metrics of these names, or all that are tested against a baseline where there are none.

    Raises FatalError if one is not known, or is tested against a declared tolerance.
    """
    for name in names:
        if name not in BY_NAME:
            raise FatalError(f"no metric is called {name}; there are {', '.join(BY_NAME)}")
        if BY_NAME[name].declared_in(settings) is not None:
            key = BY_NAME[name].setting
            raise FatalError(f"{name} is tested against alerts.{key}, which is declared, not a baseline")
    chosen = [BY_NAME[name] for name in names] or list(METRICS)
    return [metric for metric in chosen if metric.declared_in(settings) is None]


def choose_window(
    store: Store,
    settings: AlertSettings,
    experiment: str,
    candidate: str,
    metrics: Sequence[Metric],
    *,
    start_ms: int,
    end_ms: int,
    note: str = "",
) -> tuple[list[MetricBaseline], dict[str, int]]:
    """Make the records of a time the baseline of these metrics, from the next run of the alerts on.

    Returns the new baselines, and by metric how many comparable pairs there were where those are fewer
    than `alerts.baseline_min_pairs`: such a metric keeps the baseline it has.
    """
    learner = Learner(settings, {}, set(), {})
    first = FirstInHour({}, 0)
    counts = dict.fromkeys((metric.name for metric in metrics), 0)
    for page in read_window(store, experiment, candidate, start_ms, end_ms):
        chunk = chunk_of([(pair.mirrored_ms, pair) for pair in page], first, HOUR_MS)
        for metric in metrics:
            rows = rows_of(metric, chunk, chunk.slices)
            learner.add(metric, rows, chunk)
            counts[metric.name] += sum(
                inside.size for one, inside in rows.items() if one == ("experiment", "")
            )
    few = {name: count for name, count in counts.items() if count < settings.baseline_min_pairs}
    chosen = []
    for metric in metrics:
        if metric.name in few:
            continue
        learner.close(metric, end_ms)
        version = next_version(store, experiment, candidate, metric.name)
        chosen.append(msgspec.structs.replace(learner.baseline(metric), version=version, chosen_by="person"))
    write_baselines(store, experiment, candidate, chosen, note)
    return chosen, few


def learn_anew(
    store: Store, experiment: str, candidate: str, metrics: Sequence[Metric], note: str = ""
) -> list[MetricBaseline]:
    """Forget these metrics' baselines: from the next run of the alerts on they are learned from new pairs."""
    opened = [
        MetricBaseline(
            metric=metric.name,
            version=next_version(store, experiment, candidate, metric.name),
            chosen_by="person",
        )
        for metric in metrics
    ]
    write_baselines(store, experiment, candidate, opened, note)
    return opened
