"""Folding what is settled and new, chunk by chunk, without writing: the runner and the backtest share it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.cursor import Cursor, PartitionKey, hour_started, merge
from compare.alerts.describe import summary
from compare.alerts.evidence import with_evidence
from compare.alerts.fold import Folder, FoldState, Seen
from compare.alerts.series import SeriesKey
from compare.alerts.source import read_feeds, read_seen
from compare.store.client import Store
from ingest.settings_alerts import AlertSettings


class Step(msgspec.Struct, frozen=True):
    """What one chunk came to: the state after it, which series moved, and what fired or was resolved.

    `pairs` were folded; `is_cut` says that more are ready for the next chunk.
    """

    state: FoldState
    changed: list[SeriesKey]
    events: list[Alert]
    pairs: int
    is_cut: bool


class CatchUp:
    """Folds one candidate's pairs from a state on. Blocks; raises what the store raises."""

    def __init__(self, store: Store, settings: AlertSettings, experiment: str, candidate: str) -> None:
        self._store = store
        self._settings = settings
        self._experiment = experiment
        self._candidate = candidate
        self._last: tuple[FoldState, Seen] | None = None
        """The state of our last step, and what was counted in its hour: it need not be read back."""

    def step(self, state: FoldState, version: int) -> Step | None:
        """Fold the next chunk; the new state has this version. None if nothing is new."""
        feeds, is_cut = read_feeds(self._store, self._experiment, self._candidate, state.cursors)
        pairs, cursors = merge(feeds)
        cursors = {**state.cursors, **cursors}
        if cursors == state.cursors:
            return None
        folder = Folder(
            experiment=self._experiment,
            candidate=self._candidate,
            settings=self._settings,
            state=state,
            seen=self._seen(state),
        )
        folder.fold(pairs, {key: cursor.next_offset for key, cursor in state.cursors.items()})
        if folder.hour_first is not None:
            cursors = hour_started(cursors, folder.hour_first)
        evident = {
            alert.alert_id: with_evidence(self._store, alert)
            for alert in folder.events
            if alert.state == "firing"
        }
        after = folder.state_after(version, cursors)
        series = dict(after.series)
        for key in folder.changed:
            alert = series[key].alert
            if alert is not None:
                series[key] = msgspec.structs.replace(series[key], alert=_filled(alert, evident))
        after = msgspec.structs.replace(after, series=series)
        self._last = after, folder.seen
        events = [_filled(alert, evident) for alert in folder.events]
        return Step(after, sorted(folder.changed), events, len(pairs), is_cut)

    def _seen(self, state: FoldState) -> Seen:
        if self._last is not None and self._last[0] is state:
            return self._last[1]
        return read_seen(self._store, self._experiment, self._candidate, state.cursors)


def backlog(store: Store, experiment: str, candidate: str, cursors: Mapping[PartitionKey, Cursor]) -> int:
    """Stored pairs at or above the cursors: what no detector has seen. Raises what the store raises."""
    parameters: dict[str, object] = {"experiment": experiment, "candidate": candidate}
    ranges, others = [], []
    for number, cursor in enumerate(cursors.values()):
        parameters[f"topic_{number}"] = cursor.topic_id
        parameters[f"partition_{number}"] = cursor.partition
        parameters[f"next_{number}"] = cursor.next_offset
        mine = f"topic_id = {{topic_{number}:String}} AND `partition` = {{partition_{number}:UInt32}}"
        ranges.append(f"({mine} AND `offset` >= {{next_{number}:UInt64}})")
        others.append(f"NOT ({mine})")
    # Ranges of the primary key, so that only the new end of each partition is read.
    new = f" AND ({' OR '.join(ranges)} OR ({' AND '.join(others)}))" if ranges else ""
    rows = store.query(
        "SELECT count() FROM pairs_v1 WHERE experiment = {experiment:String}"
        " AND candidate = {candidate:String}" + new,
        parameters,
    ).rows
    return int(rows[0][0])


def _filled(alert: Alert, evident: dict[str, Alert]) -> Alert:
    """The alert with the evidence that was just read for it, if it fired in this fold."""
    from_store = evident.get(alert.alert_id)
    if from_store is None:
        return alert
    filled = msgspec.structs.replace(alert, families=from_store.families, worst_pairs=from_store.worst_pairs)
    return msgspec.structs.replace(filled, summary=summary(filled))
