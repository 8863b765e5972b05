"""Request ids that the store remembers, on the real engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from compare.intake import Intake
from compare.outcomes import OtherOutcome
from compare.recent_ids import RecentIds, SeenId, on_loop
from compare.store import Store
from compare.writer import Writer
from ingest.records import MirroredRequest, SourcePosition
from tests.compare.batches import batch, compared, mirrored, other, position
from tests.compare.pipeline_rig import EXPERIMENT, envelope, raw

NOW = datetime.now(UTC)


def seen(offset: int, topic_id: str, ago: timedelta, request_id: str | None = None) -> MirroredRequest:
    # Not the time of the import: a suite may take longer than the slack that is looked back.
    at = datetime.now(UTC) - ago
    request = mirrored(offset, position=position(offset, topic_id=topic_id), ingested_at=at)
    return request if request_id is None else msgspec.structs.replace(request, request_id=request_id)


def ended(offset: int, kind: str, topic_id: str, request_id: str) -> OtherOutcome:
    made = other(offset, kind, topic_id=topic_id)
    return msgspec.structs.replace(made, ingested_at=NOW, request_id=request_id)


def learn_all(store: Store, topic_id: str, limit: int = 100) -> list[tuple[str, int]]:
    learnt: list[SeenId] = []
    RecentIds(store, "e", learnt.extend, limit=limit).refresh(topic_id)
    return [(request_id, where.offset) for request_id, where in learnt]


def test_the_last_ids_come_oldest_first_whatever_their_day(migrated_store: Store) -> None:
    pairs = [
        compared(n, candidate_name=candidate, request=seen(n, "ri-1", ago))
        for n, ago in enumerate([timedelta(days=3), timedelta(hours=5), timedelta(minutes=2), timedelta(0)])
        for candidate in ("q4", "q8")
    ]
    Writer(migrated_store, threading.Event()).write(batch(*pairs))
    assert learn_all(migrated_store, "ri-1") == [("r-0", 0), ("r-1", 1), ("r-2", 2), ("r-3", 3)]
    assert learn_all(migrated_store, "ri-1", limit=2) == [("r-2", 2), ("r-3", 3)]
    assert learn_all(migrated_store, "ri-none") == []


def test_what_was_not_compared_was_not_seen(migrated_store: Store) -> None:
    others = (
        ended(0, "skipped", "ri-2", "a"),
        ended(1, "failed", "ri-2", "b"),
        ended(2, "dead_letter", "ri-2", ""),
        ended(3, "dead_letter", "ri-2", "c"),
    )
    Writer(migrated_store, threading.Event()).write(batch(others=others))
    assert learn_all(migrated_store, "ri-2") == []


def test_a_later_call_learns_what_others_stored_meanwhile(migrated_store: Store) -> None:
    learnt: list[SeenId] = []
    ids = RecentIds(migrated_store, "e", learnt.extend, limit=100)
    writer = Writer(migrated_store, threading.Event())
    writer.write(batch(compared(0, request=seen(0, "ri-3", timedelta(hours=2)))))
    ids.refresh("ri-3")
    assert learnt == [("r-0", position(0, topic_id="ri-3"))]
    learnt.clear()
    writer.write(batch(compared(1, request=seen(1, "ri-3", timedelta(minutes=1)))))
    ids.refresh("ri-3")
    assert learnt == [("r-1", position(1, topic_id="ri-3"))]


async def test_they_are_remembered_on_the_loop_before_what_is_scheduled_later() -> None:
    happened: list[str] = []

    def remember(request_id: str, where: SourcePosition) -> None:
        happened.append(request_id)

    learn = on_loop(asyncio.get_running_loop(), remember)
    ids: Sequence[SeenId] = [(f"r-{n}", position(n)) for n in range(5_000)]
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def from_a_thread() -> None:
        learn(ids)
        loop.call_soon_threadsafe(done.set)

    await asyncio.to_thread(from_a_thread)
    await done.wait()
    assert happened == [f"r-{n}" for n in range(5_000)]


def test_the_intake_knows_them_as_duplicates_but_not_at_their_own_position() -> None:
    intake = Intake(EXPERIMENT)
    intake.remember("r0", raw(0, b"").position)
    intake.remember("r0", raw(9, b"").position)
    again = intake.take(raw(0, envelope("r0")), NOW)
    assert isinstance(again, MirroredRequest)
    other_place = intake.take(raw(5, envelope("r0")), NOW)
    assert isinstance(other_place, OtherOutcome)
    assert (other_place.reason, other_place.detail) == ("duplicate", "first seen at partition 0 offset 0")


def test_what_was_not_compared_after_all_may_come_again_elsewhere() -> None:
    intake = Intake(EXPERIMENT)
    first, later = raw(0, envelope("r0")), raw(5, envelope("r0"))
    assert isinstance(intake.take(first, NOW), MirroredRequest)
    intake.forget("r0", later.position)
    assert isinstance(intake.take(later, NOW), OtherOutcome)
    intake.forget("r0", first.position)
    assert isinstance(intake.take(later, NOW), MirroredRequest)
