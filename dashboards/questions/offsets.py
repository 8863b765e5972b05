"""Where in the topic a time lies, so that few of millions of pairs are read for it.

Pairs are ordered by their source position and not by time: a bound on time alone reads the whole day. The
worst pairs of each hour, which the rollups keep, tell which offsets the hour has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dashboards.asked import Asked, seconds
from dashboards.questions.summary import Series

_HOUR = timedelta(hours=1)


class Offsets(msgspec.Struct, frozen=True):
    """From offset `first` to `last` of one partition, both within; None is open."""

    topic_id: str
    partition: int
    first: int
    last: int | None


def offsets_of(
    asked: Asked, series: Series, start: datetime | None, end: datetime | None, most: int | None = None
) -> tuple[Offsets, ...] | None:
    """The offsets of the pairs stored from `start` on and before `end`, nearly; None where all may be read.

    That is a series which is not read from rollups. A time without a start begins an hour before its end.
    Of many offsets the last `most` of all partitions together.
    """
    if series.until is None:
        return None
    first = (start or (end or series.until) - _HOUR).replace(minute=0, second=0, microsecond=0)
    sql = (
        "SELECT topic_id, `partition`, min(`offset`), max(`offset`) FROM rollup_worst_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND ingested_hour >= {first:DateTime('UTC')}"
    )
    values: dict[str, Any] = {**series.parameters(), "first": seconds(first)}
    if end is not None:
        sql += " AND ingested_hour < {end:DateTime('UTC')}"
        values["end"] = seconds(end)
    rows = asked.query(sql + " GROUP BY topic_id, `partition` ORDER BY topic_id, `partition`", values).rows
    return tuple(
        Offsets(
            str(topic),
            int(partition),
            int(low) if most is None else max(int(low), int(high) + 1 - most // len(rows)),
            None if end is None else int(high),
        )
        for topic, partition, low, high in rows
    )


def within(ranges: Sequence[Offsets] | None) -> tuple[str, dict[str, Any]]:
    """A condition ` AND (...)` on a key's columns with its parameters: all for None, nothing for no range."""
    if ranges is None:
        return "", {}
    parts, values = [], dict[str, Any]()
    for number, one in enumerate(ranges):
        part = (
            f"topic_id = {{in_topic_{number}:String}} AND `partition` = {{in_partition_{number}:UInt32}}"
            f" AND `offset` >= {{in_first_{number}:UInt64}}"
        )
        values |= {f"in_topic_{number}": one.topic_id, f"in_partition_{number}": one.partition}
        values[f"in_first_{number}"] = one.first
        if one.last is not None:
            part += f" AND `offset` <= {{in_last_{number}:UInt64}}"
            values[f"in_last_{number}"] = one.last
        parts.append(f"({part})")
    return f" AND ({' OR '.join(parts) or 'false'})", values
