"""Counting pairs for the ship rule, in bounded memory.

The same request hash counts once an hour (UTC, of `mirrored_at`) in a slice: the first pair in the order
(mirrored_at, partition, offset), so that a client that repeats a faulty prompt counts it once. Grouping needs
memory for each hash, so the hours are read in runs of about a million pairs, each from the days of
`ingested_at` that hold them.

The engine groups and compares numbers several times as fast as tuples and texts. So a group is the 128-bit
SipHash of (hour, request hash, slice); the order is one number; and a pair's flags and slices are one number
too, taken apart again here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from compare.ship.bounds import Counts
from compare.ship.model import DIMENSIONS, Dimension, LeftOut, SliceCounts, Tally
from compare.ship.scope import CLASS, MARKS, Scope, seconds
from compare.store.asked import Asked

RUN_PAIRS = 1_000_000
"""Pairs that are grouped at once; an hour with more is grouped whole."""

MAX_VALUES = 500
"""Values of one dimension that have bounds, the first to appear: bounds memory and the report."""

_CODES = 1024
"""A value's code is under this: 0 for none, else its rank by first appearance."""

_GROUPINGS: tuple[tuple[Dimension, ...], ...] = (
    ("language", "prompt_length", "kind"),
    ("route",),
    ("tenant",),
)
"""What is counted in one pass. The first are told by the request itself: the pair that counts for the whole
counts for them. One request may come on several routes, and counts once on each."""


class Hour(Struct, frozen=True):
    """An hour that has counted pairs: how many, repeats included, and the span of both times."""

    hour: datetime
    pairs: int
    first_at: datetime
    last_at: datetime
    first_ingested_at: datetime
    last_ingested_at: datetime


class Classes(Struct, frozen=True):
    """Every stored pair of the range: the counted by hour, and all by class (`counted`, or why not)."""

    hours: tuple[Hour, ...]
    by_class: dict[str, int]


def read_classes(store: Asked, scope: Scope) -> Classes:
    """Count every stored pair of the range once."""
    rows = store.query(
        f"SELECT toStartOfHour(mirrored_at) AS hour, {CLASS} AS class, count(), min(mirrored_at),"
        " max(mirrored_at), min(ingested_at), max(ingested_at)"
        f" FROM pairs_v1{MARKS}{scope.where} GROUP BY hour, class ORDER BY hour",
        scope.parameters,
    ).rows
    by_class: dict[str, int] = {}
    for _, name, pairs, *_ in rows:
        by_class[name] = by_class.get(name, 0) + pairs
    return Classes(
        tuple(Hour(hour, *rest) for hour, name, *rest in rows if name == "counted"),
        by_class,
    )


def not_counted(classes: Classes) -> list[LeftOut]:
    """The pairs that were stored and move no rate, by reason."""
    return [
        LeftOut("compared", name, pairs)
        for name, pairs in sorted(classes.by_class.items())
        if name != "counted"
    ]


def read_tally(store: Asked, scope: Scope, classes: Classes) -> Tally:
    """Count pairs, each request once an hour, for the whole and for every slice."""
    if not classes.hours:
        return Tally()
    is_settled = "not_settled" not in classes.by_class
    values = _values(store, scope, is_settled)
    sums: dict[tuple[Dimension | None, int], list[int]] = {}
    for hours in _runs(classes.hours):
        for dimensions in _GROUPINGS:
            for packed, pairs in _run(store, scope, hours, dimensions, values, is_settled):
                codes, flag = divmod(packed, 4)
                places: list[tuple[Dimension | None, int]] = []
                for dimension in dimensions:
                    codes, code = divmod(codes, _CODES)
                    places.append((dimension, code))
                if len(dimensions) > 1:
                    places.append((None, 1))
                for place in places:
                    if place[1]:
                        sums.setdefault(place, [0, 0, 0])[flag] += pairs
    whole = _counts(sums.get((None, 1), [0, 0, 0]))
    return Tally(
        whole=whole,
        repeats=classes.by_class["counted"] - whole.pairs,
        slices=tuple(
            SliceCounts(dimension, value, rank, _counts(sums[dimension, rank]))
            for dimension in DIMENSIONS
            for rank, value in enumerate(values[dimension][:MAX_VALUES], 1)
        ),
        cut=tuple(name for name in DIMENSIONS if len(values[name]) > MAX_VALUES),
        first_at=min(hour.first_at for hour in classes.hours),
        last_at=max(hour.last_at for hour in classes.hours),
        first_ingested_at=min(hour.first_ingested_at for hour in classes.hours),
        last_ingested_at=max(hour.last_ingested_at for hour in classes.hours),
    )


def _counts(by_flag: list[int]) -> Counts:
    """Of the numbers of x = -1, 0 and 1."""
    reference_only, neither, candidate_only = by_flag
    return Counts(candidate_only, reference_only, neither)


def _runs(hours: Sequence[Hour]) -> Iterator[list[Hour]]:
    """Cut the hours into runs of about `RUN_PAIRS`."""
    run: list[Hour] = []
    held = 0
    for hour in hours:
        if run and held + hour.pairs > RUN_PAIRS:
            yield run
            run, held = [], 0
        run.append(hour)
        held += hour.pairs
    if run:
        yield run


def _source(scope: Scope, is_settled: bool) -> str:
    """The counted pairs; the watermarks are joined only where a pair is above one."""
    return (
        f" FROM pairs_v1{'' if is_settled else MARKS}{scope.where} AND "
        + (CLASS.replace("`offset` >= marks.end, 'not_settled', ", "") if is_settled else CLASS)
        + " = 'counted'"
    )


def _values(store: Asked, scope: Scope, is_settled: bool) -> dict[Dimension, list[str]]:
    """Each dimension's values by first appearance, one more than have bounds where there are more."""
    found: dict[Dimension, list[str]] = {}
    for dimension in DIMENSIONS:
        rows = store.query(
            f"SELECT toString({dimension}) AS value, min(mirrored_at) AS first_at"
            f"{_source(scope, is_settled)} AND {dimension} != '' GROUP BY value ORDER BY first_at, value"
            " LIMIT {limit:UInt32}",
            {**scope.parameters, "limit": MAX_VALUES + 1},
        ).rows
        found[dimension] = [str(value) for value, _ in rows]
    return found


_FLAG = "(1 + toUInt64(is_candidate_only_fault) - toUInt64(is_reference_only_fault))"
_ORDER = (
    "bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(mirrored_at)), 84),"
    " bitOr(bitShiftLeft(toUInt128(`partition`), 52), toUInt128(`offset`)))"
)


def _run(
    store: Asked,
    scope: Scope,
    hours: Sequence[Hour],
    dimensions: tuple[Dimension, ...],
    values: dict[Dimension, list[str]],
    is_settled: bool,
) -> list[tuple[int, int]]:
    """(flag and codes as one number, pairs) of these hours: the codes of `dimensions`, first the lowest."""
    parameters: dict[str, Any] = {
        **scope.parameters,
        "begin": seconds(hours[0].hour),
        "end_at": seconds(hours[-1].hour + timedelta(hours=1)),
        "stored_from": seconds(min(hour.first_ingested_at for hour in hours)),
        "stored_to": seconds(max(hour.last_ingested_at for hour in hours)),
    }
    # No version of these rows is later than the last one of these hours: the upper bound hides none.
    bounds = (
        " AND mirrored_at >= {begin:DateTime64(3, 'UTC')} AND mirrored_at < {end_at:DateTime64(3, 'UTC')}"
        " AND ingested_at >= {stored_from:DateTime64(3, 'UTC')}"
        " AND ingested_at <= {stored_to:DateTime64(3, 'UTC')}"
    )
    packed, factor = [_FLAG], 4
    for dimension in dimensions:
        known = values[dimension][:MAX_VALUES]
        if known:
            parameters[dimension] = known
            parameters[f"{dimension}_codes"] = list(range(1, len(known) + 1))
            packed.append(
                f"{factor} * transform({dimension}, {{{dimension}:Array(String)}},"
                f" {{{dimension}_codes:Array(UInt64)}}, toUInt64(0))"
            )
        factor *= _CODES
    key = "request_hash, toStartOfHour(mirrored_at)"
    if len(dimensions) == 1:
        key += f", {dimensions[0]}"
        bounds += f" AND {dimensions[0]} != ''"
    return store.query(
        f"SELECT packed, count() FROM (SELECT argMin({' + '.join(packed)}, {_ORDER}) AS packed"
        f"{_source(scope, is_settled)}{bounds} GROUP BY reinterpretAsUInt128(sipHash128Reference({key})))"
        " GROUP BY packed",
        parameters,
    ).rows
