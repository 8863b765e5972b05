"""What would have fired: stored history through the runner's own fold, in memory. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.baseline import MetricBaseline, bound_of
from compare.alerts.catch_up import CatchUp
from compare.alerts.cursor import Cursor, PartitionKey
from compare.alerts.fold import FoldState
from compare.alerts.metrics import BY_NAME
from compare.alerts.series import SeriesKey, SeriesState, Status
from compare.alerts.source import read_settled
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.settings_alerts import AlertSettings

_FOREVER_MS = 4_102_444_800_000
"""2100-01-01, Unix milliseconds."""

BaselineChoice = Literal["then", "now", "new"]
"""Which baselines the replay begins with: those that were complete when its time began, those in force now,
or none. A metric without one, and one whose baseline a person had reset, learns it from its first pairs."""


class Period(msgspec.Struct, frozen=True):
    """The mirrored times that are replayed: [since, until), Unix milliseconds."""

    since_ms: int
    until_ms: int


class Found(msgspec.Struct, frozen=True):
    """One alert that would have fired, and when it would have been resolved; None: not within the period."""

    alert: Alert
    resolved_at: datetime | None = None

    def lasted_s(self, end: datetime) -> float:
        """Seconds from the alarm to its end, or to the end of the period."""
        return ((self.resolved_at or end) - self.alert.fired_at).total_seconds()


class SeriesEnd(msgspec.Struct, frozen=True):
    """One series at the end. `closest` is its largest statistic at the end of any hour over its threshold."""

    key: SeriesKey
    status: Status
    pairs: int
    tolerated: float | None
    baseline_version: int
    closest: float


class BaselineEnd(msgspec.Struct, frozen=True):
    """What a metric was tested against; see `MetricBaseline`. `pairs` are those it was taken from."""

    metric: str
    version: int
    chosen_by: Literal["program", "person"]
    is_complete: bool
    pairs: int
    mean: float | None
    bound: float | None
    swing: float
    own_slices: int
    from_at: datetime | None
    to_at: datetime | None


class Backtest(msgspec.Struct, frozen=True):
    """What a replay came to. `records` were folded, pairs and others, in `seconds`."""

    experiment: str
    candidate: str
    since: datetime
    until: datetime
    settings: AlertSettings
    records: int
    seconds: float
    found: list[Found]
    series: list[SeriesEnd]
    baselines: list[BaselineEnd]
    refused: dict[str, int]


def backtest(
    store: Store,
    settings: AlertSettings,
    experiment: str,
    candidate: str,
    period: Period,
    *,
    baselines: BaselineChoice = "then",
    on_progress: Callable[[int], None] = lambda records: None,
) -> Backtest:
    """Fold the period's pairs from detectors at 1. Blocks; raises what the store raises.

    `on_progress` gets the number of records after each chunk. Memory holds one chunk and the series.
    """
    began = time.monotonic()
    known: Mapping[str, MetricBaseline] = {}
    if baselines != "new":
        known = _in_force(store, experiment, candidate, period.since_ms if baselines == "then" else None)
    state = FoldState(cursors=_start(store, experiment, candidate, period.since_ms), baselines=dict(known))
    catch_up = CatchUp(store, settings, experiment, candidate, until_ms=period.until_ms)
    alerts: list[Alert] = []
    closest: dict[SeriesKey, float] = {}
    records = 0
    while (step := catch_up.step(state, state.version + 1)) is not None:
        state = step.state
        alerts += step.events
        for result in state.results:
            closest[result.key] = max(closest.get(result.key, 0.0), result.statistic / result.threshold)
        records += step.pairs
        on_progress(records)
        if not step.is_cut:
            break
    return Backtest(
        experiment=experiment,
        candidate=candidate,
        since=_utc(period.since_ms),
        until=_utc(period.until_ms),
        settings=settings,
        records=records,
        seconds=time.monotonic() - began,
        found=_paired(alerts),
        series=[_end(one, closest.get(one.key, 0.0)) for _, one in sorted(state.series.items())],
        baselines=[_baseline_end(one) for _, one in sorted(state.baselines.items())],
        refused=state.refused,
    )


def count_records(store: Store, experiment: str, candidate: str, period: Period) -> int:
    """About how many records a replay folds, for its progress. Raises what the store raises."""
    rows = store.query(
        "SELECT count() FROM pairs_v1 WHERE experiment = {experiment:String}"
        " AND candidate = {candidate:String} AND mirrored_at >= {since:DateTime64(3, 'UTC')}"
        " AND mirrored_at < {until:DateTime64(3, 'UTC')}",
        {
            "experiment": experiment,
            "candidate": candidate,
            "since": f"{period.since_ms / 1000:.3f}",
            "until": f"{period.until_ms / 1000:.3f}",
        },
    ).rows
    return int(rows[0][0])


def _in_force(store: Store, experiment: str, candidate: str, at_ms: int | None) -> dict[str, MetricBaseline]:
    """By metric the newest baseline of those complete at a time; None is now.

    One that a person had reset by then is open: the metric learns anew, whatever was complete before.
    """
    rows = store.query(
        "SELECT metric, version, document FROM alert_baselines FINAL"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND if(is_open, recorded_at, to_at) <= {by:DateTime64(3, 'UTC')}"
        " ORDER BY metric, version DESC LIMIT 1 BY metric",
        {
            "experiment": experiment,
            "candidate": candidate,
            "by": f"{(_FOREVER_MS if at_ms is None else at_ms) / 1000:.3f}",
        },
    ).rows
    found = {}
    for metric, version, document in rows:
        try:
            found[str(metric)] = msgspec.json.decode(document, type=MetricBaseline)
        except msgspec.MsgspecError as error:
            where = f"{experiment}/{candidate} {metric} version {version}"
            raise FatalError(f"alert_baselines row {where}: {error}") from error
    return found


def _start(store: Store, experiment: str, candidate: str, since_ms: int) -> dict[PartitionKey, Cursor]:
    """Each partition's cursor at its first record of the period; at its end where it has none."""
    rows = store.query(
        "SELECT topic_id, `partition`, min(`offset`) FROM"
        " (SELECT topic_id, `partition`, `offset` FROM pairs_v1 WHERE experiment = {experiment:String}"
        " AND candidate = {candidate:String} AND mirrored_at >= {since:DateTime64(3, 'UTC')}"
        " UNION ALL SELECT topic_id, `partition`, `offset` FROM outcomes_v1"
        " WHERE experiment = {experiment:String} AND mirrored_at >= {since:DateTime64(3, 'UTC')})"
        " GROUP BY topic_id, `partition`",
        {"experiment": experiment, "candidate": candidate, "since": f"{since_ms / 1000:.3f}"},
    ).rows
    first = {(topic_id, partition): int(offset) for topic_id, partition, offset in rows}
    cursors = {}
    for settled in read_settled(store, experiment):
        key = (settled.topic_id, settled.partition)
        offset = first.get(key, settled.end_offset)
        cursors[key] = Cursor(*key, offset, hour_offset=offset)
    return cursors


def _paired(alerts: list[Alert]) -> list[Found]:
    """Each alert once, in the order of firing."""
    resolved = {alert.alert_id: alert.resolved_at for alert in alerts if alert.state == "resolved"}
    return [Found(alert, resolved.get(alert.alert_id)) for alert in alerts if alert.state == "firing"]


def _end(state: SeriesState, closest: float) -> SeriesEnd:
    spec, detector = state.spec, state.detector
    learning = 0 if state.learning is None else state.learning.moments.n
    return SeriesEnd(
        key=state.key,
        status=state.status,
        pairs=learning if detector is None else detector.pairs,
        tolerated=None if spec is None else spec.tolerated,
        baseline_version=0 if spec is None else spec.baseline_version,
        closest=closest,
    )


def _baseline_end(one: MetricBaseline) -> BaselineEnd:
    kind = BY_NAME[one.metric].kind
    has_pairs = one.whole.moments.n > 0
    return BaselineEnd(
        metric=one.metric,
        version=one.version,
        chosen_by=one.chosen_by,
        is_complete=not one.is_open,
        pairs=one.whole.moments.n,
        mean=one.whole.moments.mean if has_pairs and kind != "rank" else None,
        bound=bound_of(kind, one.whole) if has_pairs else None,
        swing=one.swing,
        own_slices=sum(len(parts) for parts in one.own.values()),
        from_at=None if one.from_ms is None else _utc(one.from_ms),
        to_at=None if one.to_ms is None else _utc(one.to_ms),
    )


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
