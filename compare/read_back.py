"""What is stored already of a partition that was just assigned, so that nothing is done twice.

Between the last commit and a crash, rows were stored whose offsets were not committed: Kafka
delivers their records again. `ReadBack.prepare` finds them before the first record is handed over,
on a thread of its own, and waits for the store as long as it takes. `ReadBack.find` then says of
each record what is there of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from compare.fence import OwnedInserts, wait_out_inserts
from compare.recent_ids import RecentIds
from compare.store.client import Store
from compare.sweeper import Sweeper
from ingest.assignment import Prepared
from ingest.errors import RetryError
from ingest.kafka_errors import AwayLog
from ingest.kafka_prepare import NIL_TOPIC_ID
from ingest.records import SourcePosition

WINDOW_KEYS = 50_000
"""Stored keys of one partition that are held at once: about 20 MB. The next window is read when needed."""
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 30.0
_KEYS = """
SELECT `offset`,
    groupUniqArrayIf((candidate, request_hash), NOT is_outcome) AS pairs,
    max(is_outcome) AS has_outcome,
    argMaxIf(request_id, version, is_outcome) AS outcome_id
FROM
(
    SELECT `offset`, toString(candidate) AS candidate, request_hash, request_id, version, false AS is_outcome
    FROM pairs
    WHERE experiment = {experiment:String} AND has({candidates:Array(String)}, candidate)
        AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` >= {start:UInt64}
    UNION ALL
    SELECT `offset`, '', '', request_id, version, true
    FROM outcomes
    WHERE experiment = {experiment:String}
        AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` >= {start:UInt64}
)
GROUP BY `offset`
ORDER BY `offset`
LIMIT {limit:UInt32}
"""
_RANGES = """
SELECT first_offset, end_offset, version FROM delivered_ranges FINAL
WHERE experiment = {experiment:String} AND consumer_group = {group:String} AND topic_id = {topic_id:String}
    AND `partition` = {partition:UInt32} AND end_offset > {start:UInt64}
"""
_VERSION = """
SELECT max(version) FROM delivered_ranges
WHERE experiment = {experiment:String} AND consumer_group = {group:String} AND topic_id = {topic_id:String}
    AND `partition` = {partition:UInt32}
"""
_TOPIC_IDS = """
SELECT DISTINCT topic_id FROM delivered_ranges
WHERE consumer_group = {group:String} AND topic = {topic:String} AND `partition` = {partition:UInt32}
"""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class StoredKey(msgspec.Struct, frozen=True):
    """What the store has of one source position: (candidate, request hash) pairs, or another outcome."""

    pairs: frozenset[tuple[str, str]]
    has_outcome: bool = False
    outcome_id: str = ""


class Preparation:
    """One partition's read-back under way (`ingest.assignment.Preparing`)."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._is_given_up = threading.Event()
        self.future: Future[Prepared] = Future()

    def done(self) -> bool:
        """Whether `result` may be asked."""
        return self.future.done()

    def result(self) -> Prepared:
        """What was found. Raises the FatalError that it ended with."""
        return self.future.result()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self._is_given_up.set()

    @property
    def is_given_up(self) -> bool:
        """Whether going on makes no sense."""
        return self._is_given_up.is_set() or self._stop.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep, but not for long once it is given up."""
        deadline = time.monotonic() + seconds
        while not self.is_given_up and (left := deadline - time.monotonic()) > 0:
            self._is_given_up.wait(min(left, 0.2))


class _GivenUpError(Exception):
    pass


class _Window:
    """The stored keys of one partition with offsets in [start, end); `end` None: of all there are."""

    def __init__(self) -> None:
        self.keys: dict[int, StoredKey] = {}
        self.end: int | None = None
        # First come, first served: whoever asks for a later window has all earlier askers behind.
        self.lock = asyncio.Lock()


class ReadBack:
    """Reads back what is stored of one experiment. `store` is used by nothing else."""

    def __init__(
        self,
        store: Store,
        *,
        experiment: str,
        candidates: Sequence[str],
        group: str,
        inserts: OwnedInserts,
        recent_ids: RecentIds | None = None,
        sweeper: Sweeper | None = None,
        cluster: str | None = None,
        window_keys: int = WINDOW_KEYS,
    ) -> None:
        """`inserts` is what the writer inserts through: its last attempt is waited for.

        `recent_ids` is brought up to date, and `sweeper` asked to take out what a killed owner left
        half written, before a partition's first record.
        """
        self._store = store
        self._experiment = experiment
        self._candidates = list(candidates)
        self._group = group
        self._inserts = inserts
        self._recent_ids = recent_ids
        self._sweeper = sweeper
        self._cluster = cluster
        self._window_keys = window_keys
        self._stop = threading.Event()
        self._windows: dict[tuple[str, int], _Window] = {}
        self._away = AwayLog(f"the store {store.where}, to read back what is stored,", grace_s=0.0)
        self._thread = ThreadPoolExecutor(1, "gnomon-read-back")

    def prepare(
        self, topic: str, topic_id: str, partition: int, start: int, *, is_committed: bool
    ) -> Preparation:
        """See `ingest.assignment.Prepares`. Called by the consumer's thread."""
        preparation = Preparation(self._stop)
        where = SourcePosition(topic, topic_id, partition, start)
        self._thread.submit(self._run, preparation, where, is_committed)
        return preparation

    async def find(self, position: SourcePosition) -> StoredKey | None:
        """What is stored of this position; None if nothing. Asked once for each delivered record.

        Records of a partition must be asked for in their order. May wait for the store. Raises
        RetryError if `close` was called meanwhile.
        """
        window = self._windows.get((position.topic_id, position.partition))
        if window is None or (window.end is None and not window.keys):
            return None
        async with window.lock:
            if window.end is not None and position.offset >= window.end:
                load = partial(self._load, position, Preparation(self._stop))
                try:
                    keys, end = await asyncio.get_running_loop().run_in_executor(self._thread, load)
                except _GivenUpError as error:
                    raise RetryError("the run ends while stored keys are read back") from error
                window.keys, window.end = keys, end
            return window.keys.pop(position.offset, None)

    def close(self) -> None:
        """End within some seconds, also while the store is away. Blocks."""
        self._stop.set()
        self._thread.shutdown(cancel_futures=True)

    # What follows runs on the thread.

    def _run(self, preparation: Preparation, where: SourcePosition, is_committed: bool) -> None:
        try:
            preparation.future.set_result(self._prepare(preparation, where, is_committed))
        except _GivenUpError:
            preparation.future.cancel()
        except BaseException as error:
            preparation.future.set_exception(error)

    def _prepare(self, preparation: Preparation, where: SourcePosition, is_committed: bool) -> Prepared:
        self._fence(preparation, where)
        if is_committed and self._retried(preparation, lambda: self._is_foreign(where)):
            _log.warning(
                "partition %d of %s: the committed offset %d was made on an earlier topic of that name; "
                "the new one is read from its beginning", where.partition, where.topic, where.offset,
            )  # fmt: skip
            return Prepared(is_offset_foreign=True)
        if self._sweeper is not None:
            sweep = partial(self._sweeper.sweep_from, where)
            self._retried(preparation, sweep)
        window = _Window()
        window.keys, window.end = self._load(where, preparation)
        if self._recent_ids is not None:
            self._retried(preparation, partial(self._recent_ids.refresh, where.topic_id))
        prepared = self._retried(preparation, lambda: self._ranges(where, tuple(sorted(window.keys))))
        self._windows = {
            key: held
            for key, held in self._windows.items()
            if key[1] != where.partition and (held.keys or held.end is not None)
        } | {(where.topic_id, where.partition): window}
        if window.keys:
            more = "" if window.end is None else " and more"
            _log.info(
                "partition %d of %s: %d%s records at or above offset %d are stored already",
                where.partition, where.topic, len(window.keys), more, where.offset,
            )  # fmt: skip
        return prepared

    def _fence(self, preparation: Preparation, where: SourcePosition) -> None:
        while not self._inserts.is_idle(where.partition, 0.2):
            if preparation.is_given_up:
                raise _GivenUpError
        self._retried(
            preparation,
            lambda: wait_out_inserts(
                self._store,
                self._group,
                where.topic_id,
                where.partition,
                cluster=self._cluster,
                is_given_up=lambda: preparation.is_given_up,
            ),
        )

    def _load(
        self, where: SourcePosition, preparation: Preparation
    ) -> tuple[dict[int, StoredKey], int | None]:
        """The stored keys from an offset on, and the offset where the next window begins, if any."""
        parameters = self._place(where) | {"candidates": self._candidates, "limit": self._window_keys}
        rows = self._retried(preparation, lambda: self._store.query(_KEYS, parameters).rows)
        keys = {
            int(offset): StoredKey(
                frozenset((str(candidate), str(digest)) for candidate, digest in pairs),
                bool(has_outcome),
                str(outcome_id),
            )
            for offset, pairs, has_outcome, outcome_id in rows
        }
        return keys, (max(keys) + 1 if len(keys) == self._window_keys else None)

    def _ranges(self, where: SourcePosition, stored: tuple[int, ...]) -> Prepared:
        parameters = self._place(where)
        rows = self._store.query(_RANGES, parameters).rows
        ((version,),) = self._store.query(_VERSION, parameters).rows
        return Prepared({int(first): int(end) for first, end, _ in rows}, int(version), stored)

    def _is_foreign(self, where: SourcePosition) -> bool:
        """Ranges are stored before their end is committed, so an offset of this topic has one."""
        rows = self._store.query(_TOPIC_IDS, self._place(where) | {"topic": where.topic}).rows
        known = {str(topic_id) for (topic_id,) in rows} - {NIL_TOPIC_ID}
        return bool(known) and where.topic_id not in known and where.topic_id != NIL_TOPIC_ID

    def _place(self, where: SourcePosition) -> dict[str, object]:
        return {
            "experiment": self._experiment,
            "group": self._group,
            "topic_id": where.topic_id,
            "partition": where.partition,
            "start": where.offset,
        }

    def _retried(self, preparation: Preparation, call: Callable[[], T]) -> T:
        """Call until the store answers. Raises _GivenUpError once nobody waits any more."""
        attempt = 0
        while True:
            if preparation.is_given_up:
                raise _GivenUpError
            try:
                result = call()
            except RetryError as error:
                self._away.away(str(error))
            else:
                self._away.back()
                return result
            wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(attempt, 10))
            attempt += 1
            preparation.wait(wait_s * random.uniform(0.5, 1.0))
