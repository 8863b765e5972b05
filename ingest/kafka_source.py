"""The Kafka source: one thread owns the consumer, the event loop takes records from a bounded queue.

The owning thread alone calls the consumer. It goes on polling while partitions are paused (queue
full, draining, a partition on hold), so that the group keeps us as a member; it commits when asked.
kafka-python 3 runs the rebalance listener on an I/O thread of its own, while the owner waits in a
call of the consumer, whichever: the listener may not block, and awaits its commit.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from kafka import AsyncConsumerRebalanceListener
from kafka import errors as kafka_errors

from ingest.assignment import DeliveryLog, NothingStored, Prepares
from ingest.errors import FatalError, GnomonError
from ingest.hand_over import Delivered, HandOver
from ingest.kafka_connect import connect_consumer
from ingest.kafka_errors import AwayLog, judge
from ingest.kafka_group import GroupWatch
from ingest.kafka_parked import let_parked_go_on
from ingest.kafka_prepare import NIL_TOPIC_ID, Beginnings
from ingest.kafka_records import raw_record
from ingest.retention import removed_until
from ingest.settings import DeliverySettings, KafkaSettings

_POLL_MS = 100
_COMMIT_TIMEOUT_MS = 5_000
_CLOSE_TIMEOUT_MS = 3_000
_BACKOFF_S = 0.5

_log = logging.getLogger(__name__)


class Progress(msgspec.Struct, frozen=True):
    """Where one partition stands. `highwater` is the offset of the next record to be produced."""

    position: int
    highwater: int | None


class KafkaSource:
    """Records of one topic for one group. `start`, then `get` and `commit`, then `close`."""

    def __init__(
        self,
        settings: KafkaSettings,
        delivery: DeliverySettings,
        log: DeliveryLog,
        *,
        before: Prepares | None = None,
        startup_timeout_s: float = 30.0,
        experiment: str = "",
    ) -> None:
        """`before` is asked before a partition's first record. `experiment` is noted with our commits."""
        self._settings = settings
        self._log = log
        self._group = GroupWatch(settings, experiment)
        self._beginnings = Beginnings(settings.topic, before or NothingStored(), self._group)
        self._startup_timeout_s = startup_timeout_s
        self._hand_over = HandOver(delivery.max_queued_records, delivery.max_queued_bytes)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._is_resting = False
        self._held: set[int] = set()
        self._to_reread: set[int] = set()
        self._given_at = float("-inf")
        self._unprepared: set[int] = set()
        self._turns: Counter[int] = Counter()
        """How often each partition was given or taken: what was found out before such a turn is void."""
        self._assigned: dict[int, tuple[int, str, int]] = {}
        self._progress: dict[int, Progress] = {}
        self._commit_waiters: list[asyncio.Future[bool]] = []
        self._broker_log = AwayLog(f"Kafka at {', '.join(settings.bootstrap_servers)}")
        self._thread: threading.Thread | None = None
        self._started: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._consumer: Any = None
        self._cluster: Any = None

    async def start(self) -> None:
        """Connect and subscribe. Raises FatalError if that cannot be done within the start-up time."""
        self._loop = asyncio.get_running_loop()
        self._hand_over.bind(self._loop)
        self._started = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="gnomon-kafka", daemon=True)
        self._thread.start()
        await self._started

    async def get(self) -> Delivered:
        """The next record. Raises FatalError if the source had to give up, EndOfRecords after `rest`."""
        return await self._hand_over.get()

    async def commit(self) -> bool:
        """Have the owner commit what the delivery log allows; True once the broker confirmed it.

        False means not confirmed (Kafka is away, or a rebalance is under way): ask again later.
        """
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            return False
        waiter: asyncio.Future[bool] = self._loop.create_future()
        with self._lock:
            self._commit_waiters.append(waiter)
        return await waiter

    def rest(self) -> None:
        """Take and give no more records. The group membership and commits go on until `close`."""
        self._is_resting = True
        self._hand_over.end()

    def hold(self, partition: int) -> None:
        """Pause one partition until `release`, or until this process ends. The others go on."""
        with self._lock:
            self._held.add(partition)

    def release(self, partition: int) -> None:
        """Read a partition on again that `hold` paused, if it is."""
        with self._lock:
            self._held.discard(partition)

    def reread(self, partitions: Iterable[int]) -> None:
        """Drop what was handed over of these partitions, and read them again from the committed offset.

        As if they had been taken away and given back. Does nothing for one that is not ours.
        """
        with self._lock:
            for partition in partitions:
                self._log.revoke(partition)
                self._to_reread.add(partition)

    def has_lease(self) -> bool:
        """Whether the broker confirmed our membership of the group within the session timeout.

        Without it the partitions may be another's already. May be asked from any thread.
        """
        consumer = self._consumer
        if consumer is None:
            return False
        # Not the client's own timer: it begins anew when the coordinator is found again.
        confirmed_at = max(self._given_at, consumer._coordinator.heartbeat.last_receive)
        return bool(time.monotonic() - confirmed_at < self._settings.session_timeout_ms / 1000)

    @property
    def held_partitions(self) -> frozenset[int]:
        """Partitions paused by `hold`."""
        with self._lock:
            return frozenset(self._held)

    @property
    def waiting(self) -> tuple[int, int]:
        """Records and bytes that were delivered and not taken by `get` yet."""
        return self._hand_over.held

    def progress(self) -> dict[int, Progress]:
        """Position and high-water mark of each assigned partition, as of the last poll."""
        with self._lock:
            return dict(self._progress)

    async def close(self) -> None:
        """Leave the group and end the thread, within some seconds even if Kafka is away."""
        self._closing.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    # What follows runs on the owning thread.

    def _run(self) -> None:
        try:
            self._consumer, self._cluster = connect_consumer(
                self._settings, _Rebalance(self), self._startup_timeout_s, self._closing
            )
        except BaseException as error:
            self._tell_started(error)
            return
        self._tell_started(None)
        try:
            while not self._closing.is_set():
                self._turn()
        except GnomonError as error:
            self._hand_over.fail(error)
        except Exception as error:
            _log.exception("the Kafka thread ended")
            self._hand_over.fail(FatalError(f"the Kafka thread ended: {type(error).__name__}: {error}"))
        finally:
            self._close_consumer()
            self._answer_commit(False)

    def _turn(self) -> None:
        self._pause_and_resume()
        polled: dict[Any, Any] = {}
        let_parked_go_on(self._consumer)
        try:
            polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=self._hand_over.room)
            self._prepare()
        except kafka_errors.KafkaError as error:
            self._give_up_or_wait(error)
        self._hand_on(polled)
        self._watch_broker()
        if self._commit_waiters:
            self._answer_commit(self._commit())

    def _pause_and_resume(self) -> None:
        is_resting = self._is_resting or self._hand_over.is_full
        paused = self._consumer.paused()
        for tp in self._consumer.assignment():
            should = is_resting or tp.partition in self._held or tp.partition in self._unprepared
            if should and tp not in paused:
                self._consumer.pause(tp)
            elif not should and tp in paused:
                self._consumer.resume(tp)

    def _prepare(self) -> None:
        """Learn where new assignments begin and what of them is stored; until then they stay paused."""
        with self._lock:
            to_reread, self._to_reread = self._to_reread, set()
        for partition in to_reread & self._assigned.keys():
            self._unassign(partition)
            self._unprepared.add(partition)
        for tp in self._consumer.assignment():
            if tp.partition not in self._unprepared:
                continue
            turn = self._turns[tp.partition]
            begin = self._beginnings.look(tp, self._consumer, self._cluster)
            topic = self._settings.topic
            with self._lock:
                # Looking asks the broker; meanwhile the I/O thread may take the partition and give it again.
                if turn != self._turns[tp.partition]:
                    self._beginnings.drop(tp.partition)
                    continue
                if begin is None:
                    continue
                epoch = self._log.assign(topic, begin.topic_id, tp.partition, begin.start, begin.prepared)
                self._assigned[tp.partition] = (epoch, begin.topic_id, begin.start)
                self._unprepared.discard(tp.partition)
            _log.info("partition %d of %s begins at offset %d", tp.partition, topic, begin.start)

    def _unassign(self, partition: int) -> None:
        self._log.revoke(partition)
        self._assigned.pop(partition, None)
        with self._lock:
            self._progress.pop(partition, None)

    def _begin_anew(self, tp: Any, why: str) -> None:
        _log.warning("partition %d of %s is read from its beginning: %s", tp.partition, tp.topic, why)
        # Nothing more is committed for it before its new beginning is known.
        self._unassign(tp.partition)
        self._consumer.pause(tp)
        self._unprepared.add(tp.partition)
        self._beginnings.begin_anew(tp.partition, self._cluster)

    def _was_made_anew(self, topic_id: str) -> bool:
        found = self._cluster.topic_id(self._settings.topic)
        return found is not None and topic_id not in (NIL_TOPIC_ID, str(found))

    def _hand_on(self, polled: dict[Any, Any]) -> None:
        for tp in self._consumer.assignment():
            records = polled.get(tp, [])
            if tp.partition not in self._assigned:
                continue
            turn = self._turns[tp.partition]
            epoch, topic_id, expected = self._assigned[tp.partition]
            if self._was_made_anew(topic_id):
                self._begin_anew(tp, "the topic was made anew")
                continue
            if records and records[0].offset < expected:
                jump = f"it jumped back from offset {expected} to {records[0].offset}"
                self._begin_anew(tp, f"{jump}, so the topic was made anew or cut")
                continue
            position = self._position(tp, records[-1].offset + 1 if records else expected)
            if not records and position < expected:
                continue
            first = records[0].offset if records else position
            end = removed_until(self._consumer, tp, expected, first) if first > expected else expected
            with self._lock:
                # As in `_prepare`: that may have asked the broker.
                if turn != self._turns[tp.partition]:
                    continue
                self._assigned[tp.partition] = (epoch, topic_id, position)
                self._progress[tp.partition] = Progress(position, self._consumer.highwater(tp))
            self._log.lose(tp.partition, epoch, expected, end)
            # Noted before it is handed over: a record may not have an outcome before it is known.
            self._log.deliver(tp.partition, epoch, [record.offset for record in records], position)
            self._hand_over.put([Delivered(raw_record(record, topic_id), epoch) for record in records])

    def _position(self, tp: Any, at_least: int) -> int:
        try:
            position = self._consumer.position(tp, timeout_ms=0)
        except kafka_errors.KafkaError:
            return at_least
        return at_least if position is None else int(position)

    def _commit(self) -> bool:
        offsets = self._log.to_commit()
        if not offsets:
            return True
        try:
            self._consumer.commit(self._group.to_commit(offsets), timeout_ms=_COMMIT_TIMEOUT_MS)
        except kafka_errors.KafkaError as error:
            self._give_up_or_wait(error)
            return False
        self._log.committed(offsets)
        return True

    def _answer_commit(self, is_confirmed: bool) -> None:
        with self._lock:
            waiters, self._commit_waiters = self._commit_waiters, []
        for waiter in waiters:
            self._on_loop(_settle, waiter, is_confirmed)

    def _give_up_or_wait(self, error: Exception) -> None:
        fault = judge(error, self._settings)
        if isinstance(fault, FatalError):
            raise fault from error
        self._broker_log.away(str(fault))
        self._closing.wait(_BACKOFF_S)

    def _watch_broker(self) -> None:
        if self._settings.topic in self._cluster.unauthorized_topics:
            raise judge(kafka_errors.TopicAuthorizationFailedError(), self._settings)
        # poll() returns nothing, without an error, while the broker is away.
        if self._consumer._coordinator.coordinator_unknown():
            self._broker_log.away("no group coordinator")
        else:
            self._broker_log.back()

    def _close_consumer(self) -> None:
        try:
            self._consumer.close(autocommit=False, timeout_ms=_CLOSE_TIMEOUT_MS)
        except kafka_errors.KafkaError as error:
            _log.warning("leaving the consumer group: %s", judge(error, self._settings))

    def _tell_started(self, error: BaseException | None) -> None:
        if self._started is not None:
            self._on_loop(_settle, self._started, error)

    def _on_loop(self, call: Any, *arguments: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    # What follows runs on kafka-python's I/O thread, while the owner waits in a call of the consumer.

    async def _revoked(self, partitions: Collection[int], *, is_lost: bool) -> None:
        offsets = {
            p: offset
            for p, offset in self._log.to_commit().items()
            if p in partitions and p in self._assigned and not self._was_made_anew(self._assigned[p][1])
        }
        if offsets and not is_lost and not self._closing.is_set():
            try:
                await self._consumer.commit_async(self._group.to_commit(offsets))
                self._log.committed(offsets)
            except kafka_errors.KafkaError as error:
                _log.warning("the commit on revoke failed: %s", judge(error, self._settings))
        self._group.taken(partitions, is_lost=is_lost)
        for partition in partitions:
            with self._lock:
                self._turns[partition] += 1
                self._unprepared.discard(partition)
            self._unassign(partition)
            self._beginnings.drop(partition)

    def _given(self, partitions: Collection[Any]) -> None:
        self._given_at = time.monotonic()
        self._group.given(tp.partition for tp in partitions)
        # Paused until the owner knows where they begin and what of them is stored.
        self._consumer.pause(*partitions)
        with self._lock:
            self._turns.update(tp.partition for tp in partitions)
            self._unprepared.update(tp.partition for tp in partitions)


class _Rebalance(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, source: KafkaSource) -> None:
        self._source = source

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        await self._source._revoked([tp.partition for tp in revoked], is_lost=False)

    async def on_partitions_lost(self, lost: Collection[Any]) -> None:
        await self._source._revoked([tp.partition for tp in lost], is_lost=True)

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._source._given(assigned)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
