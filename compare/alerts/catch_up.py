"""Folding what is settled and new, chunk by chunk, without writing: the runner and the backtest share it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.chunk import Seen
from compare.alerts.cursor import Cursor, Feed, PartitionKey, hour_started, merge
from compare.alerts.fold import Folder, FoldState
from compare.alerts.series import SeriesKey
from compare.alerts.source import read_feeds, read_seen
from compare.store.client import Store
from ingest.settings_alerts import AlertSettings

log = logging.getLogger(__name__)


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
    """Folds one candidate's pairs from a state on. Blocks; raises what the store raises.

    With `until_ms` a partition ends at its first record whose time is not before it, in Unix milliseconds.
    """

    def __init__(
        self,
        store: Store,
        settings: AlertSettings,
        experiment: str,
        candidate: str,
        *,
        until_ms: int | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._experiment = experiment
        self._candidate = candidate
        self._until_ms = until_ms
        self._last: tuple[FoldState, Seen] | None = None
        """The state of our last step, and what was counted in its hour: it need not be read back."""

    def step(self, state: FoldState, version: int) -> Step | None:
        """Fold the next chunk; the new state has this version. None if nothing is new."""
        feeds, is_cut = read_feeds(self._store, self._experiment, self._candidate, state.cursors)
        if self._until_ms is not None:
            feeds = [ended_at(feed, self._until_ms) for feed in feeds]
            is_cut = any(feed.is_cut for feed in feeds)
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
        after = folder.state_after(version, cursors)
        for dimension in sorted(after.refused.keys() - state.refused.keys()):
            log.warning(
                "alerts of %s/%s: over %d slices: further ones of %s are counted, not watched"
                " (alerts.max_slices)",
                self._experiment, self._candidate, self._settings.max_slices, dimension,
            )  # fmt: skip
        self._last = after, folder.seen
        return Step(after, sorted(folder.changed), folder.events, len(pairs), is_cut)

    def _seen(self, state: FoldState) -> Seen:
        if self._last is not None and self._last[0] is state:
            return self._last[1]
        return read_seen(self._store, self._experiment, self._candidate, state.cursors)


def ended_at(feed: Feed, until_ms: int) -> Feed:
    """The feed up to its first record whose time, the running maximum, is not before `until_ms`."""
    time_ms = feed.cursor.time_ms
    for count, pair in enumerate(feed.pairs):
        time_ms = max(time_ms, pair.mirrored_ms)
        if time_ms >= until_ms:
            return msgspec.structs.replace(
                feed, pairs=feed.pairs[:count], end_offset=pair.offset, is_behind=False, is_cut=False
            )
    return feed


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
