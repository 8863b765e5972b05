"""Verdicts that are kept: what a row holds, and when one is made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from compare.ship.kept import keep, read_kept
from compare.ship.model import ShipVerdict, Terms
from compare.ship.read import read_verdict
from compare.ship.schedule import VerdictSchedule
from compare.store import Store
from ingest.errors import SettingsError
from ingest.settings_verdict import VerdictSettings
from tests.compare.ship.world import DAY, Planted, changed, plant

PAIR = Planted(0, "kept", "", DAY, is_candidate_only_fault=True, candidate_only_families=["json"])
HOURLY = VerdictSettings()


@pytest.fixture(scope="module")
def planted(migrated_store: Store) -> Store:
    pairs = [
        changed(PAIR, offset=n, request_hash=f"{n}", candidate=candidate, topic_id=f"kept-{candidate}")
        for candidate in ("q4", "q8")
        for n in range(40)
    ]
    plant(migrated_store, pairs)
    return migrated_store


@pytest.fixture
def store(planted: Store) -> Iterator[Store]:
    planted.command("TRUNCATE TABLE verdicts")
    yield planted


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def made(store: Store, clock: Clock, settings: VerdictSettings = HOURLY, *candidates: str) -> list[str]:
    """The candidates that one look makes a verdict of."""
    names = candidates or ("q4", "q8")
    return [one.candidate for one in VerdictSchedule(store, settings, "kept", names, now=clock).run_once()]


def test_a_row_is_the_verdict_without_its_worst_pairs(store: Store) -> None:
    found = read_verdict(store, "kept", "q4", Terms(0.02, 0.9))
    assert (found.decision, found.candidate_only, len(found.worst)) == ("hold", 40, 10)
    keep(store, found)
    (row,) = store.query("SELECT * FROM verdicts_v1").dicts()
    assert "req-" not in row["verdict"]
    made_at = found.made_at.replace(microsecond=found.made_at.microsecond // 1000 * 1000)
    kept = msgspec.json.decode(row["verdict"], type=ShipVerdict)
    assert kept == msgspec.structs.replace(found, worst=(), made_at=made_at)
    (head,) = read_kept(store, "kept", None, limit=5)
    # The other half of the records was compared with q8.
    assert msgspec.structs.astuple(head) == (
        "kept", "q4", 0.02, 0.9, made_at, "hold", 40, 40, 0, 1.0, found.low, found.high, 0.5,
    )  # fmt: skip
    assert read_kept(store, "kept", "q8", limit=5) == []


@pytest.mark.parametrize(
    "more",
    [{"since": DAY}, {"until": DAY}, {"min_coverage": 0.5}, {"may_mix": True}],
    ids=lambda one: min(one),
)
def test_one_of_a_range_or_by_other_rules_is_refused(store: Store, more: dict[str, object]) -> None:
    asked = msgspec.structs.replace(Terms(0.02), **more)
    found = msgspec.structs.replace(read_verdict(store, "kept", "q4", Terms(0.02)), terms=asked)
    with pytest.raises(SettingsError, match="a kept verdict is of all pairs"):
        keep(store, found)
    assert read_kept(store, "kept", None, limit=5) == []


def test_one_is_due_an_interval_after_the_last_for_each_candidate(store: Store) -> None:
    clock = Clock()
    assert made(store, clock, HOURLY, "q4") == ["q4"]
    assert made(store, clock) == ["q8"]
    clock.now += timedelta(seconds=3590)
    assert made(store, clock) == []
    clock.now += timedelta(seconds=60)
    assert made(store, clock) == ["q4", "q8"]
    assert len(read_kept(store, "kept", None, limit=9)) == 4


def test_one_by_hand_at_the_same_terms_is_the_hours(store: Store) -> None:
    keep(store, read_verdict(store, "kept", "q4", Terms(0.005)))
    keep(store, read_verdict(store, "kept", "q8", Terms(0.01)))
    assert made(store, Clock()) == ["q8"]


def test_nothing_is_made_without_pairs_or_where_it_is_switched_off(store: Store) -> None:
    assert made(store, Clock(), HOURLY, "q2") == []
    assert made(store, Clock(), VerdictSettings(every_s=0)) == []
    assert store.query("SELECT * FROM verdicts_v1").rows == []


def test_one_process_makes_it(store: Store) -> None:
    with store.another() as theirs:
        lease = VerdictSchedule(theirs, HOURLY, "kept", ["q4"])._lease
        assert lease.take()
        assert made(store, Clock()) == []
        lease.give_back()
    assert made(store, Clock()) == ["q4", "q8"]


def test_a_stopped_schedule_gives_up_what_it_makes_and_makes_it_later(store: Store) -> None:
    schedule = VerdictSchedule(store, HOURLY, "kept", ["q4"])
    schedule.start()
    schedule.stop()
    # Whatever the thread came to: a whole verdict or none, and the lease is free again.
    assert len(read_kept(store, "kept", None, limit=9)) + len(schedule.run_once()) == 1
