"""The bounded hand-over of records from the consumer's thread to the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import msgspec

from ingest.records import RawRecord

FULL_SHARE_TO_RESUME = 0.5
"""Partitions are resumed below this share of either limit: the gap stops rapid pausing and resuming."""


class Delivered(msgspec.Struct, frozen=True):
    """A record with the epoch of the assignment that it came under."""

    record: RawRecord
    epoch: int


class EndOfRecords(Exception):
    """`get` has nothing more to give: `end` was called."""


def record_bytes(record: RawRecord) -> int:
    """Size of a record's key, value and headers, in bytes."""
    headers = sum(len(name) + len(value) for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


class HandOver:
    """Records waiting to be taken up, counted by number and by bytes.

    `put` never blocks: the consumer's thread asks `is_full` and `room` first and pauses its
    partitions, so what is held exceeds a limit by at most one poll.
    """

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._records = 0
        self._bytes = 0
        self._largest = 1
        self._is_full = False
        self._is_ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[Delivered | Exception] = asyncio.Queue()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Name the loop whose tasks call `get`."""
        self._loop = loop

    def put(self, delivered: Sequence[Delivered]) -> None:
        """Hand records over. Called by the consumer's thread."""
        if not delivered:
            return
        sizes = [record_bytes(item.record) for item in delivered]
        with self._lock:
            self._records += len(sizes)
            self._bytes += sum(sizes)
            self._largest = max(sizes)
        for item in delivered:
            self._post(item)

    def fail(self, error: Exception) -> None:
        """Make every later `get` raise `error`, once the records before it are taken."""
        self._post(error)

    def end(self) -> None:
        """Give out no more records, also none of those that wait. Called on the loop."""
        self._is_ended = True
        self._queue.put_nowait(EndOfRecords())

    async def get(self) -> Delivered:
        """The next record. Raises what `fail` was given, and EndOfRecords after `end`."""
        item = await self._queue.get()
        if self._is_ended:
            item = EndOfRecords()
        if isinstance(item, Exception):
            self._queue.put_nowait(item)
            raise item
        with self._lock:
            self._records -= 1
            self._bytes -= record_bytes(item.record)
        return item

    @property
    def is_full(self) -> bool:
        """Whether reading should rest: from either high-water mark until below half of both."""
        with self._lock:
            if self._records >= self._max_records or self._bytes >= self._max_bytes:
                self._is_full = True
            elif (
                self._records < self._max_records * FULL_SHARE_TO_RESUME
                and self._bytes < self._max_bytes * FULL_SHARE_TO_RESUME
            ):
                self._is_full = False
            return self._is_full

    @property
    def room(self) -> int:
        """How many records the next poll may bring, at least 1, judged by the last poll's largest."""
        with self._lock:
            by_bytes = (self._max_bytes - self._bytes) // max(1, self._largest)
            return max(1, min(self._max_records - self._records, by_bytes))

    @property
    def held(self) -> tuple[int, int]:
        """Records and bytes that wait now."""
        with self._lock:
            return self._records, self._bytes

    def _post(self, item: Delivered | Exception) -> None:
        if self._loop is None:
            raise RuntimeError("HandOver.bind must come before records do")
        # The loop is closed only after a hard stop, when nobody will take the record any more.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
