"""What the pages of alerts and drift ask, against numbers counted by hand from `alarmed`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from compare.alerts.actions import Matcher, Target, acknowledge, silence, unsilence
from compare.alerts.descriptive import compare_slices
from compare.store.client import Store, open_store
from dashboards.questions import alerts, drift, drift_samples, overview
from dashboards.questions.drift import Detector
from dashboards.questions.drift_samples import Part
from dashboards.questions.offsets import Offsets, offsets_of
from dashboards.questions.summary import Series
from ingest.settings import StoreSettings
from tests.dashboards.alarmed import CANDIDATE, EXPERIMENT, FIRST, HOUR, IN_SLICE, OVER, THRESHOLD, fill
from tests.fixtures.stores import MigratedAt

SERIES = Series(EXPERIMENT, CANDIDATE)
KL = Detector("kl_forced", "experiment", "")


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt
) -> Iterator[tuple[Store, datetime]]:
    folder = tmp_path_factory.mktemp("alarmed") / "store"
    start = fill(folder, migrated_at)
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as opened:
        yield opened, start


@pytest.fixture
def store(made: tuple[Store, datetime]) -> Store:
    return made[0]


@pytest.fixture
def start(made: tuple[Store, datetime]) -> datetime:
    return made[1]


def test_groups_that_fire_are_listed_first_and_in_them_the_whole_experiment(
    store: Store, start: datetime
) -> None:
    def ids(first: datetime | None, last: datetime | None) -> list[str]:
        found = alerts.listed(store, SERIES, first, last)
        return [] if found.empty else list(found["alert_id"])

    assert ids(None, None) == [FIRST, IN_SLICE, OVER]
    # It was over an hour before the calm pairs, and had fired two hours before them.
    assert ids(start, None) == [FIRST, IN_SLICE]
    assert ids(start - 90 * timedelta(minutes=1), start) == [OVER]
    assert ids(None, start - 3 * HOUR) == []


def test_one_alert_has_its_evidence_and_worst_pairs_keep_their_order(store: Store) -> None:
    alert = alerts.one(store, EXPERIMENT, FIRST)
    assert alert is not None
    assert (alert["value_since"], alert["pairs_since_change"], alert["noise_floor"]) == (0.25, 40, 0.0125)
    found = alerts.worst(
        store, SERIES, [*alert["worst_pairs"], {"topic_id": "gone", "partition": 0, "offset": 1}]
    )
    assert list(found["offset"]) == [44, 40]
    assert list(found["divergence_position"]) == [7, 7]
    assert alerts.one(store, EXPERIMENT, "nobody") is None


def test_what_people_do_is_in_the_history_and_a_silence_holds_until_it_is_ended(store: Store) -> None:
    now = datetime.now(UTC)
    acknowledge(store, Target(EXPERIMENT, OVER, OVER), by="ann", note="mine")
    matcher = Matcher(experiment=EXPERIMENT, metric="kl_forced")
    silence(store, matcher, ends_at=now + HOUR, now=now, by="bob", note="known")
    alert = alerts.one(store, EXPERIMENT, OVER)
    assert alert is not None
    # The silence is of a metric, so of this alert too.
    events = alerts.history(store, alert)
    assert list(events["event"]) == ["resolved", "acknowledged", "silenced"]
    assert events["detail"].iloc[2].endswith("UTC metric kl_forced known")
    (held,) = alerts.silences(store, EXPERIMENT, now)
    assert (held.matcher, held.acted_by, held.note) == (matcher, "bob", "known")
    assert alerts.is_covered(alert, held)
    assert not alerts.is_covered({**alert, "metric": "latency_ratio"}, held)
    assert alerts.silences(store, EXPERIMENT, now + 2 * HOUR) == []
    unsilence(store, held, by="ann", note="over")
    assert alerts.silences(store, EXPERIMENT, now) == []
    ended = alerts.history(store, alert).iloc[-1]
    assert (ended["event"], ended["acted_by"], ended["detail"]) == ("unsilenced", "ann", "over")
    other = alerts.one(store, EXPERIMENT, FIRST)
    assert other is not None
    assert "unsilenced" not in set(alerts.history(store, other)["event"])


def test_what_fires_says_who_handles_it_and_comes_last_then(store: Store) -> None:
    acknowledge(store, Target(EXPERIMENT, FIRST, FIRST), by="ann", note="")
    found = overview.firing(store, SERIES)
    assert list(found["alert_id"]) == [IN_SLICE, FIRST]
    assert list(found["acknowledged_by"]) == ["", "ann"]
    assert (found["count"].iloc[0], found["handled"].iloc[0]) == (2, 1)


def test_the_age_of_the_pairs_is_that_of_the_newest_mirrored(store: Store, start: datetime) -> None:
    found = overview.spread(store, SERIES)
    assert found == overview.Spread(80, start, start + HOUR + timedelta(minutes=39))
    assert overview.spread(store, Series("none", "q4")) is None


def test_detectors_come_nearest_to_an_alarm_first_with_what_was_observed(
    store: Store, start: datetime
) -> None:
    found = drift.states(store, SERIES, None, None)
    shown = [row for row in found if row["status"] in drift.STATUSES]
    assert [(row["metric"], row["slice"]) for row in shown] == [
        ("regression_rate", ""),
        ("kl_forced", ""),
        ("candidate_only_excess", ""),
        ("candidate_only_excess", "extract"),
        ("unscored_rate", ""),
        ("candidate_only_excess", "chat"),
        ("cosine_similarity", ""),
    ]
    assert [(row["dimension"], row["pairs_folded"]) for row in drift.refused(found)] == [("tenant", 7)]
    fired, kl, excess = shown[:3]
    assert (fired["share"], fired["evidence"]) == (1.0, 1.0)
    # A is 52,000 / 52: from W = 10 to 1,000 a third of the way is done.
    assert fired["way_back"] == pytest.approx(1 / 3)
    assert (fired["observed"], fired["observed_pairs"]) == (0.125, 80)
    assert kl["evidence"] == pytest.approx(math.log(5_200) / math.log(THRESHOLD))
    assert excess["observed"] == pytest.approx((40 * -0.025 + 40 * 0.25) / 80)
    one_hour = drift.states(store, SERIES, start + HOUR, None)[0]
    assert (one_hour["observed"], one_hour["observed_pairs"]) == (0.25, 40)
    # Whoever gives the range may give any year.
    forever = datetime(1960, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
    assert drift.states(store, SERIES, *forever)[0]["observed_pairs"] == 80


def test_two_times_are_held_against_each_other(store: Store, start: datetime) -> None:
    learned = drift.baseline(store, SERIES, "kl_forced", 1)
    assert learned is not None
    old, new = Part(learned["from_at"], learned["to_at"]), Part(learned["to_at"], None)
    samples = drift_samples.two_times(store, SERIES, KL, old, new)
    assert (len(samples.before), len(samples.now)) == (40, 40)
    # Means of 0.01 to 0.1 and of 0.1 to 1.0, in steps of a tenth of that.
    assert samples.before.mean() == pytest.approx(0.055)
    assert samples.now.mean() == pytest.approx(0.55)
    assert samples.now_from == start + HOUR
    tested = compare_slices("rank", samples.before, samples.now, samples.slices)
    assert {(one.dimension, one.slice, one.pairs) for one in tested} == {
        ("route", "chat", 20),
        ("route", "extract", 20),
    }
    halves = drift_samples.two_halves(
        store, SERIES, Detector("regression_rate", "route", "extract"), Part(None, None)
    )
    assert (len(halves.before), halves.before.sum(), len(halves.now), halves.now.sum()) == (20, 0, 20, 10)


def test_records_are_counted_from_the_hours_and_only_the_last_that_hold_enough(
    store: Store, start: datetime
) -> None:
    hours = drift.hours(store, SERIES, Detector("unscored_rate", "experiment", ""), None, None)
    # Both hours together hold fewer than one sample's records.
    counted = drift_samples.counted_halves(hours)
    assert (len(counted.before), len(counted.now), counted.now.sum()) == (0, 200, 6)
    many = [
        {"hour_at": start + hour * HOUR, "pairs": pairs, "observed": observed}
        for hour, (pairs, observed) in enumerate([(5_000, 0.1), (3_000, 0.2), (4_000, 0.5)])
    ]
    counted = drift_samples.counted_halves(many)
    assert (len(counted.now), counted.now.mean()) == (4_000, 0.5)
    assert (len(counted.before), counted.before.sum()) == (8_000, 500 + 600)
    assert drift_samples.holding(many, 4_001) == 2
    assert drift_samples.narrowed(Part(None, None), many, 4_000) == Part(start + 2 * HOUR, None)
    assert drift_samples.narrowed(Part(start, start + HOUR), many, 1) == Part(start, start + HOUR)


def test_slices_are_ranked_by_what_is_left_over_the_floor(store: Store, start: datetime) -> None:
    part = Part(start, None)
    found = drift_samples.excess_by_slice(store, SERIES, "kl_forced_mean_nats", "route", part)
    # Asked twice were offsets 0 to 3: 0.01 and 0.03 nats on extract, 0.02 and 0.04 on chat; the floor is
    # 0.005.
    assert [(row["slice"], row["requests"]) for row in found] == [("chat", 2), ("extract", 2)]
    assert [row["excess"] for row in found] == pytest.approx([0.025, 0.015])
    assert drift_samples.excess_by_slice(store, SERIES, "cosine_similarity", "route", part) == []


def test_faults_of_one_side_have_the_other_side_as_their_floor(store: Store) -> None:
    found = drift_samples.fault_excess_by_slice(drift.states(store, SERIES, None, None), "route")
    assert [row["slice"] for row in found] == ["extract", "chat"]
    assert [row["excess"] for row in found] == [0.25, -0.025]
    assert [row["floor"] for row in found] == [0.0, 0.025]
    # As @fault_excess has it: n + 2 pairs, one more on each side.
    shrunk, n = 10 / 42, 42
    half = 1.959963984540054 * math.sqrt((11 / n - shrunk**2) / n)
    assert (found[0]["low"], found[0]["high"]) == pytest.approx((shrunk - half, shrunk + half))


def test_of_a_series_in_rollups_only_the_offsets_of_that_time_are_read(store: Store, start: datetime) -> None:
    names = ("experiment", "candidate", "topic_id", "partition", "offset", "request_id", "mirrored_at")
    rows = [
        (EXPERIMENT, CANDIDATE, "t-1", 0, offset, f"r-0-{offset}", hour, hour, "match", "extract")
        for offset, hour in ((3, start), (20, start), (45, start + HOUR))
    ]
    store.insert("rollup_worst", (*names, "ingested_hour", "verdict", "route"), rows)
    rolled = Series(EXPERIMENT, CANDIDATE, until=start + 2 * HOUR)
    assert offsets_of(store, SERIES, start, None) is None
    assert offsets_of(store, rolled, start, start + HOUR) == (Offsets("t-1", 0, 3, 20),)
    assert offsets_of(store, rolled, start, None) == (Offsets("t-1", 0, 3, None),)
    assert offsets_of(store, rolled, start, start + HOUR, 5) == (Offsets("t-1", 0, 16, 20),)
    # Open to the past: from an hour before the end on.
    assert offsets_of(store, rolled, None, None) == (Offsets("t-1", 0, 45, None),)
    # Whoever gives the range may give any year.
    forever = datetime(1960, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
    assert offsets_of(store, rolled, *forever) == (Offsets("t-1", 0, 3, 45),)
    samples = drift_samples.two_times(store, rolled, KL, Part(start, start + HOUR), Part(start + HOUR, None))
    assert (len(samples.before), len(samples.now)) == (18, 35)
    nothing = drift_samples.two_halves(store, rolled, KL, Part(start - 9 * HOUR, start - 8 * HOUR))
    assert (len(nothing.before), len(nothing.now)) == (0, 0)
    (chat,) = drift_samples.excess_by_slice(
        store, rolled, "kl_forced_mean_nats", "route", Part(start, start + HOUR)
    )
    # Of the four that were asked twice only offset 3 is within.
    assert (chat["slice"], chat["requests"]) == ("chat", 1)
