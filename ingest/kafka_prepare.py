"""From a partition just given to one that may be read: where it begins, and what of it is stored.

All methods run on the thread that owns the consumer, except `drop`.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from ingest.assignment import Prepared, Prepares, Preparing
from ingest.kafka_group import GroupWatch

NIL_TOPIC_ID = "00000000-0000-0000-0000-000000000000"
"""Stands for a topic id that the broker does not know of (Kafka before 2.8)."""

_TIMEOUT_MS = 5_000

_log = logging.getLogger(__name__)


class Begin(msgspec.Struct, frozen=True):
    """Where a partition may be read from now on."""

    topic_id: str
    start: int
    prepared: Prepared


class _Step(msgspec.Struct, frozen=True):
    topic_id: str
    start: int
    preparing: Preparing


class Beginnings:
    """Finds each new partition's beginning, and has `before` read back what is stored from there on."""

    def __init__(self, topic: str, before: Prepares, group: GroupWatch) -> None:
        self._topic = topic
        self._before = before
        self._group = group
        self._steps: dict[int, _Step] = {}
        self._from_the_start: set[int] = set()
        self._fresh: Any = None
        self._has_warned = False

    def drop(self, partition: int) -> None:
        """The partition was taken away."""
        step = self._steps.pop(partition, None)
        if step is not None:
            step.preparing.cancel()
        self._from_the_start.discard(partition)

    def begin_anew(self, partition: int, cluster: Any) -> None:
        """Read the partition from its first record, under the id that the topic has now.

        The committed offset belongs to another topic of the same name, or to records that are gone.
        """
        self.drop(partition)
        self._from_the_start.add(partition)
        self._fresh = cluster.request_update()

    def topic_id(self, cluster: Any) -> str:
        """The topic's id as the broker last told it."""
        found = cluster.topic_id(self._topic)
        if found is not None:
            return str(found)
        if not self._has_warned:
            self._has_warned = True
            _log.warning("the broker gives no id for topic %s; a topic made anew is not noticed", self._topic)
        return NIL_TOPIC_ID

    def look(self, tp: Any, consumer: Any, cluster: Any) -> Begin | None:
        """Where `tp` begins, once that is known; the consumer then stands there. Asked again until then.

        Raises KafkaError if Kafka cannot say, and the FatalError that reading back ended with.
        """
        if not self._is_fresh(cluster):
            return None
        partition, topic_id = tp.partition, self.topic_id(cluster)
        step = self._steps.get(partition)
        if step is None or step.topic_id != topic_id:
            step = self._first_step(tp, topic_id, consumer)
        if step is None or not step.preparing.done():
            return None
        prepared = step.preparing.result()
        self._steps.pop(partition, None)
        if prepared.is_offset_foreign:
            self._from_the_start.add(partition)
            return None
        self._from_the_start.discard(partition)
        # Always sought: kafka-python keeps the old position of a partition that we had before the
        # rebalance, and what we dropped on revoke would never be read again.
        consumer.seek(tp, step.start)
        return Begin(topic_id, step.start, prepared)

    def _first_step(self, tp: Any, topic_id: str, consumer: Any) -> _Step | None:
        former = self._steps.pop(tp.partition, None)
        if former is not None:
            # The topic was made anew while its namesake was read back.
            former.preparing.cancel()
            self._from_the_start.add(tp.partition)
        start = None
        if tp.partition not in self._from_the_start:
            committed = consumer.committed(tp, metadata=True, timeout_ms=_TIMEOUT_MS)
            if committed is not None:
                start = committed.offset
                self._group.begins(committed.metadata)
        is_committed = start is not None
        if start is None:
            consumer.seek_to_beginning(tp)
            start = consumer.position(tp, timeout_ms=_TIMEOUT_MS)
        if start is None:
            return None
        preparing = self._before.prepare(
            self._topic, topic_id, tp.partition, start, is_committed=is_committed
        )
        step = _Step(topic_id, start, preparing)
        self._steps[tp.partition] = step
        return step

    def _is_fresh(self, cluster: Any) -> bool:
        """Whether the metadata asked for by `begin_anew` came; before, the topic's id may be the old one."""
        if self._fresh is None or not self._fresh.is_done:
            return self._fresh is None
        if self._fresh.failed():
            self._fresh = cluster.request_update()
            return False
        self._fresh = None
        return True
