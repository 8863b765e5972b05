"""Where each request comes from, with Kafka and the store failing on the way."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from compare.batcher import Completed
from compare.intake import Intake
from compare.reprocess.answers import NOT_KEPT, OTHER, REUSED, UNREADABLE, KnownAnswers
from compare.reprocess.done import Done
from compare.reprocess.intake import StoredIntake
from compare.reprocess.ledger import ReplayLedger
from compare.reprocess.selection import Place, Selected
from compare.reprocess.source import ReplaySource
from compare.reprocess.stored import StoredRequest
from ingest.errors import FatalError, RetryError
from ingest.hand_over import EndOfRecords
from ingest.observation import Observation
from ingest.packed_answer import pack
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from ingest.reference_answers import KnownAnswer
from ingest.settings import DeliverySettings, ExperimentSettings, KafkaSettings
from tests.compare.batches import mirrored

PLACE = Place("t", "topic-1", 0)
LONG_AGO = datetime(2026, 1, 2, tzinfo=UTC)
EXPERIMENT = ExperimentSettings(name="e", reference="r", candidates=["c"], models={"*": {"r": "m", "c": "m"}})


def at(offset: int) -> SourcePosition:
    return SourcePosition(PLACE.topic, PLACE.topic_id, PLACE.partition, offset)


def stored(offset: int, *, is_redacted: bool = False, has_request: bool = True) -> StoredRequest:
    request = msgspec.structs.replace(mirrored(offset), position=at(offset)) if has_request else None
    return StoredRequest(at(offset), f"r{offset}", LONG_AGO, False, request, is_redacted)


class Rig:
    """A source of offsets 0 to n, with a store and a Kafka that do as they are told."""

    def __init__(
        self, requests: dict[int, StoredRequest], count: int, *, allow_redacted: bool = False
    ) -> None:
        self.requests = requests
        self.kafka_has: dict[int, bytes] = {}
        self.kafka_breaks_at: int | None = None
        self.store_fails = 0
        self.ledger = ReplayLedger("replay/e", [PLACE])
        self.source = ReplaySource(
            Selected({PLACE: array("Q", range(count))}),
            self.ledger,
            self.read,
            DeliverySettings(max_queued_records=4),
            KafkaSettings(topic="t"),
            allow_redacted=allow_redacted,
            rereads=self.reread,
        )

    def read(self, place: Place, offsets: Sequence[int]) -> dict[int, StoredRequest]:
        if self.store_fails:
            self.store_fails -= 1
            raise RetryError("the store is away")
        return {offset: self.requests[offset] for offset in offsets if offset in self.requests}

    def reread(
        self, positions: Sequence[SourcePosition]
    ) -> Iterator[tuple[SourcePosition, RawRecord | None]]:
        for position in positions:
            if position.offset == self.kafka_breaks_at:
                raise FatalError("no broker answers")
            value = self.kafka_has.get(position.offset)
            yield position, None if value is None else RawRecord(position, 0, None, value)

    async def take_all(self, count: int) -> list[RawRecord]:
        await self.source.start()
        taken = [(await self.source.get()).record for _ in range(count)]
        await self.source.close()
        return taken


async def test_kafka_is_asked_first_and_what_is_in_neither_is_counted() -> None:
    rig = Rig({0: stored(0), 1: stored(1), 2: stored(2, has_request=False)}, 5)
    rig.kafka_has = {0: b"{}", 3: b"{}"}
    taken = await rig.take_all(2)
    assert [record.position.offset for record in taken] == [0, 1]
    # 2 left the store and Kafka; 3 and 4 were purged since they were found.
    assert rig.source.counts == {"kafka": 1, "store": 1, "gone": 3}
    assert rig.source.is_exhausted and rig.source.handed_over == 2
    # As Kafka has it, it is decoded; as the store has it, it is there.
    assert rig.source.request(at(0)).mirrored is None
    assert rig.source.request(at(1)).mirrored is not None
    rig.source.settled(Completed(0, 0, rig.ledger.epoch(PLACE)))
    with pytest.raises(KeyError):
        rig.source.request(at(0))


async def test_when_kafka_breaks_off_the_rest_comes_from_the_store() -> None:
    rig = Rig({offset: stored(offset) for offset in range(6)}, 6)
    rig.kafka_has = dict.fromkeys(range(6), b"{}")
    rig.kafka_breaks_at = 2
    rig.store_fails = 1
    assert [record.position.offset for record in await rig.take_all(6)] == [*range(6)]
    assert rig.source.counts == {"kafka": 2, "store": 4}


@pytest.mark.parametrize(("allowed", "counts"), [(False, {"store": 1, "redacted": 2}), (True, {"store": 3})])
async def test_redacted_requests_are_sent_only_if_asked_for(allowed: bool, counts: dict[str, int]) -> None:
    requests = {offset: stored(offset, is_redacted=offset > 0) for offset in range(3)}
    rig = Rig(requests, 3, allow_redacted=allowed)
    await rig.take_all(counts["store"])
    assert rig.source.counts == counts


async def test_it_ends_while_nobody_takes_and_while_the_store_is_away() -> None:
    full = Rig({offset: stored(offset) for offset in range(50)}, 50)
    await full.source.start()
    full.source.rest()
    with pytest.raises(EndOfRecords):
        await full.source.get()
    await full.source.close()
    assert not full.source.is_exhausted
    away = Rig({0: stored(0)}, 1)
    away.store_fails = 1_000
    await away.source.start()
    away.source.rest()
    await away.source.close()
    assert away.source.handed_over == 0
    assert "gnomon-replay-source" not in {thread.name for thread in threading.enumerate()}


def test_the_stored_time_of_mirroring_is_kept_however_old() -> None:
    request = stored(3)
    intake = StoredIntake(EXPERIMENT, lambda position: request)
    now = LONG_AGO + timedelta(days=200)
    got = intake.take(RawRecord(at(3), round(LONG_AGO.timestamp() * 1000), None, b"x"), now)
    assert isinstance(got, MirroredRequest)
    assert (got.mirrored_at, got.ingested_at, got.is_clock_suspect) == (LONG_AGO, now, False)
    # The service's own intake would have clamped it.
    value = b'{"schema": "gnomon.mirror/1", "request_id": "x", "request": {"messages": []}}'
    clamped = Intake(EXPERIMENT).take(RawRecord(at(3), round(LONG_AGO.timestamp() * 1000), None, value), now)
    assert isinstance(clamped, MirroredRequest) and clamped.mirrored_at > LONG_AGO


def test_known_answers_say_why_one_must_be_asked_for() -> None:
    answer = KnownAnswer(Observation(text="hi"), 5)
    packed = {0: {"h": pack(answer), "damaged": b"\x90"}, 1: {}}
    known = KnownAnswers(lambda position: packed[position.offset])
    assert known.find(at(0), "reference", "h") == answer
    assert known.find(at(0), "reference", "other") is None
    assert known.find(at(0), "reference", "damaged") is None
    assert known.find(at(1), "reference", "h") is None
    # Second answers are not counted: the share is told of requests.
    assert known.find(at(0), "reference_again", "h") == answer
    assert known.counts == {REUSED: 1, OTHER: 1, UNREADABLE: 1, NOT_KEPT: 1}


def test_what_is_whole_but_not_counted_is_taken_up_again() -> None:
    selected = Selected({PLACE: array("Q", range(6))})
    done = Done(whole={PLACE: {0, 1, 2}}, partial={PLACE: {3: frozenset({"c"})}}, counted={PLACE: {0, 1, 4}})
    # 2 was stored before its range was; 3 lacks a candidate; 4 failed; 5 was never reached.
    assert list(done.remaining(selected).offsets[PLACE]) == [2, 3, 4, 5]
    assert len(Done({PLACE: {*range(6)}}, {}, {PLACE: {*range(6)}}).remaining(selected)) == 0


def test_each_request_is_a_range_of_its_own() -> None:
    other = Place("t", "topic-2", 0)
    ledger = ReplayLedger("replay/e", [PLACE, other])
    ledger.store([(0, ledger.epoch(PLACE), 7), (0, ledger.epoch(other), 7)])
    ranges = ledger.take_ranges()
    assert [(r.topic_id, r.first_offset, r.end_offset, r.records, r.group) for r in ranges] == [
        ("topic-1", 7, 8, 1, "replay/e"),
        ("topic-2", 7, 8, 1, "replay/e"),
    ]
    assert ledger.take_ranges() == ranges
    ledger.ranges_stored(ranges[:1])
    assert ledger.take_ranges() == ranges[1:]
    assert ledger.to_commit() == {}
