"""The pipeline with fakes at its edges, for faults that real parts cannot be made to show."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from compare.already_stored import AlreadyStored
from compare.counters import Counters
from compare.fence import LostPartitionError
from compare.intake import Intake
from compare.ledger import Ledger
from compare.outcomes import Batch
from compare.pipeline import Pipeline
from compare.read_back import StoredKey
from compare.result import Comparison, Scores, Verdict, VerdictKind
from compare.writer import RefusedRow, WriteResult
from ingest.errors import BudgetError, DeadLetterError, EndpointAwayError, FatalError, RetryError
from ingest.hand_over import Delivered, EndOfRecords
from ingest.observation import Observation
from ingest.outcome import Skipped
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from ingest.request import request_hash
from ingest.settings import DeliverySettings, ExperimentSettings

NOW_MS = int(datetime.now(UTC).timestamp() * 1000)
TOPIC_ID = "0190f0f2-0000-7000-8000-000000000001"
EXPERIMENT = ExperimentSettings(
    name="e", reference="ref", candidates=["cand"], models={"m": {"ref": "m", "cand": "m"}}
)
DELIVERY = DeliverySettings(
    batch_seconds=0.02, commit_interval_s=0.02, drain_seconds=5.0, max_in_flight_requests=4, batch_pairs=8
)


def envelope(request_id: str, model: str = "m") -> bytes:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps({"schema": "gnomon.mirror/1", "request_id": request_id, "request": body}).encode()


def raw(offset: int, value: bytes, partition: int = 0) -> RawRecord:
    return RawRecord(SourcePosition("t", TOPIC_ID, partition, offset), NOW_MS, None, value)


class FakeSource:
    """One partition of a list of values, with the real ledger behind."""

    def __init__(self, ledger: Ledger, values: Sequence[bytes]) -> None:
        self.ledger = ledger
        self.values = list(values)
        self.queue: asyncio.Queue[Delivered | None] = asyncio.Queue()
        self.committed: list[int] = []
        self.held: list[int] = []
        self.reread_partitions: list[int] = []
        self.taken = 0

    async def start(self) -> None:
        self.deliver_all()

    def deliver_all(self, start: int = 0) -> None:
        epoch = self.ledger.assign("t", TOPIC_ID, 0, start)
        offsets = range(start, len(self.values))
        self.ledger.deliver(0, epoch, list(offsets), len(self.values))
        for offset in offsets:
            self.queue.put_nowait(Delivered(raw(offset, self.values[offset]), epoch))

    async def get(self) -> Delivered:
        item = await self.queue.get()
        if item is None:
            self.queue.put_nowait(None)
            raise EndOfRecords
        self.taken += 1
        return item

    async def commit(self) -> bool:
        offsets = self.ledger.to_commit()
        self.committed.append(offsets[0])
        self.ledger.committed(offsets)
        return True

    def rest(self) -> None:
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(None)

    def hold(self, partition: int) -> None:
        self.held.append(partition)

    def release(self, partition: int) -> None:
        self.held.remove(partition)

    def reread(self, partitions: Iterable[int]) -> None:
        self.reread_partitions += partitions
        for partition in self.reread_partitions:
            self.ledger.revoke(partition)

    async def close(self) -> None:
        pass


class FakeReplayer:
    def __init__(self, behave: Callable[[MirroredRequest], Any] | None = None) -> None:
        self.behave = behave
        self.calls: list[str] = []
        self.is_resting = asyncio.Event()
        self.in_flight = self.most_in_flight = 0

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def rest(self) -> None:
        self.is_resting.set()

    def skip_for(self, mirrored: MirroredRequest) -> Skipped | None:
        return None

    async def replay(self, mirrored: MirroredRequest) -> tuple[ResponsePair, ...]:
        self.calls.append(mirrored.request_id)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.behave is not None:
                await self.behave(mirrored)
        finally:
            self.in_flight -= 1
        plan = ReplayPlan(Mode.GREEDY, wants_noise=False, wants_candidate_noise=False, wants_forced=False)
        return (
            ResponsePair(
                mirrored=mirrored,
                experiment="e",
                reference_name="ref",
                candidate_name="cand",
                reference_body={},
                candidate_body={},
                plan=plan,
                reference=Observation(text="a"),
                candidate=Observation(text="a"),
            ),
        )


class FakeWriter:
    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.may_write = threading.Event()
        self.may_write.set()
        self.stop = threading.Event()
        self.error: Exception | None = None
        self.refused: tuple[RefusedRow, ...] = ()

    def write(self, batch: Batch) -> WriteResult:
        while not self.may_write.wait(0.01):
            if self.stop.is_set():
                raise RetryError("the store is away")
        if self.error is not None:
            raise self.error
        self.batches.append(batch)
        return WriteResult({}, self.refused if batch.pairs else (), 0)

    @property
    def stored(self) -> list[tuple[int, str]]:
        """Offset and outcome of every stored record, in order of offset."""
        pairs = [(p.pair.mirrored.position.offset, "compared") for b in self.batches for p in b.pairs]
        return sorted(pairs + [(o.position.offset, o.reason) for b in self.batches for o in b.others])


class FakeLetters:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes | None, str]] = []
        self.is_away = threading.Event()

    def send(self, raw: RawRecord, reason: str, message: str) -> None:
        if self.is_away.is_set():
            raise RetryError("topic away")
        self.sent.append((raw.value, reason))

    def close(self) -> None:
        pass


def compare_all(pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
    return [
        Comparison(scores=Scores(), findings=(), verdict=Verdict(VerdictKind.MATCH, ("same",))) for _ in pairs
    ]


class Found:
    """What was read back, by offset."""

    def __init__(self, stored: dict[int, StoredKey]) -> None:
        self.stored = stored

    async def find(self, position: SourcePosition) -> StoredKey | None:
        return self.stored.get(position.offset)


class Rig:
    """A pipeline with its fakes."""

    def __init__(
        self,
        values: Sequence[bytes],
        *,
        behave: Callable[[MirroredRequest], Any] | None = None,
        compare: Callable[[Sequence[ResponsePair]], list[Comparison | DeadLetterError]] = compare_all,
        delivery: DeliverySettings = DELIVERY,
        stored: dict[int, StoredKey] | None = None,
    ) -> None:
        self.ledger = Ledger("g")
        self.source = FakeSource(self.ledger, values)
        self.replayer = FakeReplayer(behave)
        self.writer = FakeWriter()
        self.letters = FakeLetters()
        self.pipeline = Pipeline(
            experiment="e",
            source=self.source,
            ledger=self.ledger,
            intake=Intake(EXPERIMENT),
            replayer=self.replayer,
            compare=compare,
            writer=self.writer,
            dead_letters=self.letters,
            delivery=delivery,
            stop_writing=self.writer.stop,
            stored=None if stored is None else AlreadyStored(Found(stored), EXPERIMENT.candidates),
        )

    async def run(self, outcomes: int) -> Counters:
        async with asyncio.timeout(20):
            return await self.pipeline.run(lambda counters: counters.outcomes >= outcomes)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.005)


async def test_each_record_has_exactly_one_outcome_and_all_is_committed() -> None:
    values = [envelope("r0"), b"\xffbroken", envelope("r2", model="unknown"), envelope("r0"), envelope("r4")]
    rig = Rig(values)
    counters = await rig.run(5)
    assert rig.writer.stored == [
        (0, "compared"), (1, rig.letters.sent[0][1]), (2, "model"), (3, "duplicate"), (4, "compared"),
    ]  # fmt: skip
    assert rig.letters.sent[0][0] == b"\xffbroken"
    assert (counters.consumed, counters.compared, counters.dead_lettered) == (5, 2, 1)
    assert counters.skipped == {"model": 1, "duplicate": 1}
    assert counters.failed == {}
    assert rig.source.committed[-1] == 5
    ranges = [r for batch in rig.writer.batches for r in batch.ranges]
    assert sum(r.records for r in ranges) == 5
    assert [r.first_offset for r in ranges[1:]] == [r.end_offset for r in ranges[:-1]]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EndpointAwayError("endpoint cand: connection refused"), "endpoint_away"),
        (BudgetError("endpoint cand: 10 tokens of 10 are used up"), "budget"),
    ],
)
async def test_a_record_that_cannot_be_replayed_fails_and_is_asked_once(
    error: RetryError, reason: str
) -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        if mirrored.request_id == "r1":
            raise error

    rig = Rig([envelope("r0"), envelope("r1")], behave=behave)
    counters = await rig.run(2)
    assert rig.replayer.calls.count("r1") == 1
    assert counters.failed == {reason: 1}
    (failed,) = [o for batch in rig.writer.batches for o in batch.others]
    assert (failed.kind, failed.detail, failed.request_id) == ("failed", str(error), "r1")


async def test_a_record_that_waits_for_an_endpoint_at_the_end_is_left_for_the_next_run() -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        await rig.replayer.is_resting.wait()
        raise EndpointAwayError("endpoint cand: paused by command")

    rig = Rig([envelope("r0")], behave=behave)
    running = asyncio.create_task(rig.run(1))
    await rig.until(lambda: rig.replayer.in_flight == 1)
    rig.pipeline.stop()
    counters = await running
    assert (counters.outcomes, rig.source.committed) == (0, [])


async def test_no_more_than_max_in_flight_requests_are_replayed_at_once() -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        await asyncio.sleep(0.01)

    rig = Rig([envelope(f"r{n}") for n in range(30)], behave=behave)
    await rig.run(30)
    assert rig.replayer.most_in_flight == 4


async def test_no_more_bytes_are_taken_up_than_may_be_under_way() -> None:
    size = len(envelope("r00"))
    delivery = msgspec.structs.replace(DELIVERY, max_under_way_bytes=3 * size)
    rig = Rig([envelope(f"r{n:02d}") for n in range(20)], delivery=delivery)
    rig.writer.may_write.clear()
    running = asyncio.create_task(rig.run(20))
    await rig.until(lambda: len(rig.replayer.calls) == 3)
    await asyncio.sleep(0.1)
    # Three that wait for the store, and the next one in the hand of who waits for room.
    assert (len(rig.replayer.calls), rig.source.taken) == (3, 4)
    rig.writer.may_write.set()
    counters = await running
    assert counters.compared == counters.consumed == 20
    assert rig.source.committed[-1] == 20


async def test_comparison_runs_off_the_event_loop_and_its_dead_letter_is_kept() -> None:
    threads = set()

    def compare(pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        threads.add(threading.current_thread().name)
        results = compare_all(pairs)
        for index, pair in enumerate(pairs):
            if pair.mirrored.request_id == "r1":
                results[index] = DeadLetterError("uncomparable", "r1 breaks a metric")
        return results

    rig = Rig([envelope("r0"), envelope("r1")], compare=compare)
    counters = await rig.run(2)
    assert all(name.startswith("gnomon-compare") for name in threads)
    assert rig.writer.stored == [(0, "compared"), (1, "uncomparable")]
    assert rig.letters.sent == [(envelope("r1"), "uncomparable")]
    assert counters.dead_lettered == 1


async def test_nothing_is_committed_past_a_dead_letter_that_is_not_kept() -> None:
    rig = Rig([envelope("r0"), b"broken", envelope("r2")])
    rig.letters.is_away.set()
    running = asyncio.create_task(rig.run(3))
    await rig.until(lambda: len(rig.writer.stored) == 2 and rig.source.committed == [1])
    rig.letters.is_away.clear()
    counters = await running
    assert [offset for offset, _ in rig.writer.stored] == [0, 1, 2]
    assert rig.source.committed == [1, 3]
    assert counters.consumed == 3


async def test_a_store_that_is_away_stops_intake_within_bounds_and_loses_nothing() -> None:
    rig = Rig([envelope(f"r{n}") for n in range(200)])
    rig.writer.may_write.clear()
    running = asyncio.create_task(rig.run(200))
    await rig.until(lambda: rig.source.taken >= 44)
    await asyncio.sleep(0.2)
    # One batch being written, one queue of a batch, one record in the hand of each of 36 workers.
    assert rig.source.taken <= 8 + 8 + 36
    assert rig.source.committed == []
    rig.writer.may_write.set()
    await running
    assert rig.writer.stored == [(offset, "compared") for offset in range(200)]
    assert rig.source.committed[-1] == 200


async def test_stopping_drains_what_is_under_way_and_leaves_the_rest() -> None:
    release = asyncio.Event()

    async def behave(mirrored: MirroredRequest) -> None:
        await release.wait()

    rig = Rig([envelope(f"r{n}") for n in range(100)], behave=behave)
    running = asyncio.create_task(rig.run(100))
    await rig.until(lambda: rig.replayer.in_flight == 4)
    rig.pipeline.stop()
    await asyncio.sleep(0.05)
    release.set()
    counters = await running
    assert rig.writer.stored == [(offset, "compared") for offset in range(4)]
    assert rig.source.committed == [4]
    assert counters.consumed == counters.outcomes == 4


async def test_a_request_that_hangs_through_the_drain_is_given_up_and_not_committed() -> None:
    async def behave(mirrored: MirroredRequest) -> None:
        if mirrored.request_id == "r1":
            await asyncio.Event().wait()

    delivery = DeliverySettings(
        batch_seconds=0.02, commit_interval_s=0.02, drain_seconds=0.2, max_in_flight_requests=4
    )
    rig = Rig([envelope(f"r{n}") for n in range(3)], behave=behave, delivery=delivery)
    running = asyncio.create_task(rig.run(3))
    await rig.until(lambda: len(rig.writer.stored) == 2)
    rig.pipeline.stop()
    await running
    assert rig.writer.stored == [(0, "compared"), (2, "compared")]
    assert rig.source.committed == [1]


async def test_stopping_while_the_store_is_away_ends_without_a_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compare.pipeline._LEAST_FLUSH_S", 0.1)
    delivery = DeliverySettings(batch_seconds=0.02, commit_interval_s=0.02, drain_seconds=0.1)
    rig = Rig([envelope("r0")], delivery=delivery)
    rig.writer.may_write.clear()
    running = asyncio.create_task(rig.run(1))
    await rig.until(lambda: rig.source.taken == 1)
    rig.pipeline.stop()
    counters = await running
    assert rig.source.committed == []
    assert counters.outcomes == 0


async def test_what_is_under_way_when_a_partition_is_lost_is_cancelled_and_done_again() -> None:
    asked: list[asyncio.Event] = []

    async def behave(mirrored: MirroredRequest) -> None:
        if mirrored.request_id == "r1":
            asked.append(asyncio.Event())
            await asked[-1].wait()

    rig = Rig([envelope("r0"), envelope("r1")], behave=behave)
    running = asyncio.create_task(rig.run(2))
    await rig.until(lambda: rig.source.committed == [1] and len(asked) == 1)
    rig.ledger.revoke(0)
    # No model is kept busy for the former owner.
    await rig.until(lambda: rig.replayer.in_flight == 0)
    rig.source.deliver_all(start=1)
    await rig.until(lambda: len(asked) == 2)
    asked[1].set()
    counters = await running
    # Asked twice, stored once; and the second delivery was not taken for a duplicate.
    assert rig.writer.stored == [(0, "compared"), (1, "compared")]
    assert rig.source.committed == [1, 2]
    assert counters.consumed == 2


async def test_what_is_stored_already_is_settled_without_a_call_or_a_row() -> None:
    values = [envelope("r0"), b"broken", envelope("r2"), envelope("r3")]
    hashes = {n: request_hash(json.loads(envelope(f"r{n}"))["request"]) for n in (0, 2, 3)}
    stored = {
        0: StoredKey(frozenset({("cand", hashes[0])})),
        1: StoredKey(frozenset(), True, ""),
        # The one has another hash, the other no row of our candidate.
        2: StoredKey(frozenset({("cand", "0" * 32)})),
        3: StoredKey(frozenset({("another", hashes[3])}), False),
    }
    rig = Rig(values, stored=stored)
    counters = await rig.run(4)
    assert sorted(rig.replayer.calls) == ["r2", "r3"]
    assert rig.letters.sent == []
    assert rig.writer.stored == [(2, "compared"), (3, "compared")]
    assert (counters.already_stored, counters.compared, counters.consumed) == (2, 2, 4)
    assert rig.source.committed[-1] == 4
    assert sum(taken.records for batch in rig.writer.batches for taken in batch.ranges) == 4


async def test_only_the_candidates_that_are_not_stored_are_written() -> None:
    experiment = msgspec.structs.replace(EXPERIMENT, candidates=["cand", "other"])
    digest = request_hash(json.loads(envelope("r0"))["request"])
    rig = Rig([envelope("r0")])
    rig.pipeline._stored = AlreadyStored(
        Found({0: StoredKey(frozenset({("cand", digest)}))}), experiment.candidates
    )
    replay = rig.replayer.replay

    async def both(mirrored: MirroredRequest) -> tuple[ResponsePair, ...]:
        (pair,) = await replay(mirrored)
        return (pair, msgspec.structs.replace(pair, candidate_name="other"))

    rig.replayer.replay = both  # type: ignore[method-assign]
    await rig.run(1)
    assert [p.pair.candidate_name for batch in rig.writer.batches for p in batch.pairs] == ["other"]


async def test_a_batch_whose_partition_was_lost_settles_nothing_and_is_read_again() -> None:
    rig = Rig([envelope("r0"), envelope("r1")])
    rig.writer.error = LostPartitionError("partition 7 was taken away while its rows were written")
    running = asyncio.create_task(rig.run(2))
    await rig.until(lambda: rig.source.reread_partitions != [])
    assert set(rig.source.reread_partitions) == {0}
    assert rig.source.committed == []
    rig.writer.error = None
    rig.source.deliver_all()
    counters = await running
    assert rig.writer.stored == [(0, "compared"), (1, "compared")]
    assert counters.consumed == counters.outcomes == 2


async def test_every_batch_is_written_for_the_epochs_of_its_partitions() -> None:
    rig = Rig([envelope("r0")])
    epochs: list[dict[int, int]] = []

    @contextlib.contextmanager
    def owned(given: Mapping[int, int]) -> Iterator[None]:
        epochs.append(dict(given))
        yield

    rig.pipeline._owned = owned
    await rig.run(1)
    # Once for the pair and once for the range; nothing is written without an owner.
    assert epochs == [{0: 1}, {0: 1}]


async def test_a_held_partition_that_is_released_starts_with_a_clean_slate() -> None:
    values = [b"broken" if n < 51 else envelope(f"r{n}") for n in range(60)]
    rig = Rig(values)
    await rig.run(60)
    assert rig.source.held == [0]
    rig.pipeline.release(0)
    assert rig.source.held == []
    assert not rig.pipeline._letters._rate.is_over(0, is_dead=True)


async def test_a_partition_with_too_many_dead_letters_is_held() -> None:
    values = [b"broken" if n < 51 else envelope(f"r{n}") for n in range(60)]
    rig = Rig(values)
    counters = await rig.run(60)
    assert rig.source.held == [0]
    assert counters.dead_lettered == 51


async def test_fifty_of_a_thousand_are_still_endured() -> None:
    rig = Rig([b"broken" if n < 50 else envelope(f"r{n}") for n in range(60)])
    await rig.run(60)
    assert rig.source.held == []


async def test_a_store_that_refuses_for_good_ends_the_run_without_a_commit() -> None:
    rig = Rig([envelope("r0")])
    rig.writer.error = FatalError("store http://x: wrong password")
    with pytest.raises(FatalError, match="wrong password"):
        await rig.run(1)
    assert rig.source.committed == []


async def test_a_defect_in_the_comparison_ends_the_run() -> None:
    def compare(pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        raise ZeroDivisionError("defect")

    rig = Rig([envelope("r0")], compare=compare)
    with pytest.raises(ZeroDivisionError):
        await rig.run(1)
    assert rig.writer.batches == []


async def test_a_pair_that_the_store_refuses_counts_as_a_dead_letter() -> None:
    rig = Rig(
        [envelope("r0"), envelope("r1")], delivery=DeliverySettings(batch_pairs=2, commit_interval_s=0.02)
    )
    rig.writer.refused = (
        RefusedRow("pairs", TOPIC_ID, 0, 1, "cannot be stored"),
        RefusedRow("tokens", TOPIC_ID, 0, 0, "cannot be stored"),
    )
    counters = await rig.run(2)
    assert (counters.compared, counters.pairs, counters.dead_lettered) == (1, 1, 1)


async def test_stopping_while_kafka_is_not_there_yet_ends_at_once() -> None:
    rig = Rig([])

    async def never() -> None:
        await asyncio.Event().wait()

    rig.source.start = never  # type: ignore[method-assign]
    running = asyncio.create_task(rig.run(1))
    await asyncio.sleep(0.02)
    rig.pipeline.stop()
    counters = await running
    assert counters.delivered == 0
