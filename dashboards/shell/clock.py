"""Times in the zone that the reader chose. The store's times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pandas as pd

LONGEST_NAME = 64
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 12, 31, 23, 59, tzinfo=UTC)
"""Typed times end here: days can be taken from and added to these, and the store's types hold them."""


class Clock:
    """Shows times in one zone, whose name goes with them."""

    def __init__(self, zone: str = "UTC") -> None:
        self.name = zone
        self._zone = ZoneInfo(zone)

    def show(self, at: datetime, *, seconds: bool = True) -> str:
        """`2026-11-29 03:00:00 CST (+08:00)`: the time with its zone's abbreviation and offset then."""
        local = at.astimezone(self._zone)
        text = local.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
        return f"{text} {_zone_then(local)}"

    def wall(self, times: pd.Series) -> pd.Series:
        """Aware times as naive ones of the wall clock there: tables and charts show them as they are."""
        return pd.to_datetime(times, utc=True).dt.tz_convert(self._zone).dt.tz_localize(None)

    def wall_text(self, at: datetime) -> str:
        """One aware time as the wall clock there shows it, `2026-11-29T03:00:00.000`."""
        return at.astimezone(self._zone).replace(tzinfo=None).isoformat(timespec="milliseconds")

    def wall_time(self, at: pd.Timestamp) -> pd.Timestamp:
        """One aware time as a naive one, as `wall` makes them."""
        return at.tz_convert(self._zone).tz_localize(None)

    def parse(self, text: str) -> datetime:
        """The time (UTC) that `2026-11-29 03:00` is there; an offset or Z in the text counts.

        What is before EARLIEST or after LATEST is that. Raises ValueError for what is no time.
        """
        at = datetime.fromisoformat(text.strip())
        # By the year first: the time in UTC may be none that a datetime holds.
        if at.year < EARLIEST.year:
            return EARLIEST
        if at.year > LATEST.year:
            return LATEST
        return min(
            max((at if at.tzinfo else at.replace(tzinfo=self._zone)).astimezone(UTC), EARLIEST), LATEST
        )


def _zone_then(local: datetime) -> str:
    """`CST (+08:00)`, for abbreviations are of several zones; `UTC` and `+05:45` say it all."""
    name, offset = local.strftime("%Z"), local.isoformat()[-6:]
    if name == "UTC":
        return name
    return f"{name} ({offset})" if name.isalpha() else offset


@cache
def all_zones() -> tuple[str, ...]:
    """Every zone that is known here, sorted: listing them reads a folder of hundreds of files."""
    return tuple(sorted(available_timezones()))


def is_zone(name: str) -> bool:
    """Whether it is the name of a zone that is known here."""
    return len(name) <= LONGEST_NAME and name in all_zones()
