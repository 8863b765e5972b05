"""The drift results in ClickHouse: each series' hour once, replaced while the hour goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from compare.alerts.drift import HourResult
from compare.store.client import Store

COLUMNS = (
    "experiment",
    "candidate",
    "metric",
    "kind",
    "dimension",
    "slice",
    "hour_at",
    "status",
    "pairs",
    "observed",
    "baseline",
    "tolerated",
    "statistic",
    "threshold",
    "recovery",
    "baseline_version",
    "ingested_at",
    "version",
)


def write_results(
    store: Store, experiment: str, candidate: str, results: Sequence[HourResult], version: int
) -> None:
    """Store these results of the fold with this version; a later one of a series and hour replaces them."""
    now = datetime.now(UTC)
    rows = [
        (
            experiment,
            candidate,
            one.key.metric,
            one.kind,
            one.key.dimension,
            one.key.value,
            datetime.fromtimestamp(one.hour_ms / 1000, UTC),
            one.status,
            one.pairs,
            one.observed,
            one.baseline,
            one.tolerated,
            one.statistic,
            one.threshold,
            one.recovery,
            one.baseline_version,
            now,
            version,
        )
        for one in results
    ]
    if rows:
        store.insert("drift_results", COLUMNS, rows)
