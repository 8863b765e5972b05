"""The newest pairs of a range: a list is read from some hundred thousand pairs, and not from millions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from dashboards.asked import Asked, seconds
from dashboards.questions.offsets import Offsets, offsets_of, within
from dashboards.questions.summary import Series

MOST = 200_000
"""About so many pairs are looked through: 100 to 200 ms of a processor."""


class Recent(msgspec.Struct, frozen=True):
    """The pairs mirrored from `start` (UTC, an hour's begin) on, and nearly where they lie in the topic."""

    start: datetime
    ranges: tuple[Offsets, ...] | None

    def condition(self, values: dict[str, Any]) -> str:
        """A condition on the rows of `pairs_v1`; its values are put into `values`."""
        places, bounds = within(self.ranges)
        values |= {**bounds, "recent": self.start}
        return f"mirrored_at >= {{recent:DateTime64(3, 'UTC')}}{places}"


def recent(asked: Asked, series: Series, start: datetime | None, end: datetime | None) -> Recent | None:
    """The newest hours, mirrored from `start` on and before `end`, that hold MOST pairs together.

    None where the range holds no more, and for a series that is not read from rollups: all may be read.
    """
    if series.until is None:
        return None
    sql = (
        "SELECT hour, sum(pairs) FROM rollup_sums_v1 WHERE dimension = 'all'"
        " AND experiment = {experiment:String} AND candidate = {candidate:String}"
    )
    values: dict[str, Any] = series.parameters()
    for name, condition, at in (
        ("start", "hour >= toStartOfHour({start:DateTime('UTC')})", start),
        ("end", "hour < {end:DateTime('UTC')}", end),
    ):
        if at is not None:
            sql += f" AND {condition}"
            values[name] = seconds(at)
    rows = asked.query(f"{sql} GROUP BY hour ORDER BY hour DESC", values).rows
    held = 0
    for hour, pairs in rows[:-1]:
        held += int(pairs)
        if held >= MOST:
            return Recent(hour, offsets_of(asked, series, hour, end))
    return None
