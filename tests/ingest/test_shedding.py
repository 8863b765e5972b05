from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from ingest.decode import clamp_time
from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest
from ingest.settings import DeliverySettings
from ingest.shedding import Shedder
from tests.ingest.mirrored import mirrored

NOW = datetime.now(UTC).replace(microsecond=0)
BODY: dict[str, Any] = {"model": "m", "messages": []}


def at(age_s: float, request_id: str = "r", *, now: datetime = NOW) -> MirroredRequest:
    """A request that Kafka took `age_s` ago, as the decoder dates it."""
    return stamped(round((now.timestamp() - age_s) * 1000), request_id, now)


def stamped(timestamp_ms: int, request_id: str = "r", now: datetime = NOW) -> MirroredRequest:
    mirrored_at, is_suspect = clamp_time(timestamp_ms, now)
    return msgspec.structs.replace(
        mirrored(BODY, request_id), mirrored_at=mirrored_at, is_clock_suspect=is_suspect
    )


def shedder(shed: Literal["oldest", "newest"] = "oldest", max_lag_s: float | None = 600.0) -> Shedder:
    return Shedder(DeliverySettings(max_lag_s=max_lag_s, shed=shed), seed=7)


def test_without_a_limit_nothing_is_shed() -> None:
    assert shedder(max_lag_s=None).shed(at(6 * 86400), NOW) is None


def test_oldest_leaves_out_a_backlog_until_it_is_within_the_lag() -> None:
    one = shedder()
    # A backlog of an hour, a record each 10 s, read at once: 601 to 3600 s old are shed.
    ages = range(3600, -1, -10)
    kept = [age for age in ages if one.shed(at(age), NOW) is None]
    assert kept == [age for age in ages if age <= 600]


def test_a_shed_record_says_how_far_behind_it_is() -> None:
    assert shedder().shed(at(3600), NOW) == Skipped(
        SkipReason.SHED, "3600 s behind, delivery.max_lag_s = 600"
    )


def test_newest_thins_evenly_and_more_the_further_behind() -> None:
    for age, share in ((601, 1 / 2), (1200, 1 / 2), (1201, 1 / 4), (4800, 1 / 8), (4801, 1 / 16)):
        one = shedder("newest")
        kept = [n for n in range(4000) if one.shed(at(age, f"r-{n}"), NOW) is None]
        # Five standard deviations of a binomial(4000, share).
        assert abs(len(kept) - 4000 * share) < 5 * (4000 * share * (1 - share)) ** 0.5, age
    # No stretch of the traffic is left out: each of its 40 parts keeps some.
    one = shedder("newest")
    kept = [n for n in range(4000) if one.shed(at(2000, f"r-{n}"), NOW) is None]
    assert {n // 100 for n in kept} == set(range(40))


def test_newest_keeps_the_same_requests_on_every_host_and_fewer_of_them_further_behind() -> None:
    def kept(age: float) -> set[int]:
        one = shedder("newest")
        return {n for n in range(1000) if one.shed(at(age, f"r-{n}"), NOW) is None}

    assert kept(900) == kept(1000)
    assert kept(9000) < kept(3000) < kept(900)


def test_newest_bounds_the_lag() -> None:
    """Twice the traffic that can be replayed: the lag settles, and what is left out is spread evenly."""
    one, lag, kept = shedder("newest"), 0.0, []
    for n in range(20_000):
        # A record a second; one that is replayed takes 2 s, one that is shed none.
        now = NOW + timedelta(seconds=n + lag)
        is_kept = one.shed(at(lag, f"r-{n}", now=now), now) is None
        kept.append(is_kept)
        lag = max(0.0, lag + (1.0 if is_kept else -1.0))
    assert lag < 2 * 600
    assert abs(sum(kept[2000:]) - 9000) < 600


def test_a_wrong_clock_among_right_ones_neither_sheds_nor_saves_the_others() -> None:
    fresh = shedder()
    for n in range(1, 200):
        # Every fourth producer's clock is three hours late, every fifth one's three hours early.
        age = 10_800 if n % 4 == 0 else -10_800 if n % 5 == 0 else 1
        assert fresh.shed(at(age), NOW) is None, n
    behind = shedder()
    shed = [n for n in range(1, 200) if behind.shed(at(-10_800 if n % 5 == 0 else 7200), NOW)]
    assert set(range(1, 200)) - set(shed) == set(range(5, 200, 5))


def test_a_suspect_clock_has_the_age_of_its_neighbours() -> None:
    absurd = [0, -1, int(datetime(9999, 1, 1, tzinfo=UTC).timestamp() * 1000), 10**15, 10**18, -(10**15)]
    alone = shedder()
    assert [alone.shed(stamped(ms), NOW) for ms in absurd] == [None] * len(absurd)
    fresh, behind = shedder(), shedder()
    for _ in range(40):
        fresh.shed(at(5), NOW)
        behind.shed(at(4000), NOW)
    assert [fresh.shed(stamped(ms), NOW) for ms in absurd] == [None] * len(absurd)
    assert all(behind.shed(stamped(ms), NOW) for ms in absurd)


def test_partitions_are_told_apart() -> None:
    one = shedder()
    for _ in range(40):
        one.shed(at(4000), NOW)
    other = msgspec.structs.replace(
        stamped(0), position=msgspec.structs.replace(stamped(0).position, partition=1)
    )
    assert one.shed(other, NOW) is None
    assert one.shed(stamped(0), NOW) is not None


def test_sparse_traffic_after_a_backlog_is_fresh_at_once() -> None:
    one = shedder()
    # A record a minute, read late: the first that is within the lag is replayed, and all after it.
    ages = [7200 - 60 * n for n in range(120)] + [1.0] * 40
    assert [one.shed(at(age), NOW) is None for age in ages] == [age <= 600 for age in ages]
