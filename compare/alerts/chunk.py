"""The records of one fold as columns: what each metric sees of them, and which rows belong to which slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.edetector import Floats, Ints
from compare.alerts.metrics import DIMENSIONS, METRICS, Metric
from compare.alerts.series import FoldedPair

Identity = tuple[str, int, int]
"""(topic_id, partition, offset)."""
SliceRows = dict[tuple[str, str], Ints]
"""By (dimension, value) the rows that count there, ascending."""
Seen = dict[str, tuple[tuple[str, ...], ...]]
"""By request hash, the slices of its pairs that were counted in the current hour of the fold clock."""

_SCORES = ("cosine_similarity", "schema_validity", "top1_agreement_forced", "kl_forced", "latency_ratio")
_ACCOUNTED = {"unscored_rate": "unscored", "skipped_rate": "skipped", "failed_rate": "failed"}


class Column(msgspec.Struct, frozen=True):
    """One metric's view of the records: `x` where `is_there`; the sides' flags where x counts them.

    Of a mean metric x is in [0, 1]; of a rank metric it is the score, whose rank the baseline tells.
    """

    x: Floats
    is_there: NDArray[np.bool_] | None = None
    """None where every row has it."""
    candidate: Ints | None = None
    """None where there are no flags."""
    reference: Ints | None = None


class Chunk(msgspec.Struct, frozen=True):
    """Records in fold order. `time_ms` is the fold clock, `at_ms` when they were mirrored; Unix ms.

    `slices` holds the rows that count towards drift: pairs that are the first with their request in their
    slice and hour. `identity` names the record of a row.
    """

    time_ms: Ints
    at_ms: Ints
    slices: SliceRows
    columns: dict[str, Column]
    identity: Callable[[int], Identity]


class FirstInHour:
    """Which pairs are the first with their request hash in a slice and hour.

    `seen` must hold what was counted in the hour that `hour` names (of the fold clock, since 1970).
    """

    def __init__(self, seen: Seen, hour: int) -> None:
        self.seen = dict(seen)
        self.hour = hour
        self._shared: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}

    def slices_of(self, hour: int, request_hash: str, values: tuple[str, ...]) -> list[tuple[str, str]]:
        """The slices in which this pair counts, the whole experiment first; remembers it.

        `values` are those of `DIMENSIONS` after the first. A pair without one is in no slice of it: such a
        slice would only repeat the whole.
        """
        if hour > self.hour:
            self.seen.clear()
            self.hour = hour
        earlier = self.seen.get(request_hash)
        inside = [(name, value) for name, value in zip(DIMENSIONS[1:], values, strict=False) if value]
        if earlier is None:
            # Most pairs share their slices with many others.
            self.seen[request_hash] = self._shared.setdefault(values, (values,))
            return [("experiment", ""), *inside]
        if values in earlier:
            return []
        self.seen[request_hash] = (*earlier, values)
        place = {name: index for index, name in enumerate(DIMENSIONS[1:])}
        return [
            (name, value)
            for name, value in inside
            if all(len(one) <= place[name] or one[place[name]] != value for one in earlier)
        ]


def chunk_of(pairs: Sequence[tuple[int, FoldedPair]], first: FirstInHour, hour_ms: int) -> Chunk:
    """The chunk of (time in ms, record), in fold order."""
    rows: dict[tuple[str, str], list[int]] = {}
    for row, (time_ms, pair) in enumerate(pairs):
        if pair.is_counted:
            for one in first.slices_of(time_ms // hour_ms, pair.request_hash, pair.slices):
                rows.setdefault(one, []).append(row)
    records = [pair for _, pair in pairs]
    columns = {
        "regression_rate": _flags([pair.is_regression for pair in records]),
        "candidate_only_excess": _paired(
            [pair.is_candidate_only_fault for pair in records],
            [pair.is_reference_only_fault for pair in records],
        ),
    }
    for name in _SCORES:
        columns[name] = _scores([getattr(pair, name) for pair in records], name)
    for name, outcome in _ACCOUNTED.items():
        columns[name] = _flags([pair.outcome == outcome for pair in records])

    def identity(row: int) -> Identity:
        pair = records[row]
        return pair.topic_id, pair.partition, pair.offset

    return Chunk(
        np.asarray([time_ms for time_ms, _ in pairs], dtype=np.int64),
        np.asarray([pair.mirrored_ms for pair in records], dtype=np.int64),
        {one: np.asarray(found, dtype=np.int64) for one, found in rows.items()},
        columns,
        identity,
    )


def rows_of(metric: Metric, chunk: Chunk, slices: SliceRows) -> SliceRows:
    """The rows of each of these slices that move the metric; of an accounting metric, every record."""
    if metric.category != "drift":
        return {("experiment", ""): np.arange(chunk.time_ms.size)}
    there = chunk.columns[metric.name].is_there
    if there is None:
        return slices
    found = {one: inside[there[inside]] for one, inside in slices.items()}
    return {one: inside for one, inside in found.items() if inside.size}


def _flags(flags: list[bool]) -> Column:
    whole = np.asarray(flags, dtype=np.int64)
    return Column(whole.astype(np.float64), None, whole, None)


def _paired(candidate: list[bool], reference: list[bool]) -> Column:
    one, other = np.asarray(candidate, dtype=np.int64), np.asarray(reference, dtype=np.int64)
    return Column((one - other).astype(np.float64), None, one, other)


def _scores(values: list[float | None], name: str) -> Column:
    x = np.asarray([0.0 if value is None else value for value in values], dtype=np.float64)
    is_there = np.asarray([value is not None for value in values], dtype=np.bool_)
    if _KINDS[name] == "bounded_mean":
        # A cosine may lie under 0, and a hair over 1 by rounding.
        x = np.clip(x, 0.0, 1.0)
    return Column(x, is_there)


_KINDS = {metric.name: metric.kind for metric in METRICS}
