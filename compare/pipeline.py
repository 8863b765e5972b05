"""The pipeline: source, intake, replay, comparison, batch, store, ledger, commit.

    KafkaSource ──► Intake ──► Replayer ──► CompareStage ──► Batcher ──► Writer ──► Ledger ──► commit
     a thread       (decode,    (asyncio,    (a process,                 (a thread)              │
        ▲            skips)      endpoints)    batches)                                          │
        └────────────────────────────────────────────────────────────────────────────────────────┘

`Pipeline._carry` takes one record from its bytes to its outcome; `Pipeline._settle` takes outcomes
to the committed offset. Every queue between is bounded, so a slow stage makes the ones before it
wait, and at last the source pauses its partitions.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import Any

from compare.already_stored import AlreadyStored, Settled
from compare.batcher import Batcher, Completed, completed_of
from compare.compare_stage import Compare, CompareStage
from compare.counters import Counters
from compare.dead_letter_keeper import DeadLetterKeeper
from compare.fence import LostPartitionError
from compare.intake import Intake, dead, ended
from compare.operations.observers import Observer
from compare.outcomes import Batch, ComparedPair, OtherOutcome
from compare.result import Comparison
from compare.room import Room
from compare.stages import Replays, SendsDeadLetters, Settles, Source, Writes
from compare.trail import Trail
from compare.under_way import UnderWay
from compare.writer import WriteResult
from ingest.errors import BudgetError, DeadLetterError, EndpointAwayError, RetryError
from ingest.hand_over import Delivered, EndOfRecords, record_bytes
from ingest.outcome import Failed, FailReason
from ingest.pair import ResponsePair
from ingest.records import MirroredRequest, RawRecord
from ingest.settings import DeliverySettings

_COMPARE_BACKLOG = 32
_LEAST_FLUSH_S = 5.0
BATCH_SHARE = 0.5
"""Of the bytes that may be under way: one batch gathers while another is stored."""

_log = logging.getLogger(__name__)


def _unfenced(epochs: Mapping[int, int]) -> AbstractContextManager[None]:
    return nullcontext()


class Pipeline:
    """One run of the pipeline. `run` may be called once, on the loop that made it."""

    def __init__(
        self,
        *,
        experiment: str,
        source: Source,
        ledger: Settles,
        intake: Intake,
        replayer: Replays,
        compare: Compare,
        writer: Writes,
        dead_letters: SendsDeadLetters,
        delivery: DeliverySettings,
        stop_writing: threading.Event,
        stored: AlreadyStored | None = None,
        owned: Callable[[Mapping[int, int]], AbstractContextManager[None]] = _unfenced,
        on_progress: Callable[[Counters], None] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        """`stop_writing` makes `writer` give up its retries; it is set when the drain takes too long.

        `stored` knows what an earlier run stored. `writer` is called within `owned`, which is given the
        partitions of the batch with their epochs (`OwnedInserts.owned`).
        """
        self.counters = Counters()
        self._experiment = experiment
        self._source = source
        self._ledger = ledger
        self._intake = intake
        self._replayer = replayer
        self._compare_stage = CompareStage(compare)
        self._writer = writer
        self._delivery = delivery
        self._stop_writing = stop_writing
        self._stored = stored
        self._owned = owned
        self._on_progress = on_progress
        self._observers = observers
        self.is_started = False
        self._stop_when: Callable[[Counters], bool] | None = None
        self._stop = asyncio.Event()
        self.is_draining = False
        self._replay_slots = asyncio.Semaphore(delivery.max_in_flight_requests)
        self._under_way: UnderWay[Completed] = UnderWay(ledger.is_current)
        self._completed: asyncio.Queue[Completed | None] = asyncio.Queue(maxsize=delivery.batch_pairs)
        self._room = Room(delivery.max_under_way_bytes)
        # Apart, since whoever waits here holds room for its record: a slow store must not fill the memory.
        self._answer_room = Room(delivery.max_under_way_bytes)
        batch_bytes = round(delivery.max_under_way_bytes * BATCH_SHARE)
        self._batcher = Batcher(experiment, delivery.batch_pairs, batch_bytes, delivery.batch_seconds)
        self._last_commit, self._given_up = 0.0, 0
        self._committing: asyncio.Task[bool] | None = None
        self._letters = DeadLetterKeeper(
            dead_letters, pause_share=delivery.dead_letter_pause_share, hold=source.hold
        )
        self._write_thread = ThreadPoolExecutor(1, "gnomon-write")

    def stop(self) -> None:
        """Begin the orderly end: no new records, drain, flush, commit. Called on the event loop."""
        self._stop.set()

    def release(self, partition: int) -> None:
        """Go on with a partition that was held for its dead letters. Called on the event loop."""
        self._letters.forget(partition)
        self._source.release(partition)

    async def compare(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        """Compare pairs that are no record's (golden runs), in turn with the others. Only while it runs."""
        return await self._compare_stage.compare(pairs)

    async def run(self, stop_when: Callable[[Counters], bool] | None = None) -> Counters:
        """Run until `stop` is called or `stop_when` is true of the stored outcomes, then drain.

        Raises FatalError if a part cannot go on; what is stored by then stays, nothing more is
        committed.
        """
        self._stop_when = stop_when
        tasks: list[asyncio.Task[None]] = []
        try:
            stopping = asyncio.create_task(self._stopped())
            starting = asyncio.create_task(self._start())
            tasks = [stopping, starting]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                return self.counters
            await starting
            self.is_started = True
            # More than replay at once, so that endpoints are busy while other pairs are compared.
            count = self._delivery.max_in_flight_requests + _COMPARE_BACKLOG
            workers = [asyncio.create_task(self._work()) for _ in range(count)]
            comparing = asyncio.create_task(self._compare_stage.run())
            storing = asyncio.create_task(self._store_loop())
            dropping = asyncio.create_task(self._under_way.watch())
            tasks = [*workers, comparing, storing, dropping, stopping]
            await _until_done(stopping, tasks)
            await self._drain(workers, storing)
        finally:
            await self._close(tasks)
        return self.counters

    async def _start(self) -> None:
        await self._replayer.start()
        await self._source.start()

    async def _carry(self, delivered: Delivered) -> Completed:
        """One record's whole way, from its bytes to its outcome. Exactly one outcome comes of it."""
        record, now, trail = delivered.record, datetime.now(UTC), Trail()
        settled = await self._look_back(record, now)
        if settled is not None and settled.is_whole:
            return completed_of(delivered, trail, is_stored=True)
        outcome: MirroredRequest | OtherOutcome | tuple[ResponsePair, ...] | tuple[ComparedPair, ...]
        outcome = self._intake.take(record, now)
        if isinstance(outcome, MirroredRequest):
            with trail.stage("replay"):
                outcome = await self._replay(outcome, record, now)
        if settled is not None and not isinstance(outcome, OtherOutcome):
            outcome = tuple(pair for pair in outcome if pair.candidate_name not in settled.candidates)
        if not isinstance(outcome, OtherOutcome):
            with trail.stage("compare"):
                outcome = await self._compare(outcome, record, now)
        if not isinstance(outcome, OtherOutcome):
            return completed_of(delivered, trail, pairs=outcome)
        if outcome.kind != "skipped":
            self._intake.forget(outcome.request_id, outcome.position)
        if outcome.kind == "dead_letter":
            is_kept = await self._letters.keep(
                record, outcome, is_ending=lambda: self.is_draining, sleep=self._sleep
            )
            if not is_kept:
                raise _GivenUpError
        return completed_of(delivered, trail, other=outcome)

    async def _settle(self, *, is_commit_due: bool) -> None:
        """The rest of the way: outcomes into the store, into the ledger, and their offsets committed."""
        size, answers = self._batcher.size, self._batcher.answer_bytes
        batch, settled = self._batcher.cut(self._is_current)
        began_ns = time.time_ns()
        written = await self._write(batch, {done.partition: done.epoch for done in settled})
        self._room.give_back(size)
        self._answer_room.give_back(answers)
        if written is not None:
            refused = written.refused
            self._ledger.store((done.partition, done.epoch, done.offset) for done in settled)
            lost = Counter((row.partition, row.offset) for row in refused if row.table == "pairs")
            for done in settled:
                self.counters.count(done, refused_pairs=lost[done.partition, done.offset])
                if done.trail is not None:
                    done.trail.stages.append(("store", began_ns, time.time_ns()))
                for observer in self._observers:
                    observer.settled(done)
        if is_commit_due:
            self._last_commit = time.monotonic()
            ranges = self._ledger.take_ranges()
            range_batch = Batch(self._experiment, (), (), ranges)
            if await self._write(range_batch, {taken.partition: taken.epoch for taken in ranges}) is not None:
                self._ledger.ranges_stored(ranges)
                self.counters.consumed += sum(delivered.records for delivered in ranges)
                self.counters.lost += sum(delivered.lost for delivered in ranges)
            if self._ledger.to_commit() and (self._committing is None or self._committing.done()):
                # Not awaited: while Kafka is away, what was read goes on to be stored.
                self._committing = asyncio.create_task(self._source.commit())
        if self._on_progress is not None:
            self._on_progress(self.counters)

    async def _work(self) -> None:
        while True:
            try:
                delivered = await self._room.next_of(self._source)
            except EndOfRecords:
                return
            completed = await self._carried(delivered)
            if completed is None:
                self._room.give_back(record_bytes(delivered.record))
                continue
            self._letters.watch(completed)
            await self._answer_room.take(completed.answer_bytes)
            await self._completed.put(completed)

    async def _carried(self, delivered: Delivered) -> Completed | None:
        partition = delivered.record.position.partition
        if not self._ledger.is_current(partition, delivered.epoch):
            return None
        self.counters.delivered += 1
        try:
            return await self._under_way.carry(self._carry(delivered), partition, delivered.epoch)
        except _GivenUpError:
            self._given_up += 1
            return None
        except asyncio.CancelledError:
            self._given_up += 1
            raise

    async def _look_back(self, record: RawRecord, now: datetime) -> Settled | None:
        if self._stored is None:
            return None
        try:
            return await self._stored.look(record, now)
        except RetryError as error:
            raise _GivenUpError from error

    async def _replay(
        self, mirrored: MirroredRequest, record: RawRecord, now: datetime
    ) -> tuple[ResponsePair, ...] | OtherOutcome:
        skipped = self._replayer.skip_for(mirrored)
        if skipped is not None:
            return ended(record, now, skipped, mirrored)
        async with self._replay_slots:
            if self.is_draining:
                raise _GivenUpError
            try:
                return await self._replayer.replay(mirrored)
            except DeadLetterError as error:
                return dead(record, now, error, mirrored)
            except BudgetError as error:
                failed = Failed(FailReason.BUDGET, str(error))
            except EndpointAwayError as error:
                if self.is_draining:
                    # It waited for the endpoint and was told to stop: next time it may be there.
                    raise _GivenUpError from error
                failed = Failed(FailReason.ENDPOINT_AWAY, str(error))
        return ended(record, now, failed, mirrored)

    async def _compare(
        self, pairs: tuple[ResponsePair, ...], record: RawRecord, now: datetime
    ) -> tuple[ComparedPair, ...] | OtherOutcome:
        compared = []
        for pair, comparison in zip(pairs, await self._compare_stage.compare(pairs), strict=True):
            if isinstance(comparison, DeadLetterError):
                # With several candidates too: one record, one outcome.
                return dead(record, now, comparison, pair.mirrored)
            compared.append(ComparedPair.of(pair, comparison))
        return tuple(compared)

    async def _store_loop(self) -> None:
        """Settle outcomes as they come. Ends after `None` was put, with everything flushed."""
        while True:
            left = self._batcher.seconds_left(time.monotonic())
            if left is None or left > 0:
                wait_s = self._delivery.commit_interval_s if left is None else left
                try:
                    item = await asyncio.wait_for(self._completed.get(), wait_s)
                except TimeoutError:
                    pass
                else:
                    if item is None:
                        break
                    self._batcher.add(item, time.monotonic())
            now = time.monotonic()
            is_commit_due = now - self._last_commit >= self._delivery.commit_interval_s
            if is_commit_due or self._batcher.seconds_left(now) == 0:
                await self._settle(is_commit_due=is_commit_due)
            if self._stop_when is not None and self._stop_when(self.counters):
                self._stop.set()
        # The first may only confirm a range begun earlier; the second takes what lay beyond it.
        for _ in range(2):
            await self._settle(is_commit_due=True)
            if self._committing is not None:
                await self._committing

    async def _write(self, batch: Batch, epochs: Mapping[int, int]) -> WriteResult | None:
        """Store a batch of these partitions. None if there is nothing to settle.

        Also if a partition was taken away meanwhile. Then some rows may be stored and some not, and the
        partitions that are left are read again: what is stored of them will be found.
        """
        if not epochs:
            return None

        def write() -> WriteResult:
            with self._owned(epochs):
                return self._writer.write(batch)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._write_thread, write)
        except LostPartitionError as error:
            _log.warning("%s: the rest of this batch is left to the next owner", error)
            self._source.reread([p for p, epoch in epochs.items() if self._ledger.is_current(p, epoch)])
            return None

    async def _drain(self, workers: Sequence[asyncio.Task[None]], storing: asyncio.Task[None]) -> None:
        deadline = time.monotonic() + self._delivery.drain_seconds
        self.is_draining = True
        self._source.rest()
        self._replayer.rest()
        within = ""
        try:
            await asyncio.wait_for(asyncio.gather(*workers), self._delivery.drain_seconds)
        except TimeoutError:
            within = f" after {self._delivery.drain_seconds:g} s"
        if self._given_up:
            _log.warning("records given up%s: %d; they are delivered again", within, self._given_up)
        left = max(_LEAST_FLUSH_S, deadline - time.monotonic())
        # `storing` may have failed and take nothing any more, so the end mark is put beside it.
        marking = asyncio.create_task(self._completed.put(None))
        try:
            if storing not in (await asyncio.wait([storing], timeout=left))[0]:
                self._stop_writing.set()
            await storing
        except RetryError as error:
            _log.warning("what was not stored will be delivered again: %s", error)
        finally:
            marking.cancel()

    async def _close(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        self._stop_writing.set()
        everything = [*tasks, self._committing] if self._committing is not None else [*tasks]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        await self._source.close()
        await self._replayer.close()
        await self._letters.close()
        await asyncio.to_thread(self._write_thread.shutdown)
        await self._compare_stage.close()

    async def _stopped(self) -> None:
        await self._stop.wait()

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not through the end of the run."""
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return

    def _is_current(self, completed: Completed) -> bool:
        return self._ledger.is_current(completed.partition, completed.epoch)


class _GivenUpError(Exception):
    """The run ends before this record had its outcome: it will be delivered again."""


async def _until_done(expected: asyncio.Task[None], tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for `expected`. Raises what any other task raised before."""
    while not expected.done():
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
