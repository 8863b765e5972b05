"""Send captured traffic, one record a line, to the mirror topic."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec
from kafka import errors as kafka_errors

from ingest.decode import decode, oversize
from ingest.errors import DeadLetterError, FatalError
from ingest.kafka_errors import judge
from ingest.kafka_producer import DELIVERY_S, HEADROOM_BYTES, open_producer
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from ingest.settings import KafkaSettings

MAX_REPORTED_LINES = 10_000
"""Bad lines beyond this many are counted, not listed."""

_WINDOW_RECORDS = 2_000
_WINDOW_BYTES = 64 * 1024 * 1024
_PROGRESS_BYTES = 64 * 1024

OnProgress = Callable[[int, int | None], None]


class MirrorReport(msgspec.Struct, frozen=True):
    """How many lines the broker has, and the others with their line number (from 1) and reason."""

    sent: int
    bad: tuple[tuple[int, str], ...]
    bad_count: int


def mirror_lines(
    path: Path, settings: KafkaSettings, on_progress: OnProgress, *, keep_times: bool = False
) -> MirrorReport:
    """Validate each line of `path` (`-` is standard input) and send the good ones.

    Empty lines are passed over. A record's key is its request id. `on_progress` gets the bytes
    read so far and the file's size, None if that is not known. Memory stays bounded, whatever the
    size of the file or of a line. With `keep_times` a record's Kafka time is its `sent_at`; a broker
    drops at once what is older than the topic's retention.

    Raises FatalError if the file cannot be read, the topic does not exist, or no broker answers.
    """
    with _opened(path) as (stream, size), open_producer(settings) as producer:
        return _Run(settings, producer, keep_times).send_all(stream, size, on_progress)


class _Run:
    """The state of one `mirror_lines`."""

    def __init__(self, settings: KafkaSettings, producer: Any, keep_times: bool) -> None:
        self._settings = settings
        self._keep_times = keep_times
        self._producer = producer
        self._in_flight: deque[tuple[int, int, Any]] = deque()
        self._bytes_in_flight = 0
        self._sent = 0
        self._bad: list[tuple[int, str]] = []
        self._bad_count = 0

    def send_all(self, stream: IO[bytes], size: int | None, on_progress: OnProgress) -> MirrorReport:
        done = shown = 0
        for number, length, line in _lines(stream, self._settings.max_record_bytes):
            done += length
            if line is None:
                limit = self._settings.max_record_bytes
                self._refuse(number, f"oversize: the line has {length} bytes, a record at most {limit}")
            elif line and not line.isspace():
                self._take(number, line)
            if done - shown >= _PROGRESS_BYTES:
                shown = done
                on_progress(done, size)
        while self._in_flight:
            self._settle_oldest()
        on_progress(done, size)
        return MirrorReport(self._sent, tuple(sorted(self._bad)), self._bad_count)

    def _time_of(self, mirrored: MirroredRequest) -> int | None:
        """Kafka's time for the record, Unix milliseconds; None lets the producer take the present."""
        if not self._keep_times or mirrored.sent_at is None:
            return None
        return round(mirrored.sent_at.timestamp() * 1000)

    def _take(self, number: int, line: bytes) -> None:
        now = datetime.now(UTC)
        position = SourcePosition(self._settings.topic, "file", 0, number)
        record = RawRecord(position, round(now.timestamp() * 1000), None, line)
        skipped = oversize(record)
        if skipped is not None:
            self._refuse(number, f"{skipped.reason}: {skipped.detail}")
            return
        try:
            mirrored = decode(record, now)
        except DeadLetterError as error:
            self._refuse(number, f"{error.reason}: {error}")
            return
        try:
            future = self._producer.send(
                self._settings.topic,
                key=mirrored.request_id.encode("utf-8"),
                value=line,
                timestamp_ms=self._time_of(mirrored),
            )
        except kafka_errors.MessageSizeTooLargeError as error:
            self._refuse(number, f"oversize: {error}")
            return
        except kafka_errors.KafkaError as error:
            raise self._gave_up(number, error) from error
        self._in_flight.append((number, len(line), future))
        self._bytes_in_flight += len(line)
        while len(self._in_flight) > _WINDOW_RECORDS or self._bytes_in_flight > _WINDOW_BYTES:
            self._settle_oldest()

    def _settle_oldest(self) -> None:
        number, length, future = self._in_flight.popleft()
        self._bytes_in_flight -= length
        try:
            future.get(timeout=DELIVERY_S + 5)
        except kafka_errors.MessageSizeTooLargeError:
            topic = self._settings.topic
            self._refuse(
                number, f"oversize: the broker refuses {length} bytes; raise max.message.bytes of {topic!r}"
            )
        except kafka_errors.KafkaError as error:
            raise self._gave_up(number, error) from error
        else:
            self._sent += 1

    def _refuse(self, number: int, reason: str) -> None:
        self._bad_count += 1
        if len(self._bad) < MAX_REPORTED_LINES:
            self._bad.append((number, reason))

    def _gave_up(self, number: int, error: Exception) -> FatalError:
        return FatalError(
            f"line {number} cannot be sent, {self._sent} lines before it were: {judge(error, self._settings)}"
        )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], int | None]]:
    try:
        if str(path) == "-":
            with nullcontext(sys.stdin.buffer) as stream:
                yield stream, None
        else:
            with path.open("rb") as stream:
                yield stream, path.stat().st_size if path.is_file() else None
    except OSError as error:
        # kafka-python's errors are none of these: only the file raises OSError in here.
        raise FatalError(f"cannot read {path}: {error.strerror}") from error


def _lines(stream: IO[bytes], limit: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Number, length with its end, and content of each line; None for one longer than `limit`."""
    number = 0
    while True:
        line = stream.readline(limit + 2)
        if not line:
            return
        number += 1
        length = len(line)
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(content) <= limit:
            yield number, length, content
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(HEADROOM_BYTES)
            length += len(line)
        yield number, length, None
