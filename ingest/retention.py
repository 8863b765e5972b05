"""Offsets that Kafka removed before they were read, told from the gaps that a log has anyway."""

from __future__ import annotations

import logging
from typing import Any

from kafka import errors as kafka_errors

_TIMEOUT_MS = 5_000

_log = logging.getLogger(__name__)


def removed_until(consumer: Any, tp: Any, expected: int, found: int) -> int:
    """The end of what retention removed of [`expected`, `found`), a gap before the next record.

    `expected` if nothing was: transaction markers and compaction leave gaps above the beginning of the log,
    retention moves the beginning. Asks the broker; if it does not say, that is logged, and nothing counts
    as removed.
    """
    try:
        beginning = consumer.beginning_offsets([tp], timeout_ms=_TIMEOUT_MS)[tp]
    except kafka_errors.KafkaError as error:
        _log.warning(
            "partition %d of %s: offsets %d to %d were not delivered, and the broker does not say whether "
            "retention removed them (%s)", tp.partition, tp.topic, expected, found - 1, type(error).__name__,
        )  # fmt: skip
        return expected
    end = max(expected, min(int(beginning), found))
    if end > expected:
        _log.error(
            "partition %d of %s: offsets %d to %d were removed by retention before they were read",
            tp.partition, tp.topic, expected, end - 1,
        )  # fmt: skip
    return end
