"""Pairs of a detector's slice from two times, to hold their distributions against each other.

The samples are bounded, and so are the days that are read for them: a description needs thousands of pairs,
not millions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.evidence_read import VALUES
from compare.alerts.metrics import DIMENSIONS
from compare.alerts.source import COUNTED
from compare.store.answer import Row
from compare.store.client import Store
from dashboards.asked import Asked
from dashboards.questions.drift import Detector, Hours, State
from dashboards.questions.offsets import offsets_of, within
from dashboards.questions.summary import Series

MOST = 4_000
"""Pairs of one sample."""
LOOKED_THROUGH = 150_000
"""About so many records, of all slices, are looked through for a sample, or for requests asked twice."""
_SOON = timedelta(days=1)
_LATE = timedelta(days=8)
"""`mirrored_at` is within 7 days of `ingested_at`, which chooses the days that are read."""

Floats = NDArray[np.float64]


class Samples(msgspec.Struct, frozen=True):
    """Values before and now, with the times (UTC) that they are from, and the values of each dimension of the
    pairs of both, before first. Of a count each entry is 0 or 1.
    """

    before: Floats
    now: Floats
    before_from: datetime | None = None
    before_to: datetime | None = None
    now_from: datetime | None = None
    now_to: datetime | None = None
    slices: dict[str, list[str]] = {}


class Part(msgspec.Struct, frozen=True):
    """From `start` on and before `end`; None is open."""

    start: datetime | None
    end: datetime | None


def two_times(asked: Asked, series: Series, detector: Detector, before: Part, now: Part) -> Samples:
    """The last pairs of each of two times, at most MOST each."""
    old, new = (last_pairs(asked, series, detector, part, MOST) for part in (before, now))
    return _samples(old, new)


def two_halves(asked: Asked, series: Series, detector: Detector, part: Part) -> Samples:
    """The last pairs of one time, cut in the middle."""
    both = last_pairs(asked, series, detector, part, 2 * MOST)
    return _samples(both[: len(both) // 2], both[len(both) // 2 :])


def counted_halves(hours: Hours) -> Samples:
    """The same of a detector without pairs of its own (accounting), from its hours: hour_at, pairs, observed.

    The last hours with MOST records against those with as many before.
    """
    parts: list[tuple[Floats, datetime | None, datetime | None]] = []
    left = hours
    for _ in range(2):
        first = len(left) - holding(left, MOST)
        some, left = left[first:], left[:first]
        records = sum(hour["pairs"] for hour in some)
        hits = round(sum(hour["pairs"] * hour["observed"] for hour in some))
        values = np.concatenate([np.ones(hits), np.zeros(records - hits)])
        times = (some[0]["hour_at"], some[-1]["hour_at"]) if some else (None, None)
        parts.append((values, *times))
    (now, now_from, now_to), (before, before_from, before_to) = parts
    return Samples(before, now, before_from, before_to, now_from, now_to)


def holding(hours: Hours, least: int) -> int:
    """How many of the last hours hold at least so many pairs; all of them where they do not."""
    pairs = 0
    for count, hour in enumerate(reversed(hours), 1):
        pairs += hour["pairs"]
        if pairs >= least:
            return count
    return len(hours)


def sampled(part: Part, hours: Hours, whole: Hours, most: int = MOST) -> Part:
    """The end of the part that holds a sample of the slice with these `hours`, and is not too long to look
    through: `whole` are the hours of all slices.
    """
    parts = narrowed(part, hours, most), narrowed(part, whole, LOOKED_THROUGH)
    return Part(max((one.start for one in parts if one.start is not None), default=None), part.end)


def narrowed(part: Part, hours: Hours, least: int) -> Part:
    """The end of the part whose hours hold so many pairs; all of it where no hour is kept."""
    known = hours
    if part.start is not None:
        begin = part.start.replace(minute=0, second=0, microsecond=0)
        known = [hour for hour in known if hour["hour_at"] >= begin]
    if part.end is not None:
        known = [hour for hour in known if hour["hour_at"] < part.end]
    if not known:
        return part
    first: datetime = known[len(known) - holding(known, least)]["hour_at"]
    return Part(first if part.start is None else max(first, part.start), part.end)


def excess_by_slice(asked: Asked, series: Series, column: str, by: str, part: Part) -> list[dict[str, Any]]:
    """slice, requests, candidate, floor, excess, low, high, bounded_by: the largest excess first.

    One row a slice in which requests were asked twice. `column` is a score of `compare.floor`.
    """
    # Loads scipy.stats, which only this page needs.
    from compare import floor

    found = floor.read_excess(
        # It only asks.
        cast(Store, asked),
        series.experiment,
        series.candidate,
        by=next(name for name in floor.DIMENSIONS if name == by),
        metrics=[column],
        since=None if part.start is None else part.start - _SOON,
        mirrored_from=part.start,
        mirrored_to=part.end,
        also=within(offsets_of(asked, series, part.start, part.end, LOOKED_THROUGH)),
    )
    return sorted(map(msgspec.structs.asdict, found), key=_largest_first)


def fault_excess_by_slice(states: Iterable[State], by: str) -> list[dict[str, Any]]:
    """The same columns for faults: how often only the candidate is faulty, the floor being how often only the
    reference is; from `states`. Interval for paired proportions: Agresti and Min 2005.
    """
    made = []
    for row in states:
        if row["metric"] != "candidate_only_excess" or row["dimension"] != by or not row["pairs_folded"]:
            continue
        n, only_candidate, only_reference = (
            row["pairs_folded"],
            row["candidate_faults"],
            row["reference_faults"],
        )
        shrunk = (only_candidate - only_reference) / (n + 2)
        spread = ((only_candidate + only_reference + 1) / (n + 2) - shrunk**2) / (n + 2)
        half = 1.959963984540054 * math.sqrt(spread)
        made.append(
            {
                "slice": row["slice"],
                "requests": n,
                "candidate": only_candidate / n,
                "floor": only_reference / n,
                "excess": (only_candidate - only_reference) / n,
                "low": max(shrunk - half, -1.0),
                "high": min(shrunk + half, 1.0),
                "bounded_by": "reference",
            }
        )
    return sorted(made, key=_largest_first)


def last_pairs(asked: Asked, series: Series, detector: Detector, part: Part, most: int) -> list[Row]:
    """The last counted pairs of the slice that have the metric, oldest first: x, mirrored_at, dimensions."""
    where = f"experiment = {{experiment:String}} AND candidate = {{candidate:String}} AND {COUNTED}"
    values: dict[str, Any] = {**series.parameters(), "most": most}
    if detector.dimension != DIMENSIONS[0]:
        # Only the names of columns that we know: the slice's value is bound.
        where += f" AND {DIMENSIONS[DIMENSIONS.index(detector.dimension)]} = {{slice:String}}"
        values["slice"] = detector.slice
    for name, sign, time in (("start", ">=", part.start), ("end", "<", part.end)):
        if time is not None:
            where += f" AND mirrored_at {sign} {{{name}:DateTime64(3, 'UTC')}}"
            values[name] = f"{time.timestamp():.3f}"
    ranges = offsets_of(asked, series, part.start, part.end, LOOKED_THROUGH)
    offsets, bounds = within(ranges)
    values |= bounds
    found: list[Row] = []
    for slack in (_SOON, _LATE):
        # Nearly all pairs are stored as they come: the few days around are looked through first.
        near = offsets
        for name, sign, time in (
            ("first", ">=", part.start and part.start - slack),
            ("last", "<=", part.end and part.end + slack),
        ):
            if time is not None:
                near += f" AND ingested_at {sign} {{{name}:DateTime64(3, 'UTC')}}"
                values[name] = f"{time.timestamp():.3f}"
        found = asked.query(
            f"SELECT {VALUES[detector.metric]} AS x, mirrored_at, {', '.join(DIMENSIONS[1:])} FROM pairs_v1"
            f" WHERE {where}{near} AND isNotNull(x)"
            " ORDER BY mirrored_at DESC, `partition` DESC, `offset` DESC LIMIT {most:UInt32}",
            values,
        ).rows
        if found or not near or ranges is not None:
            break
    # Another who asks may hold the same answer.
    return found[::-1]


def _samples(old: list[Row], new: list[Row]) -> Samples:
    def ends(some: list[Row]) -> tuple[datetime | None, datetime | None]:
        return (some[0][1], some[-1][1]) if some else (None, None)

    _, _, *columns = zip(*old, *new, strict=True) if old or new else [()] * (1 + len(DIMENSIONS))
    return Samples(
        np.array([row[0] for row in old], dtype=np.float64),
        np.array([row[0] for row in new], dtype=np.float64),
        *ends(old),
        *ends(new),
        slices={name: list(map(str, column)) for name, column in zip(DIMENSIONS[1:], columns, strict=True)},
    )


def _largest_first(row: dict[str, Any]) -> float:
    return -float(row["excess"])
