"""The state of the detectors in ClickHouse: one insert a fold, so all of it is there or none.

Before it, what it refers to is written: baselines that the fold closed, and the drift results of its hours. A
fold that is repeated after a kill writes the same again under the same keys.

One row holds the cursors, the clock and the *outbox* (the alerts that this fold raised or resolved), one
row each series that moved. They share a version and go in one block into one unpartitioned table: one
part, which ClickHouse makes visible at once. Alerts are copied from the outbox to their own table
afterwards and again by the next run, which is harmless (same key, same version): so a kill in between
loses no alert and doubles none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.baseline import MetricBaseline, part_for
from compare.alerts.baseline_log import current_baselines, write_baselines
from compare.alerts.cursor import Cursor
from compare.alerts.drift_log import write_results
from compare.alerts.fenced import generation_of
from compare.alerts.fold import FoldState
from compare.alerts.metrics import BY_NAME
from compare.alerts.series import SeriesKey, SeriesState
from compare.store.client import Store
from ingest.errors import FatalError

COLUMNS = (
    "experiment",
    "candidate",
    "kind",
    "metric",
    "dimension",
    "slice",
    "status",
    "tolerated",
    "threshold",
    "statistic",
    "pairs_folded",
    "candidate_faults",
    "reference_faults",
    "baseline_pairs",
    "alert_id",
    "state",
    "outbox",
    "folded_until",
    "updated_at",
    "version",
    "detector",
    "baseline_version",
    "recovery",
)


class _Position(msgspec.Struct, frozen=True):
    """`closed` are the versions of the closed baselines that the series are tested against, by metric."""

    clock_ms: int
    cursors: list[Cursor]
    closed: dict[str, int] = {}
    refused: dict[str, int] = {}


def load_state(store: Store, experiment: str, candidate: str) -> tuple[FoldState, list[Alert]]:
    """The stored state, or a new one, and the outbox of its last fold.

    Raises FatalError if a row cannot be read, naming it.
    """
    rows = store.query(
        "SELECT kind, metric, dimension, slice, state, outbox, version FROM detector_state FINAL"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND kind IN ('cursor', 'series') ORDER BY kind",
        {"experiment": experiment, "candidate": candidate},
    ).rows
    version, position, outbox = 0, _Position(0, []), list[Alert]()
    series: dict[SeriesKey, SeriesState] = {}
    for kind, metric, dimension, value, text, sent, row_version in rows:
        try:
            if kind == "cursor":
                version = int(row_version)
                position = msgspec.json.decode(text, type=_Position)
                outbox = msgspec.json.decode(sent, type=list[Alert])
            elif generation_of(int(row_version)) == generation_of(version):
                # Another generation's: a woken process wrote it after its lease was gone.
                one = msgspec.json.decode(text, type=SeriesState)
                series[one.key] = one
        except (msgspec.MsgspecError, ValueError) as error:
            where = f"{experiment}/{candidate} {kind} {metric} {dimension} {value}".rstrip()
            raise FatalError(f"detector_state row {where} version {row_version}: {error}") from error
    cursors = {cursor.key: cursor for cursor in position.cursors}
    baselines = current_baselines(store, experiment, candidate, position.closed)
    state = FoldState(version, position.clock_ms, cursors, series, baselines, position.refused)
    return state, outbox


def save_state(
    store: Store,
    experiment: str,
    candidate: str,
    state: FoldState,
    changed: Sequence[SeriesKey],
    outbox: Sequence[Alert],
) -> None:
    """Write the cursor, the changed series and the outbox in one insert."""
    closed = [state.baselines[metric] for metric in state.closed]
    write_baselines(store, experiment, candidate, closed)
    write_results(store, experiment, candidate, state.results, state.version)
    now = datetime.now(UTC)
    until = datetime.fromtimestamp(state.clock_ms / 1000, UTC)
    versions = {one.metric: one.version for one in state.baselines.values() if not one.is_open}
    position = _Position(state.clock_ms, list(state.cursors.values()), versions, state.refused)
    sent = msgspec.json.encode(list(outbox)).decode()
    rows = [_row(experiment, candidate, "cursor", state=msgspec.json.encode(position).decode(), outbox=sent)]
    for key in sorted(changed):
        rows.append(_row(experiment, candidate, "series", **_series(state.series[key], state)))
    for dimension, pairs in sorted(state.refused.items()):
        told = {"dimension": dimension, "status": "slices_refused", "pairs_folded": pairs}
        rows.append(_row(experiment, candidate, "refused", **told))
    common = {"folded_until": until, "updated_at": now, "version": state.version}
    store.insert(
        "detector_state", COLUMNS, [tuple({**row, **common}[name] for name in COLUMNS) for row in rows]
    )


_EMPTY: dict[str, Any] = {
    "metric": "",
    "dimension": "",
    "slice": "",
    "status": "",
    "tolerated": None,
    "threshold": None,
    "statistic": None,
    "pairs_folded": 0,
    "candidate_faults": 0,
    "reference_faults": 0,
    "baseline_pairs": 0,
    "alert_id": "",
    "state": "",
    "outbox": "[]",
    "detector": "",
    "baseline_version": 0,
    "recovery": None,
}


def _row(experiment: str, candidate: str, kind: str, **values: Any) -> dict[str, Any]:
    return {**_EMPTY, "experiment": experiment, "candidate": candidate, "kind": kind, **values}


def _series(state: SeriesState, whole: FoldState) -> dict[str, Any]:
    key, spec, detector = state.key, state.spec, state.detector
    values: dict[str, Any] = {
        "metric": key.metric,
        "dimension": key.dimension,
        "slice": key.value,
        "status": state.status,
        "detector": BY_NAME[key.metric].kind,
        "baseline_pairs": _baseline_pairs(state, whole.baselines.get(key.metric)),
        "alert_id": "" if state.alert is None else state.alert.alert_id,
        "state": msgspec.json.encode(state).decode(),
    }
    if spec is not None and detector is not None:
        values |= {
            "tolerated": spec.tolerated,
            "threshold": spec.threshold,
            "statistic": detector.statistic,
            "pairs_folded": detector.pairs,
            "candidate_faults": detector.candidate,
            "reference_faults": detector.reference,
            "baseline_version": spec.baseline_version,
            "recovery": None if detector.recovery is None else detector.recovery.statistic,
        }
    return values


def _baseline_pairs(state: SeriesState, baseline: MetricBaseline | None) -> int:
    """Pairs of the baseline that the series is tested against, or that it has brought to the open one."""
    if state.learning is not None:
        return state.learning.moments.n
    if baseline is None or baseline.is_open or (state.spec and not state.spec.baseline_version):
        return 0
    return part_for(baseline, state.key.dimension, state.key.value)[0].moments.n
