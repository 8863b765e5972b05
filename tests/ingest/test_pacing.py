from __future__ import annotations

import pytest

from ingest.pacing import Pace


def departures(rate: float, arrivals: list[float], late_s: float = 0.0) -> list[float]:
    """When requests that arrive then go, each by a timer that is late by `late_s`."""
    pace, clock, gone = Pace(rate), 0.0, []
    for arrival in arrivals:
        clock = max(clock, arrival)
        while (wait := pace.wait_s(clock)) > 0:
            clock += wait + late_s
        pace.take(clock)
        gone.append(clock)
    return gone


def test_without_a_limit_nothing_waits() -> None:
    pace = Pace(None)
    for _ in range(1000):
        assert pace.wait_s(5.0) == 0.0
        pace.take(5.0)


def test_a_burst_is_spread_evenly() -> None:
    assert departures(2.0, [0.0] * 5) == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_quiet_time_saves_nothing_up() -> None:
    assert departures(1.0, [0.0, 100.0, 100.0, 100.0]) == [0.0, 100.0, 101.0, 102.0]


@pytest.mark.parametrize("rate", [0.5, 7.0, 50.0, 400.0])
def test_no_window_holds_more_than_its_share(rate: float) -> None:
    gone = departures(rate, [0.0] * 60 + [30.0] * 60, late_s=0.003)
    for first in range(len(gone)):
        for last in range(first, len(gone)):
            assert last - first + 1 <= rate * (gone[last] - gone[first] + 0.1) + 1 + 1e-6


def test_late_timers_do_not_slow_a_fast_pace() -> None:
    # 200 requests at 100 a second take 1.99 s less the credit of 0.09 s, and 2 ms for the last timer; were
    # each one's lateness added up, it would be 2.3 s.
    assert departures(100.0, [0.0] * 200, late_s=0.002)[-1] == pytest.approx(1.902)
