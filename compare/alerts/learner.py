"""Learning a metric's baseline while its records are folded, in two steps.

1. The first `alerts.baseline_min_pairs` comparable pairs make the first baseline. It stands from then on.
2. Where they cover less than `alerts.baseline_hours`, pairs are added on, and the first so many hours make
the second one, which has seen the traffic's day: its swing is observed and no longer feared, and slices
have pairs of their own. But for this the metric must not have raised an alert on the way, in any slice:
what may be drift is never learned, and the first baseline stands until a person chooses another.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.baseline import MetricBaseline, closed
from compare.alerts.chunk import Chunk, SliceRows
from compare.alerts.edetector import Ints
from compare.alerts.learning import HOUR_MS, Part, learned
from compare.alerts.metrics import Metric
from compare.alerts.series import SeriesKey, SeriesState
from ingest.settings_alerts import AlertSettings


class Learner:
    """Reads and changes the series and baselines of one fold; `changed` and `closed` name what it touched."""

    def __init__(
        self,
        settings: AlertSettings,
        series: dict[SeriesKey, SeriesState],
        changed: set[SeriesKey],
        baselines: dict[str, MetricBaseline],
    ) -> None:
        self._settings = settings
        self._series = series
        self._changed = changed
        self._baselines = baselines
        self.closed: list[str] = []

    def baseline(self, metric: Metric) -> MetricBaseline:
        """The baseline in force; open if there is none yet."""
        return self._baselines.get(metric.name) or MetricBaseline(metric=metric.name)

    def is_refining(self, metric: Metric) -> bool:
        """Whether pairs are being added for the second baseline."""
        return not self.baseline(metric).is_open and self._whole(metric).first_ms is not None

    def end_of_first(self, metric: Metric, rows: SliceRows, chunk: Chunk) -> tuple[int, bool]:
        """The first row after the first baseline, and whether it is complete there; all rows if it is not."""
        whole = _whole_rows(rows)
        counts = self._whole(metric).moments.n + 1 + np.arange(whole.size)
        return _end(whole, counts >= self._settings.baseline_min_pairs, chunk)

    def end_of_second(self, metric: Metric, rows: SliceRows, chunk: Chunk) -> tuple[int, bool]:
        """The same of the second baseline."""
        whole, first_ms = _whole_rows(rows), self._whole(metric).first_ms
        since = chunk.time_ms[whole] - (0 if first_ms is None else first_ms)
        return _end(whole, since >= self._settings.baseline_hours * HOUR_MS, chunk)

    def add(self, metric: Metric, rows: SliceRows, chunk: Chunk) -> None:
        """Add these rows to what is being learned. Nothing is tested while no baseline is in force."""
        before = self.baseline(metric)
        version = before.version + 1
        for (dimension, value), inside in rows.items():
            key = SeriesKey(metric.name, dimension, value)
            part = learned(
                self._part(key, version),
                chunk.columns[metric.name].x[inside],
                chunk.at_ms[inside],
                is_rank=metric.kind == "rank",
                is_whole=dimension == "experiment",
            )
            self._put(key, part, version)
            if before.is_open and self._series[key].spec is not None:
                # Its baseline was reset; an open alert stays as it is until there is another.
                self._series[key] = msgspec.structs.replace(self._series[key], spec=None)

    def close(self, metric: Metric, at_ms: int) -> None:
        """Make the baseline of what was learned; `at_ms` is its last pair. Learn on if it is too short."""
        before = self.baseline(metric)
        mine = self._learning(metric, before.version + 1)
        from_ms = self._whole(metric).first_ms
        parts = {(key.dimension, key.value): part for key, part in mine.items()}
        is_short = from_ms is None or at_ms - from_ms < self._settings.baseline_hours * HOUR_MS
        self._baselines[metric.name] = closed(
            before,
            parts,
            min_pairs=self._settings.baseline_min_pairs,
            from_ms=at_ms if from_ms is None else from_ms,
            to_ms=at_ms,
        )
        self.closed.append(metric.name)
        for key, part in mine.items():
            self._put(key, part if before.is_open and is_short else None, before.version + 2)

    def give_up(self, metric: Metric) -> None:
        """Forget what was learned since the first baseline."""
        for key in self._learning(metric, self.baseline(metric).version + 1):
            self._put(key, None, 0)

    def _learning(self, metric: Metric, version: int) -> dict[SeriesKey, Part]:
        return {
            key: state.learning
            for key, state in self._series.items()
            if key.metric == metric.name and state.learning is not None and state.learning_version == version
        }

    def _whole(self, metric: Metric) -> Part:
        return self._part(SeriesKey(metric.name, "experiment", ""), self.baseline(metric).version + 1)

    def _part(self, key: SeriesKey, version: int) -> Part:
        state = self._series.get(key)
        if state is None or state.learning is None or state.learning_version != version:
            return Part()
        return state.learning

    def _put(self, key: SeriesKey, part: Part | None, version: int) -> None:
        state = self._series.get(key) or SeriesState(key)
        self._series[key] = msgspec.structs.replace(state, learning=part, learning_version=version)
        self._changed.add(key)


def _whole_rows(rows: SliceRows) -> Ints:
    return rows.get(("experiment", ""), np.zeros(0, dtype=np.int64))


def _end(whole: Ints, is_enough: NDArray[np.bool_], chunk: Chunk) -> tuple[int, bool]:
    if not is_enough.any():
        return int(chunk.time_ms.size), False
    return int(whole[is_enough.argmax()]) + 1, True
