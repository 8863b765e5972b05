from __future__ import annotations

import logging
import math

import pytest

from ingest.breaker import Breaker


class Middle:
    """A random number generator without jitter."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


def breaker(failures: int = 3) -> Breaker:
    return Breaker("cand", failures, Middle())  # type: ignore[arg-type]


def opened(at: float = 0.0, retry_after_s: float | None = None) -> Breaker:
    one = breaker()
    for _ in range(3):
        one.away(at, "connection refused", retry_after_s)
    return one


def test_it_opens_after_so_many_in_a_row() -> None:
    one = breaker()
    for away in (True, True, False, True, True):
        if away:
            one.away(0.0, "refused")
        else:
            one.present(0.0)
    assert one.openings == 0
    one.away(0.0, "refused")
    assert one.is_open and one.openings == 1


def test_it_opens_at_half_of_the_last_twenty() -> None:
    one = breaker()
    for call in range(19):
        (one.present if call % 2 else lambda now: one.away(now, "HTTP 429"))(0.0)
    assert not one.is_open
    one.present(0.0)
    assert not one.is_open
    one.away(0.0, "HTTP 429")
    assert one.is_open


def test_zero_failures_switch_it_off() -> None:
    one = breaker(0)
    for _ in range(100):
        one.away(0.0, "refused", 3600.0)
    assert not one.is_open and one.wait_s(0.0) == 0.0


def test_probes_go_one_at_a_time_after_doubling_waits() -> None:
    one, now, waits = opened(), 0.0, []
    for _ in range(7):
        wait = one.wait_s(now)
        waits.append(wait)
        now += wait
        assert one.call()
        assert one.wait_s(now) == math.inf
        one.away(now, "refused", is_probe=True)
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_waits_have_a_fifth_of_jitter_either_way() -> None:
    waits = set()
    for _ in range(200):
        one = Breaker("cand", 1)
        one.away(0.0, "refused")
        waits.add(one.wait_s(0.0))
    assert 0.8 <= min(waits) < 0.9 < 1.1 < max(waits) <= 1.2


def test_a_probe_that_meets_somebody_closes_it_and_all_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        one = opened()
        assert one.wait_s(1.0) == 0.0 and one.call()
        one.away(1.0, "refused", is_probe=True)
        assert one.wait_s(3.0) == 0.0 and one.call()
        one.present(3.0, is_probe=True)
    for _ in range(3):
        assert one.wait_s(3.0) == 0.0
        one.away(3.0, "refused")
    assert one.wait_s(3.0) == 1.0
    assert [record.getMessage() for record in caplog.records][:2] == [
        'endpoint "cand" is away (connection refused): breaker open, next call in 1 s',
        'endpoint "cand" is back: breaker closed after 3 s',
    ]


def test_calls_from_before_say_nothing_while_it_is_open() -> None:
    one = opened()
    one.present(0.5)
    assert one.is_open
    one.away(0.5, "refused")
    assert one.wait_s(0.5) == 0.5


def test_retry_after_is_honoured_when_it_opens_and_while_it_is_open() -> None:
    assert opened(retry_after_s=12.0).wait_s(0.0) == 12.0
    one = opened()
    one.away(0.5, "HTTP 503", 7.0)
    assert one.wait_s(0.5) == 7.0
    assert one.wait_s(7.5) == 0.0 and one.call()
    one.away(7.5, "HTTP 429", 90.0, is_probe=True)
    assert one.wait_s(7.5) == 90.0


def test_a_long_retry_after_opens_it_at_once_and_nonsense_is_capped() -> None:
    one = breaker()
    one.away(0.0, "HTTP 429", 20.0)
    assert not one.is_open
    one.away(0.0, "HTTP 429", 1e12)
    assert one.wait_s(0.0) == 3600.0


def test_a_lost_probe_lets_the_next_call_probe() -> None:
    one = opened()
    assert one.wait_s(1.0) == 0.0 and one.call()
    one.lost()
    assert one.wait_s(1.0) == 0.0 and one.is_open


def test_an_outage_of_weeks_still_waits_thirty_seconds() -> None:
    one, now = opened(), 0.0
    for _ in range(5000):
        now += one.wait_s(now)
        one.call()
        one.away(now, "refused", is_probe=True)
    assert one.wait_s(now) == 30.0
