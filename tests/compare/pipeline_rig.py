"""A pipeline with fakes at its edges, for faults that real parts cannot be made to show."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from compare.already_stored import AlreadyStored
from compare.counters import Counters
from compare.intake import Intake
from compare.ledger import Ledger
from compare.outcomes import Batch
from compare.pipeline import Pipeline
from compare.read_back import StoredKey
from compare.result import Comparison, Scores, Verdict, VerdictKind
from compare.writer import RefusedRow, WriteResult
from ingest.errors import DeadLetterError, RetryError
from ingest.hand_over import Delivered, EndOfRecords
from ingest.observation import Observation
from ingest.outcome import Skipped
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, RawRecord, SourcePosition
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
