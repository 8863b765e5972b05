"""Counting pairs for the ship rule, in bounded memory.

The same request hash counts once an hour (UTC, of `mirrored_at`) in a slice: the first pair in the order
(mirrored_at, partition, offset), so that a client that repeats a faulty prompt counts it once. Most requests
come once. So all pairs are counted as they are, in one pass, and those that are not the first are taken off:
they are among the pairs whose (hour, request hash) is there twice. To find these takes memory for each hash,
so the hours are read in runs of about a million pairs, each from the days of `ingested_at` that hold them.

The engine groups numbers several times as fast as tuples and texts: a group is the 128-bit SipHash of (hour,
request hash).
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
from ingest.errors import RetryError

RUN_PAIRS = 1_000_000
"""Pairs among which repeats are looked for at once; an hour with more is read whole."""

MAX_VALUES = 500
"""Values of one dimension that have bounds, the first to appear: bounds memory and the report."""

_DIMENSION = (
    "multiIf("
    + ", ".join(f"grouping({name}) = 0, {place}" for place, name in enumerate(DIMENSIONS, 1))
    + ", 0)"
)
"""Which dimension a row of `_SETS` is of: its place in DIMENSIONS from 1, 0 for the whole."""

_VALUE = f"concat({', '.join(DIMENSIONS)})"
"""The value that a row of `_SETS` is of: the other dimensions are empty in it."""

_SETS = f"GROUP BY GROUPING SETS ((), {', '.join(f'({name})' for name in DIMENSIONS)})"

_TWICE_ON = {"route": "is_again_on_route", "tenant": "is_again_of_tenant"}
"""One request may come on several routes, and counts once on each. The other dimensions are told by the
request itself: the pair that counts for the whole counts for them."""


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
    """Count pairs, each request once an hour, for the whole and for every slice.

    Raises RetryError where stored pairs were replaced meanwhile, so that the counts do not fit each other.
    """
    if not classes.hours:
        return Tally()
    found = _all(store, scope, classes.hours)
    sums = {place: counts for place, counts, _ in found}
    for hours in _runs(classes.hours):
        for place, repeats in _repeats(store, scope, hours, list(sums)):
            sums[place] = _less(sums[place], repeats)
    whole = sums.pop((0, ""))
    values: dict[Dimension, list[str]] = {name: [] for name in DIMENSIONS}
    for (number, value), _, _ in found:
        if number:
            values[DIMENSIONS[number - 1]].append(value)
    return Tally(
        whole=whole,
        repeats=classes.by_class["counted"] - whole.pairs,
        slices=tuple(
            SliceCounts(dimension, value, rank, sums[number, value])
            for number, dimension in enumerate(DIMENSIONS, 1)
            for rank, value in enumerate(values[dimension][:MAX_VALUES], 1)
        ),
        cut=tuple(name for name in DIMENSIONS if len(values[name]) > MAX_VALUES),
        first_at=min(hour.first_at for hour in classes.hours),
        last_at=max(hour.last_at for hour in classes.hours),
        first_ingested_at=min(hour.first_ingested_at for hour in classes.hours),
        last_ingested_at=max(hour.last_ingested_at for hour in classes.hours),
    )


Place = tuple[int, str]
"""A slice: its dimension's place in DIMENSIONS from 1, and its value. (0, "") is the whole."""


def _less(counts: Counts, repeats: Counts) -> Counts:
    left = Counts(
        counts.candidate_only - repeats.candidate_only,
        counts.reference_only - repeats.reference_only,
        counts.neither - repeats.neither,
    )
    if min(left.candidate_only, left.reference_only, left.neither) < 0:
        raise RetryError("pairs were replaced while they were counted (a replay?): ask again")
    return left


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


def _source(scope: Scope, hours: Sequence[Hour]) -> tuple[str, dict[str, Any]]:
    """The counted pairs of these hours, with the parameters.

    Only those under the watermarks, which stand still: what is stored meanwhile is read by no query.
    """
    # No version of these rows is later than the last one of these hours: the upper bound hides none.
    sql = (
        f" FROM pairs_v1{MARKS}{scope.where} AND {CLASS} = 'counted'"
        " AND mirrored_at >= {begin:DateTime64(3, 'UTC')} AND mirrored_at < {end_at:DateTime64(3, 'UTC')}"
        " AND ingested_at >= {stored_from:DateTime64(3, 'UTC')}"
        " AND ingested_at <= {stored_to:DateTime64(3, 'UTC')}"
    )
    return sql, {
        **scope.parameters,
        "begin": seconds(hours[0].hour),
        "end_at": seconds(hours[-1].hour + timedelta(hours=1)),
        "stored_from": seconds(min(hour.first_ingested_at for hour in hours)),
        "stored_to": seconds(max(hour.last_ingested_at for hour in hours)),
    }


def _all(store: Asked, scope: Scope, hours: Sequence[Hour]) -> list[tuple[Place, Counts, datetime]]:
    """Every pair, repeats included: by slice, with its first `mirrored_at`, in the order of appearance.

    The whole, and of each dimension one value more than have bounds where there are more.
    """
    source, parameters = _source(scope, hours)
    rows = store.query(
        f"SELECT {_DIMENSION} AS place, {_VALUE} AS value, countIf(is_candidate_only_fault),"
        " countIf(is_reference_only_fault), count(), min(mirrored_at) AS first_at"
        f"{source} {_SETS} HAVING place = 0 OR value != ''"
        " ORDER BY first_at, value LIMIT {limit:UInt32} BY place",
        {**parameters, "limit": MAX_VALUES + 1},
    ).rows
    return [
        ((place, str(value)), Counts(candidate, reference, pairs - candidate - reference), first_at)
        for place, value, candidate, reference, pairs, first_at in rows
    ]


def _repeats(
    store: Asked, scope: Scope, hours: Sequence[Hour], places: Sequence[Place]
) -> list[tuple[Place, Counts]]:
    """The pairs of these hours that are not the first of their request and hour, by slice."""
    source, parameters = _source(scope, hours)
    key = "reinterpretAsUInt128(sipHash128Reference(request_hash, toStartOfHour(mirrored_at)))"
    order = "ORDER BY mirrored_at, `partition`, `offset`"
    again = (
        "multiIf("
        + "".join(
            f"place = {DIMENSIONS.index(name) + 1}, countIf({column}{{fault}}), "
            for name, column in _TWICE_ON.items()
        )
        + "countIf(is_again{fault}))"
    )
    rows = store.query(
        f"SELECT {_DIMENSION} AS place, {_VALUE} AS value,"
        f" {again.format(fault=' AND is_candidate_only_fault')} AS candidate,"
        f" {again.format(fault=' AND is_reference_only_fault')} AS reference,"
        f" {again.format(fault='')} AS pairs"
        f" FROM (SELECT {', '.join(DIMENSIONS)}, is_candidate_only_fault, is_reference_only_fault,"
        f" row_number() OVER (PARTITION BY {key} {order}) > 1 AS is_again,"
        f" row_number() OVER (PARTITION BY {key}, route {order}) > 1 AS is_again_on_route,"
        f" row_number() OVER (PARTITION BY {key}, tenant {order}) > 1 AS is_again_of_tenant"
        f"{source} AND {key} IN (SELECT {key}{source} GROUP BY {key} HAVING count() > 1)) {_SETS}"
        " HAVING pairs > 0 AND (place, value) IN"
        " (SELECT arrayJoin(arrayZip({places:Array(UInt8)}, {values:Array(String)})))",
        {
            **parameters,
            "places": [place for place, _ in places],
            "values": [value for _, value in places],
        },
    ).rows
    return [
        ((place, str(value)), Counts(candidate, reference, pairs - candidate - reference))
        for place, value, candidate, reference, pairs in rows
    ]
