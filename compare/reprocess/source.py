"""Hands the selected requests over, each as Kafka still has it, else as it is stored."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from compare.batcher import Completed
from compare.reprocess.ledger import ReplayLedger
from compare.reprocess.selection import Place, Selected
from compare.reprocess.stored import StoredRequest
from compare.row_values import json_text, milliseconds
from ingest.errors import FatalError, GnomonError, RetryError
from ingest.hand_over import Delivered, HandOver
from ingest.kafka_reread import reread
from ingest.records import RawRecord, SourcePosition
from ingest.redact import refuse_redacted
from ingest.settings import DeliverySettings, KafkaSettings

KAFKA, STORE, REDACTED, GONE = "kafka", "store", "redacted", "gone"
AT_ONCE = 64
"""Requests that are read from the store in one query, with their answers."""
REREAD_AT_ONCE = 5_000
"""Positions that one connection to Kafka is asked for."""
_LOOK_AGAIN_S = 0.02
_LONGEST_WAIT_S = 30.0

Reads = Callable[[Place, Sequence[int]], dict[int, StoredRequest]]
"""`compare.reprocess.stored.read_stored`, all but place and offsets given."""
Rereads = Callable[[Sequence[SourcePosition]], Iterator[tuple[SourcePosition, RawRecord | None]]]

_log = logging.getLogger(__name__)


class ReplaySource:
    """A `compare.stages.Source` of stored requests. Reads on a thread of its own, ahead by a bounded part.

    An `Observer` too: what is stored of a request is held until its outcome is.

    `counts` says where each request came from: KAFKA or STORE, and which are not run: REDACTED, and GONE
    from both.
    """

    def __init__(
        self,
        selected: Selected,
        ledger: ReplayLedger,
        read: Reads,
        delivery: DeliverySettings,
        kafka: KafkaSettings | None,
        *,
        allow_redacted: bool = False,
        rereads: Rereads | None = None,
    ) -> None:
        """Without `kafka` all comes from the store. `rereads` stands for `ingest.kafka_reread.reread`."""
        self._selected = selected
        self._ledger = ledger
        self._read = read
        self._kafka = kafka
        self._rereads = rereads
        self._allow_redacted = allow_redacted
        self._hand_over = HandOver(delivery.max_queued_records, delivery.max_queued_bytes)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gnomon-replay-source", daemon=True)
        self._lock = threading.Lock()
        self._under_way: dict[tuple[int, int], StoredRequest] = {}
        self._has_begun = False
        self.counts: Counter[str] = Counter()
        self.handed_over = 0
        self.is_exhausted = False

    def request(self, position: SourcePosition) -> StoredRequest:
        """Return what is stored of a request that was handed over and is not `settled`.

        Its `mirrored` is None where the record is as Kafka has it: that is to be decoded.
        """
        place = Place(position.topic, position.topic_id, position.partition)
        with self._lock:
            return self._under_way[self._ledger.epoch(place), position.offset]

    def settled(self, completed: Completed) -> None:
        """Forget what is stored of a request."""
        with self._lock:
            self._under_way.pop((completed.epoch, completed.offset), None)

    async def start(self) -> None:
        """Begin to read."""
        self._hand_over.bind(asyncio.get_running_loop())
        self._has_begun = True
        self._thread.start()

    async def get(self) -> Delivered:
        """See `Source.get`."""
        return await self._hand_over.get()

    async def commit(self) -> bool:
        """There is nothing to commit."""
        return True

    def rest(self) -> None:
        """See `Source.rest`."""
        self._stop.set()
        self._hand_over.end()

    def hold(self, partition: int) -> None:
        """Nothing is held: whoever chose these requests wants them all."""

    def release(self, partition: int) -> None:
        """Nothing was held."""

    def reread(self, partitions: Iterable[int]) -> None:
        """Nobody takes a partition away."""

    async def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._has_begun:
            await asyncio.to_thread(self._thread.join)

    # What follows runs on the thread.

    def _run(self) -> None:
        try:
            for place, offsets in self._selected.offsets.items():
                self._run_place(place, offsets)
            self.is_exhausted = True
        except _EndedError:
            return
        except Exception as error:
            self._hand_over.fail(error)

    def _run_place(self, place: Place, offsets: Sequence[int]) -> None:
        for first in range(0, len(offsets), REREAD_AT_ONCE):
            part = offsets[first : first + REREAD_AT_ONCE]
            records = self._records(place, part)
            try:
                for start in range(0, len(part), AT_ONCE):
                    some = part[start : start + AT_ONCE]
                    stored = self._stored(place, some)
                    for offset in some:
                        position = SourcePosition(place.topic, place.topic_id, place.partition, offset)
                        self._put(place, next(records), stored.get(offset), position)
            finally:
                records.close()

    def _records(self, place: Place, offsets: Sequence[int]) -> Generator[RawRecord | None]:
        """Each offset's record, None where Kafka has it no more, or does not answer."""
        if self._kafka is not None and place.topic == self._kafka.topic:
            positions = [
                SourcePosition(place.topic, place.topic_id, place.partition, offset) for offset in offsets
            ]
            rereads = self._rereads or partial(reread, self._kafka)
            given = 0
            try:
                for _, record in rereads(positions):
                    yield record
                    given += 1
            except (FatalError, RetryError) as error:
                _log.warning("the rest comes from the store, for Kafka does not give it: %s", error)
                self._kafka = None
            offsets = offsets[given:]
        for _ in offsets:
            yield None

    def _stored(self, place: Place, offsets: Sequence[int]) -> dict[int, StoredRequest]:
        """Read until the store answers."""
        wait_s = 0.2
        while True:
            try:
                return self._read(place, offsets)
            except RetryError as error:
                _log.warning("stored requests are read again in %.1f s: %s", wait_s, error)
            if self._stop.wait(wait_s):
                raise _EndedError
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _put(
        self, place: Place, record: RawRecord | None, stored: StoredRequest | None, position: SourcePosition
    ) -> None:
        if stored is None or (record is None and stored.mirrored is None):
            self.counts[GONE] += 1
            return
        if record is None and not self._may_send(stored):
            self.counts[REDACTED] += 1
            return
        self.counts[STORE if record is None else KAFKA] += 1
        while self._hand_over.is_full:
            if self._stop.wait(_LOOK_AGAIN_S):
                raise _EndedError
        if self._stop.is_set():
            raise _EndedError
        epoch = self._ledger.epoch(place)
        with self._lock:
            self._under_way[epoch, position.offset] = (
                stored if record is None else msgspec.structs.replace(stored, mirrored=None)
            )
        self._hand_over.put([Delivered(record or _rebuilt(stored), epoch)])
        self.handed_over += 1

    def _may_send(self, stored: StoredRequest) -> bool:
        try:
            refuse_redacted(
                stored.request_id, is_redacted=stored.is_redacted, allow_redacted=self._allow_redacted
            )
        except GnomonError as error:
            if not self.counts[REDACTED]:
                _log.warning("%s (said of the first only): --redacted", error)
            return False
        return True


class _EndedError(Exception):
    pass


def _rebuilt(stored: StoredRequest) -> RawRecord:
    """What stands for the record: the intake takes the stored request, a dead letter shows its body."""
    assert stored.mirrored is not None
    value = json_text(stored.mirrored.body).encode()
    return RawRecord(stored.position, milliseconds(stored.mirrored_at), None, value)
