"""The list of pairs: narrowed, sorted, page by page behind the last row's place in the order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import msgspec
import pandas as pd

from compare.rollups.select import WORST_ROWS
from dashboards.asked import BY_INDEX, Asked, frame
from dashboards.questions.pair import PairKey
from dashboards.questions.recent import Recent, recent
from dashboards.questions.search import TEXT_LIMITS, TextSearch
from dashboards.questions.summary import Series
from ingest.decode import CLOCK_TOLERANCE

PAGE_ROWS = 100

Sort = Literal["worst", "newest", "kl", "similarity"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Side = Literal["any", "candidate_only", "reference_only"]
SIDES: tuple[Side, ...] = get_args(Side)
REGRESSIONS = ("candidate_worse", "candidate_error")
"""Verdicts that are regressions."""
DIMENSIONS = ("route", "tenant", "language")
"""Those of slices that the list is narrowed by: each is a parameter of its page."""

_COLUMNS = (
    "mirrored_at, verdict, severity, {candidate_only} AS candidate_only, {reference_only} AS reference_only,"
    " route, request_id, divergence_position, kl_forced_mean_nats, kl_prefix_mean_nats, edit_similarity,"
    " cosine_similarity, reference_total_ms, candidate_total_ms, is_regression, topic_id, `partition`,"
    " `offset`"
)
_ONLY = {side: f"{side}_families" for side in ("candidate_only", "reference_only")}
_ONLY_ROLLED = {
    f"{one}_only": f"arrayFilter(name -> NOT has({other}_fault_families, name), {one}_fault_families)"
    for one, other in (("candidate", "reference"), ("reference", "candidate"))
}
_FAULTY = {
    "candidate": "(notEmpty(candidate_fault_families) OR verdict IN ('candidate_error', 'both_error'))",
    "reference": "(notEmpty(reference_fault_families) OR verdict IN ('reference_error', 'both_error'))",
}
_RANKS: dict[Sort, str] = {
    "worst": "4 * toFloat64(NOT is_regression) - toFloat64(ifNull(severity, -1))",
    "newest": "-toFloat64(toUnixTimestamp64Milli(mirrored_at))",
    "kl": "-toFloat64(ifNull(kl_forced_mean_nats, -1))",
    "similarity": "toFloat64(ifNull(edit_similarity, 2))",
}
"""One number, the least first: sorting by two of them takes twice as long. The key behind it makes the order
total.
"""
_KEY = ("topic_id", "`partition`", "`offset`")


class PairFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What the list is narrowed to: empty or None means all. Times are UTC, by `mirrored_at`."""

    verdicts: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    side: Side = "any"
    """On which side a fault (of `families`, if any are named) is: on either, or on one side only."""
    severity_min: float | None = None
    kl_min: float | None = None
    similarity_max: float | None = None
    is_near_tie: bool = False
    request_id: str = ""
    """The whole id, which an index finds; with a `*` before or behind it a part of it, read from all."""
    start: datetime | None = None
    end: datetime | None = None
    text: TextSearch | None = None

    def is_by_index(self) -> bool:
        """Whether an index finds the few pairs that pass it."""
        return self.text is not None or bool(self.request_id and "*" not in self.request_id)

    def is_rolled(self) -> bool:
        """Whether the first rows of the list, worst first, are all in `rollup_worst_v1`: its cells are cut
        by severity, so it has every such list that is narrowed by what tells the cells apart.
        """
        others = (self.tenants, self.languages, self.is_near_tie, self.request_id, self.text)
        return not any(others) and self.kl_min is None and self.similarity_max is None


class Place(msgspec.Struct, frozen=True):
    """Where a page of the list begins: behind this row (before it, read backwards). `row` counts the rows
    before the page.
    """

    row: int
    is_backwards: bool
    rank: float
    topic_id: str
    partition: int
    offset: int

    def written(self) -> str:
        """For the address bar."""
        way = "b" if self.is_backwards else "a"
        return f"{way}{self.row}~{self.rank!r}~{self.partition}~{self.offset}~{self.topic_id}"


class Page(msgspec.Struct, frozen=True):
    """Rows of one page, what was read for them, and the places of its neighbours, None if there is none.

    `since`: the list is of the pairs mirrored from then on (UTC); None for all of the range.
    """

    rows: pd.DataFrame
    first_row: int
    is_rolled: bool
    since: datetime | None
    before: Place | None
    behind: Place | None


def place_of(text: str) -> Place | None:
    """The place that `Place.written` wrote; None for anything else."""
    way, parts = text[:1], text[1:].split("~", 4)
    if way not in ("a", "b") or len(parts) != 5:
        return None
    try:
        row, rank, partition, offset = int(parts[0]), float(parts[1]), int(parts[2]), int(parts[3])
    except ValueError:
        return None
    is_key = 0 <= partition < 2**32 and 0 <= offset < 2**63
    is_sound = row >= 0 and is_key and abs(rank) < 1e15
    return Place(row, way == "b", rank, parts[4], partition, offset) if is_sound else None


def page(
    asked: Asked,
    series: Series,
    wanted: PairFilter,
    sort: Sort = "worst",
    place: Place | None = None,
    limit: int = PAGE_ROWS,
    *,
    is_whole: bool = False,
) -> Page:
    """At most `limit` pairs that pass the filter, in this order, from this place on.

    Of a series that is read from rollups, a list that is not the worst first, or narrowed by more than they
    hold, or behind their first 200 rows, is read from the pairs: from the newest (`recent`) of the range, or,
    if `is_whole`, from all of them, which takes seconds over millions.
    """
    row = 0 if place is None else place.row
    is_rolled = (
        series.until is not None and sort == "worst" and wanted.is_rolled() and row + limit <= WORST_ROWS
    )
    is_cut = is_of_newest(series, wanted, sort) and not is_whole
    near = recent(asked, series, wanted.start, wanted.end) if is_cut else None
    # One more than is shown tells whether another page follows.
    rows = _rows(asked, series, wanted, sort, place, limit + 1, is_rolled, near)
    is_more = len(rows) > limit
    rows = rows.iloc[:limit]
    is_backwards = place is not None and place.is_backwards
    if is_backwards:
        rows = rows.iloc[::-1].reset_index(drop=True)
    before = behind = None
    if not rows.empty:
        if row > 0 and (is_more or not is_backwards):
            before = _place(rows.iloc[0], max(row - limit, 0), is_backwards=True)
        if is_more or is_backwards:
            behind = _place(rows.iloc[-1], row + len(rows), is_backwards=False)
    shown = rows.drop(columns=["rank"])
    return Page(shown, row, is_rolled, near.start if near else None, before, behind)


def worst_keys(
    asked: Asked, series: Series, start: datetime | None = None, end: datetime | None = None
) -> list[PairKey]:
    """The pairs of the first page of the worst of this range, in its order."""
    wanted = PairFilter(start=start, end=end)
    is_rolled = series.until is not None
    rows = _rows(asked, series, wanted, "worst", None, PAGE_ROWS, is_rolled, None, ", ".join(_KEY))
    return [
        PairKey(series.experiment, series.candidate, str(topic_id), int(partition), int(offset))
        for topic_id, partition, offset in zip(
            rows["topic_id"], rows["partition"].tolist(), rows["offset"].tolist(), strict=True
        )
    ]


def is_of_newest(series: Series, wanted: PairFilter, sort: Sort) -> bool:
    """Whether `page` reads the list from the newest pairs, unless told to read them all."""
    is_from_rollup = sort == "worst" and wanted.is_rolled()
    return series.until is not None and not is_from_rollup and not wanted.is_by_index()


def choices(asked: Asked, series: Series) -> dict[str, list[str]]:
    """What occurs in the series: route, tenant, language and (fault) family, each sorted."""
    if series.until is not None:
        found = frame(
            asked,
            "SELECT if(endsWith(dimension, '_family'), 'family', dimension) AS name,"
            " arraySort(groupUniqArray(1000)(value)) AS found FROM rollup_sums_v1"
            " WHERE experiment = {experiment:String} AND candidate = {candidate:String} AND dimension IN"
            " ('route', 'tenant', 'language', 'candidate_family', 'reference_family') GROUP BY name",
            series.parameters(),
        )
        known = dict(zip(found["name"], found["found"], strict=True))
        return {name: list(known.get(name, [])) for name in ("route", "tenant", "language", "family")}
    lists = ", ".join(f"arraySort(groupUniqArray(1000)({name})) AS {name}" for name in DIMENSIONS)
    row = frame(
        asked,
        f"SELECT {lists}, arraySort(groupUniqArrayArray("
        "arrayConcat(candidate_fault_families, reference_fault_families))) AS family FROM pairs_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}",
        series.parameters(),
    ).iloc[0]
    return {name: list(row[name]) for name in ("route", "tenant", "language", "family")}


def _rows(
    asked: Asked,
    series: Series,
    wanted: PairFilter,
    sort: Sort,
    place: Place | None,
    limit: int,
    is_rolled: bool,
    near: Recent | None,
    columns: str = _COLUMNS,
) -> pd.DataFrame:
    if is_rolled and place is None and not wanted.verdicts:
        # Regressions are a part of the rollup, and come before all others: where they are enough, only they
        # are read.
        worse = msgspec.structs.replace(wanted, verdicts=REGRESSIONS)
        rows = _rows(asked, series, worse, sort, place, limit, is_rolled, near, columns)
        if len(rows) == limit:
            return rows
    view, only = ("rollup_worst_v1", _ONLY_ROLLED) if is_rolled else ("pairs_v1", _ONLY)
    where, values = _conditions(wanted, only, is_rolled)
    if is_rolled and wanted.verdicts and set(wanted.verdicts) <= set(REGRESSIONS):
        # Said so that the key is used: it has this before the verdict.
        where.append("is_regression")
    if near is not None:
        where.append(near.condition(values))
    ranks = (_RANKS[sort], *_KEY)
    way = "<" if place is not None and place.is_backwards else ">"
    if place is not None:
        where.append(
            f"({', '.join(ranks)}) {way} ({{after_rank:Float64}}, {{after_topic:String}},"
            " {after_partition:UInt32}, {after_offset:UInt64})"
        )
        values |= {
            "after_rank": place.rank,
            "after_topic": place.topic_id,
            "after_partition": place.partition,
            "after_offset": place.offset,
        }
    order = ", ".join(f"{one} DESC" if way == "<" else one for one in ranks)
    condition = " AND ".join(where)
    if series.until is not None and not is_rolled and near is None:
        # Of millions the many columns are read for the page's rows alone; of fewer, asking twice costs more.
        condition = (
            "experiment = {experiment:String} AND candidate = {candidate:String}"
            f" AND ({', '.join(_KEY)}) IN (SELECT {', '.join(_KEY)} FROM {view} WHERE {condition}"
            f" ORDER BY {order} LIMIT {{limit:UInt32}})"
        )
    return frame(
        asked,
        f"SELECT {columns.format(**only)}, {_RANKS[sort]} AS rank FROM {view}"
        f" WHERE {condition} ORDER BY {order} LIMIT {{limit:UInt32}}",
        {**series.parameters(), **values, "limit": limit},
        TEXT_LIMITS if wanted.text is not None else BY_INDEX if wanted.is_by_index() else None,
    )


def _conditions(
    wanted: PairFilter, only: dict[str, str], is_rolled: bool
) -> tuple[list[str], dict[str, Any]]:
    """The conditions and their values. What is not asked for is not read."""
    where = ["experiment = {experiment:String}", "candidate = {candidate:String}"]
    values: dict[str, Any] = {}
    for column in ("verdict", "route", "tenant", "language"):
        chosen = getattr(wanted, f"{column}s")
        if chosen:
            where.append(f"has({{{column}s:Array(String)}}, {column})")
            values[f"{column}s"] = list(chosen)
    if wanted.families:
        families = only.get(wanted.side, "arrayConcat(candidate_fault_families, reference_fault_families)")
        where.append(f"hasAny({{families:Array(String)}}, {families})")
        values["families"] = list(wanted.families)
    elif wanted.side != "any":
        one, other = sorted(_FAULTY, reverse=wanted.side == "reference_only")
        where += [_FAULTY[one], f"NOT {_FAULTY[other]}"]
    for name, condition in (
        ("severity_min", "severity >= {severity_min:Float64}"),
        ("kl_min", "kl_forced_mean_nats >= {kl_min:Float64}"),
        ("similarity_max", "edit_similarity <= {similarity_max:Float64}"),
    ):
        if getattr(wanted, name) is not None:
            where.append(condition)
            values[name] = getattr(wanted, name)
    if wanted.is_near_tie:
        where.append("is_near_tie")
    if wanted.request_id:
        bare = wanted.request_id.strip("*")
        is_whole = bare == wanted.request_id
        where.append(
            "request_id = {request_id:String}"
            if is_whole
            else "position(request_id, {request_id:String}) > 0"
        )
        values["request_id"] = bare
    where += _times(wanted, values, is_rolled)
    if wanted.text is not None:
        where.append(f"({', '.join(_KEY)}) IN ({wanted.text.positions(values)})")
    return where, values


def _times(wanted: PairFilter, values: dict[str, Any], is_rolled: bool) -> list[str]:
    where = []
    for name, sign in (("start", ">="), ("end", "<")):
        at: datetime | None = getattr(wanted, name)
        if at is not None:
            where.append(f"mirrored_at {sign} {{{name}:DateTime64(3, 'UTC')}}")
            values[name] = at
    if wanted.start is not None:
        # `mirrored_at` is within the tolerance of `ingested_at`, so no older day need be read.
        oldest = wanted.start - CLOCK_TOLERANCE - (timedelta(hours=1) if is_rolled else timedelta(0))
        where.append(f"{'ingested_hour' if is_rolled else 'ingested_at'} >= {{oldest:DateTime64(3, 'UTC')}}")
        values["oldest"] = oldest
    return where


def _place(row: pd.Series, before: int, *, is_backwards: bool) -> Place:
    return Place(
        before,
        is_backwards,
        float(row["rank"]),
        str(row["topic_id"]),
        int(row["partition"]),
        int(row["offset"]),
    )
