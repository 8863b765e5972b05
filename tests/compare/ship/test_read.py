"""Planted pairs on the real engine, against plain Python over the same pairs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta

import pytest

from compare.outcomes import Batch
from compare.rows import rows_of
from compare.ship import read_counts
from compare.ship.bounds import Counts, interval
from compare.ship.model import Dimension, ShipVerdict, Terms
from compare.ship.read import read_verdict
from compare.ship.read_counts import read_classes, read_tally
from compare.ship.scope import find_scope
from compare.store import Store
from ingest.errors import RetryError, SettingsError
from tests.compare.batches import other
from tests.compare.ship.world import DAY, Planted, brute_force, changed, is_counted, plant, random_pairs

PAIRS = random_pairs("random", 4_000, seed=11)
QUIET = Planted(0, "quiet", "", DAY)


@pytest.fixture(scope="module")
def store(migrated_store: Store) -> Iterator[Store]:
    plant(migrated_store, PAIRS)
    yield migrated_store


def verdict_on(store: Store, pairs: list[Planted], margin: float = 0.05, **terms: object) -> ShipVerdict:
    plant(store, pairs)
    return read_verdict(store, pairs[0].experiment, None, Terms(margin, **terms))  # type: ignore[arg-type]


@pytest.mark.parametrize("run_pairs", [1_000, 1_000_000])
def test_counts_are_those_of_plain_python(
    store: Store, monkeypatch: pytest.MonkeyPatch, run_pairs: int
) -> None:
    monkeypatch.setattr(read_counts, "RUN_PAIRS", run_pairs)
    scope = find_scope(store, "random", None, None, None)
    classes = read_classes(store, scope)
    tally = read_tally(store, scope, classes)
    expected = brute_force(PAIRS)
    assert tally.whole == Counts(*expected.pop(("", "")))
    found = {(one.dimension, one.value): one.counts for one in tally.slices}
    assert found == {key: Counts(*counts) for key, counts in expected.items()}
    counted = [pair for pair in PAIRS if is_counted(pair)]
    assert classes.by_class["counted"] == len(counted)
    assert tally.repeats == len(counted) - tally.whole.pairs > 0
    assert (tally.first_at, tally.last_at) == (
        min(pair.mirrored_at for pair in counted),
        max(pair.mirrored_at for pair in counted),
    )


def test_ranks_are_the_order_of_appearance(store: Store) -> None:
    scope = find_scope(store, "random", "q4", None, None)
    tally = read_tally(store, scope, read_classes(store, scope))
    first: dict[str, object] = {}
    for pair in sorted(filter(is_counted, PAIRS), key=lambda pair: pair.mirrored_at):
        if pair.route:
            first.setdefault(pair.route, pair.mirrored_at)
    assert [one.value for one in tally.slices if one.dimension == "route"] == list(first)


def test_counts_that_do_not_fit_each_other_are_no_verdict(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a replay takes pairs out of the rates between two queries."""
    scope = find_scope(store, "random", None, None, None)
    monkeypatch.setattr(read_counts, "_repeats", lambda *_: [((0, ""), Counts(0, len(PAIRS), 0))])
    with pytest.raises(RetryError, match="pairs were replaced while they were counted"):
        read_tally(store, scope, read_classes(store, scope))


def test_a_range_is_half_open(store: Store) -> None:
    since, until = DAY + timedelta(hours=3, minutes=20), DAY + timedelta(hours=9)
    within = [pair for pair in PAIRS if since <= pair.mirrored_at < until]
    found = read_verdict(store, "random", None, Terms(0.02, since=since, until=until))
    only, reference, neither = brute_force(within)["", ""]
    assert (found.candidate_only, found.reference_only, found.pairs) == (
        only,
        reference,
        only + reference + neither,
    )
    assert (found.low, found.high) == pytest.approx(interval(Counts(only, reference, neither), 0.05))
    assert found.coverage.consumed == len(within)


def test_what_no_rate_counts_is_left_out_with_its_reason(store: Store) -> None:
    found = read_verdict(store, "random", None, Terms(0.02))
    unscored = sum(pair.verdict == "unscored" for pair in PAIRS)
    mirrored = sum(pair.mode == "mirrored" and pair.verdict != "unscored" for pair in PAIRS)
    left_out = {one.reason: one.records for one in found.coverage.left_out}
    assert (left_out["unscored"], left_out["mirrored"]) == (unscored, mirrored)
    assert found.coverage.covered + sum(left_out.values()) == found.coverage.consumed == len(PAIRS)


def test_a_pair_above_the_watermark_waits(store: Store) -> None:
    pairs = [changed(QUIET, experiment="late", offset=n, request_hash=f"{n}") for n in range(10)]
    plant(store, pairs, end=7)
    found = read_verdict(store, "late", None, Terms(0.5))
    assert found.pairs == 7
    assert [(one.reason, one.records) for one in found.coverage.left_out] == [("not_settled", 3)]


def test_a_repeat_counts_once_an_hour_and_the_first_one_counts(store: Store) -> None:
    """A client that sends a faulty prompt again and again; at the hour's turn it counts once more."""
    base = changed(QUIET, experiment="again", request_hash="same", is_candidate_only_fault=True)
    minutes = [5, 6, 7, 59, 60, 61]
    pairs = [
        changed(
            base,
            offset=offset,
            mirrored_at=DAY + timedelta(minutes=at),
            # Of the first hour's repeats all but the first are faulty on the reference instead.
            is_candidate_only_fault=offset in (0, 4),
            is_reference_only_fault=offset not in (0, 4),
        )
        for offset, at in enumerate(minutes)
    ]
    found = verdict_on(store, pairs)
    assert (found.pairs, found.candidate_only, found.reference_only, found.repeats) == (2, 2, 0, 4)


def test_ship_hold_and_more(store: Store) -> None:
    quiet = [changed(QUIET, experiment="good", offset=n, request_hash=f"{n}") for n in range(1_500)]
    assert verdict_on(store, quiet, 0.005).decision == "ship"
    few = [changed(pair, experiment="few") for pair in quiet[:500]]
    found = verdict_on(store, few, 0.005)
    assert found.decision == "need_more" and found.need is not None and found.need.towards == "ship"
    # 500 pairs and as many as are needed ship, 3 % fewer do not.
    assert found.need.pairs is not None
    total = 500 + found.need.pairs
    assert (
        interval(Counts(0, 0, total), 0.05)[1] <= 0.005 < interval(Counts(0, 0, int(total * 0.97)), 0.05)[1]
    )
    bad = [changed(pair, experiment="bad", is_candidate_only_fault=pair.offset % 10 == 0) for pair in quiet]
    assert verdict_on(store, bad, 0.005).decision == "hold"


def test_a_slice_on_hold_holds_the_whole(store: Store) -> None:
    """One route of 24 pairs is faulty, of 12,000: the whole is far under the margin."""
    pairs = [
        changed(
            QUIET,
            experiment="slice",
            offset=n,
            request_hash=f"{n}",
            route="small" if n % 500 == 1 else "large",
            is_candidate_only_fault=n % 500 == 1,
        )
        for n in range(12_000)
    ]
    found = verdict_on(store, pairs, 0.01)
    assert found.high < 0.01 and found.decision == "hold"
    assert [(one.dimension, one.value) for one in found.slices if one.is_dissenting] == [("route", "small")]
    assert "route small is on hold" in found.reasons[0]


def test_coverage_counts_skipped_and_failed_and_can_forbid_to_ship(store: Store) -> None:
    pairs = [changed(QUIET, experiment="thin", offset=n, request_hash=f"{n}") for n in range(1_000)]
    others = [other(2_000 + n, "skipped", "sampled_out") for n in range(900)]
    others += [other(3_000 + n, "failed", "endpoint_away") for n in range(100)]
    # This one failed first and was compared when it came again.
    others.append(other(7, "failed", "endpoint_away"))
    for table, rows in rows_of(Batch("thin", (), tuple(others), ())).items():
        store.insert(table, rows.columns, rows.rows)
    found = verdict_on(store, pairs, 0.05)
    assert found.decision == "ship"
    assert found.coverage.share == 0.5
    assert {one.reason: one.records for one in found.coverage.left_out} == {
        "sampled_out": 900,
        "endpoint_away": 100,
    }
    refused = read_verdict(store, "thin", None, Terms(0.05, min_coverage=0.6))
    assert refused.decision == "need_more" and refused.need is None
    assert refused.reasons[-1] == (
        "the comparison covers 50 % of the traffic, less than the 60 % asked for: never ship"
    )


def test_what_served_is_named_and_a_change_is_refused(store: Store) -> None:
    pairs = [
        changed(
            QUIET, experiment="swap", offset=n, request_hash=f"{n}", mirrored_at=DAY + timedelta(minutes=n)
        )
        for n in range(600)
    ]
    columns = ("experiment", "settings_hash", "role", "endpoint_name", "seen_at", "served_hash", "model",
               "quantization", "version")  # fmt: skip
    swapped = DAY + timedelta(minutes=300)
    store.insert(
        "served",
        columns,
        [
            ("swap", "s1", "candidate", "q4", DAY - timedelta(days=1), "a", "m", "Q4_0", 1),
            ("swap", "s2", "candidate", "q4", swapped, "b", "m", "MXFP4", 1),
            ("swap", "s1", "reference", "full", DAY - timedelta(days=1), "c", "m", "F16", 1),
            ("swap", "s1", "candidate", "another", swapped, "d", "m", "Q2_K", 1),
        ],
    )
    found = verdict_on(store, pairs, 0.3)
    assert found.decision == "mixed" and found.exit_code == 5
    assert found.changed_at == (swapped,)
    assert f"Give --since {swapped:%FT%T}Z" in found.reasons[0]
    assert [(one.endpoint_name, one.quantization) for one in found.served] == [
        ("q4", "Q4_0"),
        ("q4", "MXFP4"),
        ("full", "F16"),
    ]
    after = read_verdict(store, "swap", None, Terms(0.3, since=swapped))
    assert after.decision == "ship" and after.pairs == 300
    assert [one.quantization for one in after.served] == ["MXFP4", "F16"]
    allowed = read_verdict(store, "swap", None, Terms(0.3, may_mix=True))
    assert allowed.decision == "ship" and "on a mixture" in allowed.warnings[0]


def test_worst_pairs_supports_and_validity(store: Store) -> None:
    pairs = [
        changed(
            QUIET,
            experiment="worst",
            offset=n,
            request_hash=f"{n % 30}",
            mirrored_at=DAY + timedelta(hours=n // 30),
            is_candidate_only_fault=n % 2 == 0,
            severity=n / 64,
            candidate_only_families=["json"] if n % 2 == 0 else [],
            kl_forced_mean_nats=n / 64,
            reference_is_schema_valid=1.0,
            candidate_is_schema_valid=float(n % 2),
        )
        for n in range(60)
    ]
    found = verdict_on(store, pairs)
    # The greatest severity first, a repeated request once: 58 and 28 are the same request.
    assert [one.offset for one in found.worst] == [58, 56, 54, 52, 50, 48, 46, 44, 42, 40]
    assert found.worst[0].families == ("json",) and found.worst[0].candidate_text is None
    (support,) = found.supports
    assert (support.metric, support.pairs, support.floor) == ("kl_forced_mean_nats", 60, None)
    assert support.mean == pytest.approx(sum(range(60)) / 60 / 64)
    (validity,) = found.validity
    assert (validity.pairs, validity.candidate_only_invalid, validity.reference_only_invalid) == (60, 30, 0)
    assert validity.noise_pairs == 0


def test_more_values_than_are_looked_at_are_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_counts, "MAX_VALUES", 2)
    pairs = [
        changed(
            QUIET,
            experiment="wide",
            offset=n,
            request_hash=f"{n}",
            tenant=f"t{n % 3}",
            mirrored_at=DAY + timedelta(seconds=n),
        )
        for n in range(30)
    ]
    found = verdict_on(store, pairs)
    assert sorted(one.value for one in found.slices if one.dimension == "tenant") == ["t0", "t1"]
    assert any("more values of tenant" in warning for warning in found.warnings)


def test_nothing_counted_is_no_data_and_names_are_checked(store: Store) -> None:
    assert (
        read_verdict(store, "random", None, Terms(0.01, since=DAY + timedelta(days=5))).decision == "no_data"
    )
    with pytest.raises(SettingsError, match="no pairs of experiment 'none'; this store has "):
        read_verdict(store, "none", None, Terms(0.01))
    with pytest.raises(SettingsError, match="experiment 'random' has no candidate 'q8'; it has q4"):
        read_verdict(store, "random", "q8", Terms(0.01))
    plant(
        store,
        [
            changed(QUIET, experiment="two"),
            changed(QUIET, experiment="two", candidate="q8", topic_id="topic-2"),
        ],
    )
    with pytest.raises(SettingsError, match="has candidates q4, q8: name one"):
        read_verdict(store, "two", None, Terms(0.01))


def test_times_are_utc(store: Store) -> None:
    found = read_verdict(store, "random", None, Terms(0.01))
    assert found.first_at is not None and found.first_at.tzinfo is UTC or str(found.first_at.tzinfo) == "UTC"  # type: ignore[union-attr]
    dimensions: set[Dimension] = {one.dimension for one in found.slices}
    assert dimensions == {"route", "tenant", "language", "prompt_length", "kind"}
