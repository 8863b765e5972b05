"""The explorer's list of pairs, the worst first, page by page."""

from __future__ import annotations

from typing import Any

import msgspec
import pandas as pd

from compare.rollups.select import WORST_ROWS
from dashboards.asked import Asked, frame
from dashboards.summary import Series

PAGE_ROWS = 100

_COLUMNS = (
    "request_id, route, verdict, severity, {candidate_only} AS candidate_only, {reference_only} AS"
    " reference_only, kl_forced_mean_nats, kl_prefix_mean_nats, edit_similarity, cosine_similarity,"
    " divergence_position, reference_total_ms, candidate_total_ms, mirrored_at, is_regression, topic_id,"
    " `partition`, `offset`"
)
_RAW = _COLUMNS.format(candidate_only="candidate_only_families", reference_only="reference_only_families")
_ROLLED = _COLUMNS.format(
    candidate_only="arrayFilter(name -> NOT has(reference_fault_families, name), candidate_fault_families)",
    reference_only="arrayFilter(name -> NOT has(candidate_fault_families, name), reference_fault_families)",
)
_WHERE = (
    "experiment = {experiment:String} AND candidate = {candidate:String}"
    " AND (empty({verdicts:Array(String)}) OR has({verdicts:Array(String)}, verdict))"
    " AND (empty({routes:Array(String)}) OR has({routes:Array(String)}, route))"
    " AND (empty({families:Array(String)}) OR hasAny({families:Array(String)},"
    " arrayConcat(candidate_fault_families, reference_fault_families)))"
    " AND ({request_id:String} = '' OR position(request_id, {request_id:String}) > 0)"
)
_RANK = "NOT is_regression, -toFloat64(ifNull(severity, -1)), topic_id, `partition`, `offset`"
_AFTER = (
    f" AND ({_RANK}) > ({{after_regression:Bool}}, {{after_severity:Float64}}, {{after_topic_id:String}},"
    " {after_partition:UInt32}, {after_offset:UInt64})"
)


class PairFilter(msgspec.Struct, frozen=True):
    """What the list is narrowed to; an empty tuple means all."""

    verdicts: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    request_id: str = ""


class Rank(msgspec.Struct, frozen=True):
    """The place of one pair in the list: the next page begins behind it."""

    regression: bool
    severity: float
    topic_id: str
    partition: int
    offset: int


def rank_of(row: pd.Series) -> Rank:
    """The place of one row of `page`."""
    severity = -1.0 if pd.isna(row["severity"]) else float(row["severity"])
    # Turned around, as the list is in falling order of these two.
    return Rank(
        not row["is_regression"], -severity, str(row["topic_id"]), int(row["partition"]), int(row["offset"])
    )


def page(
    store: Asked, series: Series, wanted: PairFilter, after: tuple[Rank, ...] = (), limit: int = PAGE_ROWS
) -> pd.DataFrame:
    """Pairs that pass the filter, regressions first, then by severity, at most `limit`.

    `after` are the last rows of the pages before. Of a series that is read from rollups, a list with a
    request id or behind the first 200 rows is read from the pairs: right, and slow over millions of them.
    """
    # The first WORST_ROWS pairs of any list without a request id are all in `rollup_worst_v1`.
    is_rolled = series.until is not None and not wanted.request_id and (len(after) + 1) * limit <= WORST_ROWS
    columns, view = (_ROLLED, "rollup_worst_v1") if is_rolled else (_RAW, "pairs_v1")
    behind: dict[str, Any] = (
        {f"after_{name}": value for name, value in msgspec.structs.asdict(after[-1]).items()} if after else {}
    )
    return frame(
        store,
        f"SELECT {columns} FROM {view} WHERE {_WHERE}{_AFTER if after else ''}"
        f" ORDER BY {_RANK} LIMIT {{limit:UInt32}}",
        {
            **series.parameters(),
            "verdicts": list(wanted.verdicts),
            "routes": list(wanted.routes),
            "families": list(wanted.families),
            "request_id": wanted.request_id,
            "limit": limit,
            **behind,
        },
    )
