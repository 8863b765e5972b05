"""Pairs of a detector's slice from two times, to hold their distributions against each other.

The samples are bounded, and so are the days that are read for them: a description needs thousands of pairs,
not millions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.alerts.evidence_read import VALUES
from compare.alerts.metrics import DIMENSIONS
from compare.alerts.source import COUNTED
from compare.store.client import Store
from dashboards.asked import Asked, frame
from dashboards.questions.drift import Detector
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
    return _samples(both.iloc[: len(both) // 2], both.iloc[len(both) // 2 :])


def counted_halves(hours: pd.DataFrame) -> Samples:
    """The same of a detector without pairs of its own (accounting), from its hours: hour_at, pairs, observed.

    The last hours with MOST records against those with as many before.
    """
    parts: list[tuple[Floats, Any, Any]] = []
    left = hours
    for _ in range(2):
        size = holding(left, MOST)
        some, left = left.iloc[len(left) - size :], left.iloc[: len(left) - size]
        records = int(some["pairs"].sum())
        hits = round(float((some["pairs"] * some["observed"]).sum()))
        values = np.concatenate([np.ones(hits), np.zeros(records - hits)])
        times = (None, None) if some.empty else (some["hour_at"].iloc[0], some["hour_at"].iloc[-1])
        parts.append((values, *times))
    (now, now_from, now_to), (before, before_from, before_to) = parts
    return Samples(before, now, before_from, before_to, now_from, now_to)


def holding(hours: pd.DataFrame, least: int) -> int:
    """How many of the last hours hold at least so many pairs; all of them where they do not."""
    summed = hours["pairs"].iloc[::-1].cumsum()
    return min(int((summed < least).sum()) + 1, len(hours))


def sampled(part: Part, hours: pd.DataFrame, whole: pd.DataFrame, most: int = MOST) -> Part:
    """The end of the part that holds a sample of the slice with these `hours`, and is not too long to look
    through: `whole` are the hours of all slices.
    """
    parts = narrowed(part, hours, most), narrowed(part, whole, LOOKED_THROUGH)
    return Part(max((one.start for one in parts if one.start is not None), default=None), part.end)


def narrowed(part: Part, hours: pd.DataFrame, least: int) -> Part:
    """The end of the part whose hours hold so many pairs; all of it where no hour is kept."""
    known = hours
    if part.start is not None:
        known = known[known["hour_at"] >= pd.Timestamp(part.start).floor("h")]
    if part.end is not None:
        known = known[known["hour_at"] < part.end]
    if known.empty:
        return part
    first = known["hour_at"].iloc[len(known) - holding(known, least)].to_pydatetime()
    return Part(first if part.start is None else max(first, part.start), part.end)


def excess_by_slice(asked: Asked, series: Series, column: str, by: str, part: Part) -> pd.DataFrame:
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
    rows = [msgspec.structs.asdict(one) for one in found]
    made = pd.DataFrame(rows, columns=list(floor.Excess.__struct_fields__))
    return made.sort_values("excess", ascending=False, ignore_index=True)


def fault_excess_by_slice(states: pd.DataFrame, by: str) -> pd.DataFrame:
    """The same columns for faults: how often only the candidate is faulty, the floor being how often only the
    reference is; from `states`. Interval for paired proportions: Agresti and Min 2005.
    """
    mine = states[(states["metric"] == "candidate_only_excess") & (states["dimension"] == by)]
    mine = mine[mine["pairs_folded"] > 0]
    n, only_candidate, only_reference = (
        mine[name].astype("float64") for name in ("pairs_folded", "candidate_faults", "reference_faults")
    )
    shrunk = (only_candidate - only_reference) / (n + 2)
    half = (
        1.959963984540054 * (((only_candidate + only_reference + 1) / (n + 2) - shrunk**2) / (n + 2)) ** 0.5
    )
    made = pd.DataFrame(
        {
            "slice": mine["slice"],
            "requests": mine["pairs_folded"],
            "candidate": only_candidate / n,
            "floor": only_reference / n,
            "excess": (only_candidate - only_reference) / n,
            "low": (shrunk - half).clip(lower=-1.0),
            "high": (shrunk + half).clip(upper=1.0),
            "bounded_by": "reference",
        }
    )
    return made.sort_values("excess", ascending=False, ignore_index=True)


def last_pairs(asked: Asked, series: Series, detector: Detector, part: Part, most: int) -> pd.DataFrame:
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
    found = pd.DataFrame()
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
        found = frame(
            asked,
            f"SELECT {VALUES[detector.metric]} AS x, mirrored_at, {', '.join(DIMENSIONS[1:])} FROM pairs_v1"
            f" WHERE {where}{near} AND isNotNull(x)"
            " ORDER BY mirrored_at DESC, `partition` DESC, `offset` DESC LIMIT {most:UInt32}",
            values,
        )
        if len(found) or not near or ranges is not None:
            break
    return found.iloc[::-1].reset_index(drop=True)


def _samples(old: pd.DataFrame, new: pd.DataFrame) -> Samples:
    def ends(some: pd.DataFrame) -> tuple[datetime | None, datetime | None]:
        if some.empty:
            return None, None
        return some["mirrored_at"].iloc[0], some["mirrored_at"].iloc[-1]

    return Samples(
        old["x"].to_numpy(dtype=np.float64),
        new["x"].to_numpy(dtype=np.float64),
        *ends(old),
        *ends(new),
        slices={
            name: [str(one) for part in (old, new) for one in part[name].tolist()] for name in DIMENSIONS[1:]
        },
    )
