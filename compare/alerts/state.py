"""The state of the detectors in ClickHouse: one insert a fold, so all of it is there or none.

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
from compare.alerts.cursor import Cursor
from compare.alerts.fenced import generation_of
from compare.alerts.fold import FoldState
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
)


class _Position(msgspec.Struct, frozen=True):
    clock_ms: int
    cursors: list[Cursor]


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
    return FoldState(version, position.clock_ms, cursors, series), outbox


def save_state(
    store: Store,
    experiment: str,
    candidate: str,
    state: FoldState,
    changed: Sequence[SeriesKey],
    outbox: Sequence[Alert],
) -> None:
    """Write the cursor, the changed series and the outbox in one insert."""
    now = datetime.now(UTC)
    until = datetime.fromtimestamp(state.clock_ms / 1000, UTC)
    position = msgspec.json.encode(_Position(state.clock_ms, list(state.cursors.values()))).decode()
    empty: tuple[Any, ...] = ("", "", "", "", None, None, None, 0, 0, 0, 0, "")
    sent = msgspec.json.encode(list(outbox)).decode()
    rows = [(experiment, candidate, "cursor", *empty, position, sent, until, now, state.version)]
    for key in sorted(changed):
        rows.append((experiment, candidate, "series", *_series(state.series[key]), until, now, state.version))
    store.insert("detector_state", COLUMNS, rows)


def _series(state: SeriesState) -> tuple[Any, ...]:
    key, spec, detector = state.key, state.spec, state.detector
    return (
        key.metric,
        key.dimension,
        key.value,
        state.status,
        None if spec is None else spec.tolerated,
        None if spec is None else spec.threshold,
        None if detector is None else detector.statistic,
        0 if detector is None else detector.pairs,
        0 if detector is None else detector.candidate,
        0 if detector is None else detector.reference,
        state.baseline.pairs,
        "" if state.alert is None else state.alert.alert_id,
        msgspec.json.encode(state).decode(),
        "[]",
    )
