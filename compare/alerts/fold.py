"""Folding records into every series of one experiment and candidate. Pure: no clock, no store.

A chunk is folded metric by metric and slice by slice, each over all its pairs at once. What is decided across
series (baselines, which slices are admitted, alert groups) is decided by the place of the pairs in the fold
order, so that the same pairs come to the same whatever the chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from compare.alerts.advance import Rows, Turn, advance, restarted
from compare.alerts.alert import Alert
from compare.alerts.baseline import MetricBaseline, part_for, tolerated
from compare.alerts.chunk import Chunk, Column, FirstInHour, Identity, Seen, SliceRows, chunk_of, rows_of
from compare.alerts.cursor import Cursor, PartitionKey
from compare.alerts.describe import firing_alert, resolved_alert
from compare.alerts.drift import HourResult, result_of
from compare.alerts.edetector import ONE, DetectorSpec, Floats, Ints
from compare.alerts.learner import Learner
from compare.alerts.learning import HOUR_MS
from compare.alerts.life_group import choose_group
from compare.alerts.metrics import BY_NAME, DIMENSIONS, METRICS, SERIES_FACTOR, Metric
from compare.alerts.series import FoldedPair, HourSum, SeriesKey, SeriesState
from compare.alerts.sketch import Ranks
from ingest.settings_alerts import AlertSettings


class FoldState(msgspec.Struct, frozen=True):
    """Everything that is remembered for one experiment and candidate; stored in one insert.

    `clock_ms` is the time of the last folded record in fold order; it never goes back. `baselines` are by
    metric; one that is not there is open, version 1. `refused` counts, by dimension, the pairs of slices
    beyond `alerts.max_slices`. `results` and `closed` (metrics) are what the last fold brought beside that:
    it is stored with the state, and not read back.
    """

    version: int = 0
    clock_ms: int = 0
    cursors: dict[PartitionKey, Cursor] = {}
    series: dict[SeriesKey, SeriesState] = {}
    baselines: dict[str, MetricBaseline] = {}
    refused: dict[str, int] = {}
    results: tuple[HourResult, ...] = ()
    closed: tuple[str, ...] = ()


class _Event(NamedTuple):
    """A turn of a series at a row of the chunk; sorted into the order in which they would come one by one."""

    row: int
    place: tuple[int, int]
    key: SeriesKey
    spec: DetectorSpec
    turn: Turn


class Folder:
    """Folds records into series. One use: build it from a state, `fold`, read `state_after` and `events`.

    `seen` must hold what was counted in the hour of `clock_ms`.
    """

    def __init__(
        self, *, experiment: str, candidate: str, settings: AlertSettings, state: FoldState, seen: Seen
    ) -> None:
        self._experiment = experiment
        self._candidate = candidate
        self._settings = settings
        self._threshold = float(settings.mean_pairs_between_false_alarms * SERIES_FACTOR)
        # The same promise both ways; a detector needs more than 1.
        self._patience = float(max(settings.mean_pairs_between_false_alarms, 2))
        self._first = FirstInHour(seen, state.clock_ms // HOUR_MS)
        self._state = state
        self.series = dict(state.series)
        self.clock_ms = state.clock_ms
        self.events: list[Alert] = []
        self.changed: set[SeriesKey] = set()
        self._results: dict[tuple[SeriesKey, int], HourResult] = {}
        self.hour_first: dict[PartitionKey, int] | None = None
        """First offset folded by partition in the hour that began during this fold, if one began."""
        self._baselines = dict(state.baselines)
        self._learner = Learner(settings, self.series, self.changed, self._baselines)
        self._refused = dict(state.refused)
        self._slices = {(key.dimension, key.value) for key in self.series}
        self._ranks: dict[tuple[str, int, str, str], Ranks] = {}
        self._turns: list[_Event] = []
        self._clock = np.zeros(0, dtype=np.int64)

    @property
    def seen(self) -> Seen:
        """What was counted in the hour of `clock_ms`."""
        return self._first.seen

    def state_after(self, version: int, cursors: dict[PartitionKey, Cursor]) -> FoldState:
        """The state after what was folded."""
        return FoldState(
            version,
            self.clock_ms,
            cursors,
            self.series,
            self._baselines,
            self._refused,
            tuple(self._results.values()),
            tuple(self._learner.closed),
        )

    def fold(self, pairs: Iterable[tuple[int, FoldedPair]], next_offsets: dict[PartitionKey, int]) -> None:
        """Fold (time in ms, record) in this order.

        `next_offsets` are the cursors before this fold: a record below its own is a late one.
        """
        pairs = list(pairs)
        if not pairs:
            return
        chunk = chunk_of(pairs, self._first, HOUR_MS)
        clock_ms = self.clock_ms
        for time_ms, pair in pairs:
            partition = (pair.topic_id, pair.partition)
            if time_ms // HOUR_MS > clock_ms // HOUR_MS:
                self.hour_first = {}
            clock_ms = max(clock_ms, time_ms)
            if self.hour_first is not None and pair.offset >= next_offsets.get(partition, 0):
                self.hour_first.setdefault(partition, pair.offset)
        self.fold_chunk(chunk)

    def fold_chunk(self, chunk: Chunk) -> None:
        """Fold records that are columns already."""
        if not chunk.time_ms.size:
            return
        self._clock = np.maximum(np.maximum.accumulate(chunk.time_ms), self.clock_ms)
        self.clock_ms = int(self._clock[-1])
        slices = self._admitted(chunk)
        for metric in METRICS:
            self._fold_metric(metric, rows_of(metric, chunk, slices), chunk)
        self._tell(chunk.at_ms, chunk.identity)

    def _admitted(self, chunk: Chunk) -> dict[tuple[str, str], Ints]:
        """The slices that are watched: new ones in the order of their first pairs, up to the cap."""
        known = sum(1 for dimension, _ in self._slices if dimension != "experiment")
        admitted = {}
        for one, rows in sorted(chunk.slices.items(), key=lambda item: (int(item[1][0]), item[0])):
            if one not in self._slices and one[0] != "experiment":
                if known >= self._settings.max_slices:
                    self._refused[one[0]] = self._refused.get(one[0], 0) + len(rows)
                    continue
                known += 1
            self._slices.add(one)
            admitted[one] = rows
        return admitted

    def _fold_metric(self, metric: Metric, rows: SliceRows, chunk: Chunk) -> None:
        """Learn and test in the order of the pairs: a baseline tests the pairs after its last."""
        learner = self._learner
        if metric.declared_in(self._settings) is None:
            if learner.baseline(metric).is_open:
                end, is_complete = learner.end_of_first(metric, rows, chunk)
                learner.add(metric, _before(rows, end), chunk)
                if is_complete:
                    learner.close(metric, int(chunk.at_ms[end - 1]))
                rows = _after(rows, end)
            if learner.is_refining(metric):
                end, is_complete = learner.end_of_second(metric, rows, chunk)
                tested = _before(rows, end)
                self._test(metric, tested, chunk)
                if self._is_alarmed(metric):
                    learner.give_up(metric)
                else:
                    learner.add(metric, tested, chunk)
                    if is_complete:
                        learner.close(metric, int(chunk.at_ms[end - 1]))
                rows = _after(rows, end)
        self._test(metric, rows, chunk)

    def _test(self, metric: Metric, rows: SliceRows, chunk: Chunk) -> None:
        for (dimension, value), inside in rows.items():
            key = SeriesKey(metric.name, dimension, value)
            self._move(metric, key, chunk.columns[metric.name], inside, chunk)

    def _is_alarmed(self, metric: Metric) -> bool:
        """Whether the metric has an open alert, or had one in this chunk, in any slice."""
        return any(event.key.metric == metric.name for event in self._turns) or any(
            key.metric == metric.name and state.alert is not None for key, state in self.series.items()
        )

    def _put(self, key: SeriesKey, **changes: object) -> SeriesState:
        state = msgspec.structs.replace(self.series.get(key) or SeriesState(key), **changes)
        self.series[key] = state
        self.changed.add(key)
        return state

    def _spec(self, metric: Metric, key: SeriesKey) -> DetectorSpec | None:
        """The detector of a series, None where its baseline leaves nothing to bet on."""
        declared, version = metric.declared_in(self._settings), 0
        if declared is None:
            baseline = self._learner.baseline(metric)
            declared, version = tolerated(baseline, key.dimension, key.value), baseline.version
        if declared is None:
            return None
        return DetectorSpec(metric.kind, declared, self._threshold, self._patience, version)

    def _move(self, metric: Metric, key: SeriesKey, column: Column, rows: Ints, chunk: Chunk) -> None:
        state = self.series.get(key) or SeriesState(key)
        spec = self._spec(metric, key)
        if spec is None:
            self._put(key, spec=None, detector=None, is_untestable=True)
            return
        detector = state.detector
        if detector is None or state.spec != spec:
            detector = restarted(spec, detector, is_firing=state.alert is not None)
        x = column.x[rows]
        if metric.kind == "rank":
            x = self._ranks_of(metric, key).of(x)
        nothing = np.zeros(rows.size, dtype=np.int64)
        moved = Rows(
            x,
            nothing if column.candidate is None else column.candidate[rows],
            nothing if column.reference is None else column.reference[rows],
            chunk.at_ms[rows],
        )
        hours = self._clock[rows] // HOUR_MS
        ends = [*(np.flatnonzero(np.diff(hours)) + 1).tolist(), rows.size]
        place = (METRICS.index(metric), DIMENSIONS.index(key.dimension))
        begin, hour = 0, state.hour
        for end in ends:
            inside = moved.between(begin, end)
            detector, turns = advance(spec, detector, inside)
            for turn in turns:
                self._turns.append(_Event(int(rows[begin + turn.row]), place, key, spec, turn))
            hour = _in_hour(hour, int(hours[begin]) * HOUR_MS, inside.x)
            center = self._center(metric, key)
            self._results[key, hour.hour_ms] = result_of(metric, key, spec, detector, hour, center)
            begin = end
        self._put(key, spec=spec, detector=detector, hour=hour, is_untestable=False)

    def _center(self, metric: Metric, key: SeriesKey) -> float:
        """The baseline's own mean of x; what is tolerated where that is declared."""
        declared = metric.declared_in(self._settings)
        if declared is not None:
            return declared
        part, _ = part_for(self._learner.baseline(metric), key.dimension, key.value)
        return 0.5 if metric.kind == "rank" else part.moments.mean

    def _ranks_of(self, metric: Metric, key: SeriesKey) -> Ranks:
        baseline = self._learner.baseline(metric)
        part, is_own = part_for(baseline, key.dimension, key.value)
        # A baseline may be replaced within the chunk.
        name = (metric.name, baseline.version, *((key.dimension, key.value) if is_own else ("", "")))
        if name not in self._ranks:
            if part.sketch is None:
                raise ValueError(f"baseline of {metric.name} version {baseline.version}: no sketch")
            self._ranks[name] = Ranks(part.sketch)
        return self._ranks[name]

    def _tell(self, at_ms: Ints, identity: Callable[[int], Identity]) -> None:
        """Turn what fired and was resolved into alerts, in the order of the pairs."""
        open_alerts = {key: state.alert for key, state in self.series.items() if state.alert is not None}
        for row, _, key, spec, turn in sorted(self._turns, key=lambda event: event[:2]):
            at = int(at_ms[row])
            alert = open_alerts.pop(key, None)
            if turn.signal == "fired":
                alert_id = self._identify(key, identity(row))
                started_ms = turn.judged.leading.started_ms
                group_key = choose_group(
                    alert_id,
                    BY_NAME[key.metric].category,
                    at if started_ms is None else started_ms,
                    open_alerts.values(),
                )
                alert = firing_alert(
                    alert_id=alert_id,
                    group_key=group_key,
                    experiment=self._experiment,
                    candidate=self._candidate,
                    key=key,
                    spec=spec,
                    judged=turn.judged,
                    at_ms=at,
                )
                open_alerts[key] = alert
                self.events.append(alert)
            elif alert is not None:
                self.events.append(resolved_alert(alert, judged=turn.judged, at_ms=at))
            self._put(key, alert=open_alerts.get(key))
        self._turns.clear()

    def _identify(self, key: SeriesKey, identity: Identity) -> str:
        """The same alarm at the same pair has the same id on every replay."""
        parts = [self._experiment, self._candidate, *msgspec.structs.astuple(key), *identity]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def _before(rows: SliceRows, end: int) -> SliceRows:
    cut = {one: inside[: np.searchsorted(inside, end)] for one, inside in rows.items()}
    return {one: inside for one, inside in cut.items() if inside.size}


def _after(rows: SliceRows, end: int) -> SliceRows:
    cut = {one: inside[np.searchsorted(inside, end) :] for one, inside in rows.items()}
    return {one: inside for one, inside in cut.items() if inside.size}


def _in_hour(hour: HourSum | None, hour_ms: int, x: Floats) -> HourSum:
    kept = hour if hour is not None and hour.hour_ms == hour_ms else HourSum(hour_ms)
    return HourSum(hour_ms, kept.pairs + x.size, kept.sum_x + int(np.floor(x * ONE).astype(np.int64).sum()))
