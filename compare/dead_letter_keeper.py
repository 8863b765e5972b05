"""Keeps dead letters in their topic, and stops a partition that holds too many of them.

A broken producer so stops its partition and not the job.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from compare.batcher import Completed
from compare.outcomes import OtherOutcome
from compare.stages import SendsDeadLetters
from ingest.errors import RetryError
from ingest.kafka_errors import AwayLog
from ingest.records import RawRecord

WINDOW_RECORDS = 1000
_LONGEST_WAIT_S = 30.0

_log = logging.getLogger(__name__)


class DeadLetterKeeper:
    """Sends letters on a thread of its own; everything else on the event loop."""

    def __init__(self, topic: SendsDeadLetters, *, pause_share: float, hold: Callable[[int], None]) -> None:
        """`hold` pauses a partition of which more than `pause_share` are dead letters."""
        self._topic = topic
        self._pause_share = pause_share
        self._hold = hold
        self._rate = DeadLetterRate(pause_share)
        self._away = AwayLog("the dead-letter topic", grace_s=0.0)
        self._thread = ThreadPoolExecutor(1, "gnomon-dead-letters")

    async def keep(
        self,
        record: RawRecord,
        letter: OtherOutcome,
        *,
        is_ending: Callable[[], bool],
        sleep: Callable[[float], Awaitable[None]],
    ) -> bool:
        """Send it, trying for ever: nothing may be committed past a letter that is not kept.

        False if it is not kept because the run ends.
        """
        loop, attempt = asyncio.get_running_loop(), 0
        while True:
            try:
                await loop.run_in_executor(
                    self._thread, self._topic.send, record, letter.reason, letter.detail
                )
            except RetryError as error:
                self._away.away(str(error))
                if is_ending():
                    return False
            else:
                self._away.back()
                return True
            attempt += 1
            await sleep(_backoff_s(attempt))

    def watch(self, completed: Completed) -> None:
        """Note one record; hold its partition if this letter is one too many."""
        if completed.is_stored:
            return
        is_dead = completed.other is not None and completed.other.kind == "dead_letter"
        if self._rate.is_over(completed.partition, is_dead=is_dead) and is_dead:
            self._hold(completed.partition)
            _log.error(
                "partition %d is paused: over %g %% of its last %d records are dead letters; see gnomon dlq "
                "list, mend the producer, then gnomon resume --partition %d",
                completed.partition,
                self._pause_share * 100,
                WINDOW_RECORDS,
                completed.partition,
            )

    def forget(self, partition: int) -> None:
        """Begin anew with this partition."""
        self._rate.forget(partition)

    async def close(self) -> None:
        """Close the topic and end the thread."""
        self._thread.submit(self._topic.close)
        await asyncio.to_thread(self._thread.shutdown)


class DeadLetterRate:
    """Dead letters among the last 1,000 records of each partition."""

    def __init__(self, max_share: float) -> None:
        self._most = max_share * WINDOW_RECORDS
        self._last: dict[int, deque[bool]] = {}
        self._dead: dict[int, int] = {}

    def is_over(self, partition: int, *, is_dead: bool) -> bool:
        """Note one record; whether the partition's dead letters exceed the share of a full window.

        So the first dead letter of a new partition is not 100 %.
        """
        last = self._last.setdefault(partition, deque())
        last.append(is_dead)
        dead = self._dead.get(partition, 0) + is_dead
        if len(last) > WINDOW_RECORDS:
            dead -= last.popleft()
        self._dead[partition] = dead
        return dead > self._most

    def forget(self, partition: int) -> None:
        """Begin anew with this partition."""
        self._last.pop(partition, None)
        self._dead.pop(partition, None)


def _backoff_s(attempt: int) -> float:
    """Half a second, doubled with each attempt, with jitter; 30 s at most."""
    return min(_LONGEST_WAIT_S, 0.5 * 2.0 ** min(attempt - 1, 10) * random.uniform(0.8, 1.2))
