"""Times of a zone with summer time, against hours looked up by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from dashboards.shell.clock import EARLIEST, LATEST, Clock, is_zone

# Berlin goes back from 03:00 CEST to 02:00 CET on 2026-10-25 at 01:00 UTC.
BEFORE = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
AFTER = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_the_zones_name_then_goes_with_the_time() -> None:
    clock = Clock("Europe/Berlin")
    assert clock.show(BEFORE) == "2026-10-25 02:30:00 CEST (+02:00)"
    assert clock.show(AFTER, seconds=False) == "2026-10-25 02:30 CET (+01:00)"
    assert Clock().show(AFTER) == "2026-10-25 01:30:00 UTC"
    # A zone without an abbreviation.
    assert Clock("Asia/Kathmandu").show(BEFORE) == "2026-10-25 06:15:00 +05:45"


def test_tables_show_the_wall_clock() -> None:
    walls = Clock("Europe/Berlin").wall(pd.Series([BEFORE, AFTER, None]))
    assert list(walls[:2]) == [pd.Timestamp("2026-10-25 02:30")] * 2
    assert walls.dt.tz is None
    one = Clock("Europe/Berlin").wall_time(pd.Timestamp(AFTER))
    assert (one, one.tz) == (pd.Timestamp("2026-10-25 02:30"), None)
    assert walls.isna()[2]
    assert Clock("Asia/Kathmandu").wall(pd.Series([BEFORE]))[0] == pd.Timestamp("2026-10-25 06:15")


def test_typed_times_are_of_the_zone_unless_they_say_another() -> None:
    clock = Clock("Europe/Berlin")
    assert clock.parse(" 2026-07-01 03:00 ") == datetime(2026, 7, 1, 1, tzinfo=UTC)
    assert clock.parse("2026-01-01") == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert clock.parse("2026-07-01T03:00Z") == datetime(2026, 7, 1, 3, tzinfo=UTC)
    # Of the hour that comes twice, the first.
    assert clock.parse("2026-10-25 02:30") == BEFORE
    for far in ("9999-12-31 23:59", "9999-12-31T23:59-12:00", "2201-01-01"):
        assert clock.parse(far) == LATEST
    assert clock.parse("0001-01-01") == clock.parse("2000-01-01 00:30") == EARLIEST
    with pytest.raises(ValueError, match="yesterday"):
        clock.parse("yesterday")


def test_zones_are_those_that_are_known() -> None:
    assert is_zone("Europe/Berlin")
    assert not is_zone("Mars/Base")
    assert not is_zone("../../etc/passwd")
    assert not is_zone("E" * 65)
