"""Folding pairs into every series of one experiment and candidate. Pure: no clock, no store.

Pairs are taken one by one, each moving all its series, so that "another alert is firing now" means the
same on every replay of the same pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.baseline import Baseline, upper_rate
from compare.alerts.cursor import Cursor, PartitionKey
from compare.alerts.describe import firing_alert, resolved_alert
from compare.alerts.edetector import MAX_P1, DetectorSpec, fresh, step
from compare.alerts.series import METRICS, SERIES_FACTOR, FoldedPair, SeriesKey, SeriesState
from ingest.settings_alerts import AlertSettings

HOUR_MS = 3_600_000

Seen = set[tuple[str, str, str]]
"""(dimension, value, request hash) already counted in the current hour of the fold clock."""


class FoldState(msgspec.Struct, frozen=True):
    """Everything that is remembered for one experiment and candidate; stored in one insert.

    `clock_ms` is the time of the last folded pair in fold order; it never goes back.
    """

    version: int = 0
    clock_ms: int = 0
    cursors: dict[PartitionKey, Cursor] = {}
    series: dict[SeriesKey, SeriesState] = {}


class Folder:
    """Folds pairs into series. One use: build it from a state, `fold`, read `series` and `events`.

    `seen` must hold what was counted in the hour of `clock_ms`.
    """

    def __init__(
        self, *, experiment: str, candidate: str, settings: AlertSettings, state: FoldState, seen: Seen
    ) -> None:
        self._experiment = experiment
        self._candidate = candidate
        self._settings = settings
        self._threshold = float(settings.mean_pairs_between_false_alarms * SERIES_FACTOR)
        self._paired = DetectorSpec("candidate_only_excess", settings.tolerated_excess_rate, self._threshold)
        self.seen = set(seen)
        self.series = dict(state.series)
        self.clock_ms = state.clock_ms
        self.events: list[Alert] = []
        self.changed: set[SeriesKey] = set()
        self.hour_first: dict[PartitionKey, int] | None = None
        """First offset folded by partition in the hour that began during this fold, if one began."""
        self._groups = {s.key: s.alert.group_key for s in self.series.values() if s.alert is not None}

    def fold(self, pairs: Iterable[tuple[int, FoldedPair]], next_offsets: dict[PartitionKey, int]) -> None:
        """Fold (time in ms, pair) in this order.

        `next_offsets` are the cursors before this fold: a pair below its own is a late one.
        """
        for time_ms, pair in pairs:
            partition = (pair.topic_id, pair.partition)
            if time_ms // HOUR_MS > self.clock_ms // HOUR_MS:
                self.seen.clear()
                self.hour_first = {}
            self.clock_ms = max(self.clock_ms, time_ms)
            if self.hour_first is not None and pair.offset >= next_offsets.get(partition, 0):
                self.hour_first.setdefault(partition, pair.offset)
            if not pair.is_counted:
                continue
            for dimension, value in pair.slices():
                # A client that retries a faulty prompt must not count it again and again.
                once = (dimension, value, pair.request_hash)
                if once in self.seen:
                    continue
                self.seen.add(once)
                for metric in METRICS:
                    self._move(SeriesKey(metric, dimension, value), pair)

    def _move(self, key: SeriesKey, pair: FoldedPair) -> None:
        state = self.series.get(key) or SeriesState(key)
        candidate, reference = pair.flags(key.metric)
        spec = self._spec(key)
        self.changed.add(key)
        if spec is None:
            self.series[key] = self._extend_baseline(state, is_faulty=candidate)
            return
        detector = state.detector
        if detector is None or state.spec != spec:
            detector = fresh(spec, is_firing=state.alert is not None)
        detector, signal, judged = step(
            spec, detector, candidate=candidate, reference=reference, at_ms=pair.mirrored_ms
        )
        alert = state.alert
        if signal == "fired":
            alert_id = self._identify(key, pair)
            group_key = min(self._groups.values(), default=alert_id)
            self._groups[key] = group_key
            alert = firing_alert(
                alert_id=alert_id,
                group_key=group_key,
                experiment=self._experiment,
                candidate=self._candidate,
                key=key,
                spec=spec,
                judged=judged,
                at_ms=pair.mirrored_ms,
            )
            self.events.append(alert)
        elif signal == "resolved" and alert is not None:
            self.events.append(resolved_alert(alert, judged=judged, at_ms=pair.mirrored_ms))
            self._groups.pop(key, None)
            alert = None
        self.series[key] = msgspec.structs.replace(state, spec=spec, detector=detector, alert=alert)

    def _spec(self, key: SeriesKey) -> DetectorSpec | None:
        """The detector of a series now, None while its p0 is not known or too high to bet against."""
        if key.metric == "candidate_only_excess":
            return self._paired
        declared = self._settings.tolerated_regression_rate
        if declared is None:
            # A route leans on the whole experiment's baseline.
            whole = self.series.get(SeriesKey(key.metric, "experiment", ""))
            declared = None if whole is None else whole.baseline_rate
        if declared is None or declared >= MAX_P1:
            return None
        return DetectorSpec(key.metric, declared, self._threshold)

    def _extend_baseline(self, state: SeriesState, *, is_faulty: bool) -> SeriesState:
        """Count a pair towards the baseline; when it is complete, freeze its bound."""
        if state.baseline_rate is not None:
            return state
        baseline = Baseline(state.baseline.pairs + 1, state.baseline.faulty + is_faulty)
        is_complete = baseline.pairs >= self._settings.baseline_min_pairs
        rate = upper_rate(baseline, SERIES_FACTOR) if is_complete else None
        return msgspec.structs.replace(state, baseline=baseline, baseline_rate=rate)

    def _identify(self, key: SeriesKey, pair: FoldedPair) -> str:
        """The same alarm at the same pair has the same id on every replay."""
        parts = [self._experiment, self._candidate, *msgspec.structs.astuple(key)]
        parts += [pair.topic_id, pair.partition, pair.offset]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]
