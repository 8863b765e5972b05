"""Gaps before the next record: which part of them retention made. The real broker shows it in
`tests/integration/test_kept_broker.py`; here is what a broker does that goes away just then."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka import errors as kafka_errors

from ingest.retention import removed_until

TP = TopicPartition("t", 3)


class Consumer:
    def __init__(self, beginning: int | Exception) -> None:
        self._beginning = beginning

    def beginning_offsets(
        self, partitions: list[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, int]:
        if isinstance(self._beginning, Exception):
            raise self._beginning
        return dict.fromkeys(partitions, self._beginning)


@pytest.mark.parametrize(
    ("beginning", "end"),
    [
        # The log begins before the gap, in it, at its end, and beyond: it was cut again meanwhile.
        (0, 10),
        (15, 15),
        (20, 20),
        (40, 20),
    ],
)
def test_only_what_lies_below_the_beginning_of_the_log_was_removed(beginning: int, end: int) -> None:
    assert removed_until(Consumer(beginning), TP, 10, 20) == end


def test_a_broker_that_does_not_say_leaves_it_open_and_told(caplog: pytest.LogCaptureFixture) -> None:
    assert removed_until(Consumer(kafka_errors.KafkaTimeoutError("5 s")), TP, 10, 20) == 10
    assert "offsets 10 to 19 were not delivered, and the broker does not say" in caplog.text
