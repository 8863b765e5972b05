"""How the service does: records by minute and outcome, their lag, the partitions, and each hour's account.

Times here are of ingestion: when a record was taken up and stored, not when it was mirrored.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pandas as pd

from dashboards.asked import Asked, between, frame
from dashboards.questions.offsets import offsets_of, within
from dashboards.questions.summary import ROLLED_PAIRS, Series

KINDS = ("compared", "skipped", "failed", "dead_letter")
"""Outcomes of a delivered record, as `rollup_minutes_v1.kind` has them."""

MOST_STEPS = 180
STEPS_MIN = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
"""Lengths of a step of the charts, in minutes."""

MOST_HOURS = 48
MOST_PARTITIONS = 500

_EXPERIMENT = "experiment = {experiment:String}"
_MINE = f"{_EXPERIMENT} AND candidate IN ('', {{candidate:String}})"
_RAW = (
    "(SELECT toStartOfMinute(ingested_at) AS minute, 'compared' AS kind, toString(verdict) AS reason,"
    " count() AS records, avg(dateDiff('millisecond', mirrored_at, ingested_at)) AS lag_mean_ms,"
    " max(dateDiff('millisecond', mirrored_at, ingested_at)) AS lag_max_ms FROM pairs_v1"
    f" WHERE {_EXPERIMENT} AND candidate = {{candidate:String}} GROUP BY minute, reason"
    " UNION ALL SELECT toStartOfMinute(ingested_at) AS minute, toString(kind), toString(reason),"
    " count() AS records, avg(dateDiff('millisecond', mirrored_at, ingested_at)),"
    " max(dateDiff('millisecond', mirrored_at, ingested_at)) FROM outcomes_v1"
    f" WHERE {_EXPERIMENT} GROUP BY minute, kind, reason)"
)


def is_rolled(asked: Asked, series: Series) -> bool:
    """Whether the experiment has so many records that its minutes are read from the rollups."""
    if series.until is not None:
        return True
    found = frame(
        asked,
        f"SELECT sum(records) AS records FROM rollup_minutes_v1 WHERE {_EXPERIMENT}",
        {"experiment": series.experiment},
    )
    return int(found["records"].iloc[0] or 0) >= ROLLED_PAIRS


def throughput(
    asked: Asked, series: Series, start: datetime | None, end: datetime | None
) -> tuple[pd.DataFrame, int]:
    """The records taken up from `start` on and before `end`, and the length of a step in minutes.

    at (UTC, the step's begin), kind, reason, records, lag_mean_s, lag_max_s (from Kafka's timestamp to
    ingestion). Pairs are those of the series' candidate. Empty if there are none.
    """
    source = _minutes(asked, series)
    within, bounds = between("minute", start, end)
    ends = frame(
        asked,
        f"SELECT min(minute) AS first, max(minute) AS last, count() AS rows FROM {source} WHERE 1{within}",
        {**series.parameters(), **bounds},
    ).iloc[0]
    if not int(ends["rows"]):
        return pd.DataFrame(), STEPS_MIN[0]
    minutes = (ends["last"] - ends["first"]).total_seconds() / 60 + 1
    step = next((one for one in STEPS_MIN if minutes / one <= MOST_STEPS), STEPS_MIN[-1])
    found = _stepped(asked, series, source, within, bounds, step)
    return found, step


def hours(asked: Asked, series: Series, start: datetime | None, end: datetime | None) -> pd.DataFrame:
    """The newest MOST_HOURS hours with a record: at (UTC), records of each of KINDS, lag_mean_s and lag_max_s
    of what was compared (None where nothing was).
    """
    source = _minutes(asked, series)
    within, bounds = between("minute", start, end)
    counted = ", ".join(f"sumIf(records, kind = '{kind}') AS {kind}" for kind in KINDS)
    return frame(
        asked,
        f"SELECT toStartOfHour(minute) AS at, {counted},"
        " if(compared = 0, NULL, sumIf(lag_mean_ms * records, kind = 'compared') / compared / 1000)"
        " AS lag_mean_s,"
        " if(compared = 0, NULL, maxIf(lag_max_ms, kind = 'compared') / 1000) AS lag_max_s"
        f" FROM {source} WHERE 1{within} GROUP BY at ORDER BY at DESC LIMIT {{most:UInt32}}",
        {**series.parameters(), **bounds, "most": MOST_HOURS},
    )


def partitions(asked: Asked, series: Series) -> pd.DataFrame:
    """The columns of `delivered`, and of the compared records of the last hour in which there are any: pairs,
    lag_mean_s, lag_max_s (None without).
    """
    known = delivered(asked, series)
    if known.empty:
        return known
    merged: pd.DataFrame = known.merge(partition_lag(asked, series), on=["topic_id", "partition"], how="left")
    return merged.astype({"pairs": "Int64"})


def delivered(asked: Asked, series: Series) -> pd.DataFrame:
    """consumer_group, topic, topic_id, partition, next_offset, records, lost_retention, last_at (UTC)."""
    return frame(
        asked,
        "SELECT consumer_group, topic, topic_id, `partition`, max(end_offset) AS next_offset,"
        " sum(records) AS records, sum(lost_retention) AS lost_retention, max(ingested_at) AS last_at"
        f" FROM delivered_ranges_v1 WHERE {_EXPERIMENT}"
        " GROUP BY consumer_group, topic, topic_id, `partition`"
        " ORDER BY last_at DESC, topic_id, `partition` LIMIT {most:UInt32}",
        {"experiment": series.experiment, "most": MOST_PARTITIONS},
    )


def partition_lag(asked: Asked, series: Series) -> pd.DataFrame:
    """topic_id, partition, pairs, lag_mean_s, lag_max_s of the last hour in which records were compared."""
    newest, near = "{newest:DateTime('UTC')}", ""
    parameters: dict[str, Any] = {**series.parameters()}
    if series.until is None:
        newest = f"(SELECT max(ingested_at) FROM pairs_v1 WHERE {_MINE})"
    else:
        parameters["newest"] = int(series.until.timestamp())
        near, bounds = within(offsets_of(asked, series, series.until - timedelta(hours=1), None))
        parameters |= bounds
    return frame(
        asked,
        "SELECT topic_id, `partition`, count() AS pairs,"
        " avg(dateDiff('millisecond', mirrored_at, ingested_at)) / 1000 AS lag_mean_s,"
        " max(dateDiff('millisecond', mirrored_at, ingested_at)) / 1000 AS lag_max_s"
        f" FROM pairs_v1 WHERE {_EXPERIMENT} AND candidate = {{candidate:String}}"
        f" AND ingested_at > {newest} - INTERVAL 1 HOUR{near} GROUP BY topic_id, `partition`",
        parameters,
    )


def _minutes(asked: Asked, series: Series) -> str:
    if not is_rolled(asked, series):
        return _RAW
    columns = "minute, kind, reason, records, lag_mean_ms, lag_max_ms"
    return f"(SELECT {columns} FROM rollup_minutes_v1 WHERE {_MINE})"


def _stepped(
    asked: Asked, series: Series, source: str, within: str, bounds: dict[str, Any], step: int
) -> pd.DataFrame:
    return frame(
        asked,
        "SELECT toStartOfInterval(minute, toIntervalMinute({step:UInt32})) AS at, kind, reason,"
        " sum(records) AS total, sum(lag_mean_ms * records) / total / 1000 AS lag_mean_s,"
        f" max(lag_max_ms) / 1000 AS lag_max_s FROM {source} WHERE 1{within}"
        " GROUP BY at, kind, reason ORDER BY at, kind, reason",
        {**series.parameters(), **bounds, "step": step},
    ).rename(columns={"total": "records"})
