"""Dead letters in the store: found, read whole, and marked once they were sent again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from compare.row_values import milliseconds
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.kafka_reread import reread
from ingest.records import RawRecord, SourcePosition
from ingest.resend import resend
from ingest.settings import KafkaSettings

_DIGEST = b'{"gnomon.redacted":'
_MARK_AT_ONCE = 500
_NEWEST_FIRST = "ORDER BY dead_letters_v1.ingested_at DESC, topic_id, `partition`, `offset`, source"


class LetterFilter(msgspec.Struct, frozen=True):
    """Which letters are meant; each field that is set narrows it. `since` is UTC."""

    experiment: str | None = None
    reason: str | None = None
    since: datetime | None = None
    positions: tuple[str, ...] = ()
    """`partition/offset`, or `topic_id/partition/offset`."""
    is_waiting: bool = False
    """Only those that were not sent again yet."""


class DeadLetter(msgspec.Struct, frozen=True):
    """One row of `dead_letters_v1`. `record` is the record as it is stored: see `is_whole`."""

    experiment: str
    record: RawRecord
    source: str
    reason: str
    detail: str
    request_id: str
    ingested_at: datetime
    is_redacted: bool
    schema_guess: str
    replayed_at: datetime | None

    @property
    def place(self) -> str:
        """`topic[partition]@offset`."""
        position = self.record.position
        return f"{position.topic}[{position.partition}]@{position.offset}"

    @property
    def is_whole(self) -> bool:
        """Whether `record` has the bytes that Kafka delivered.

        The row of a table is something else, and a redacted record lacks some.
        """
        return self.source == "record" and not self.is_redacted

    @property
    def is_digest(self) -> bool:
        """Whether redaction left nothing but a digest of the value."""
        return self.is_redacted and (self.record.value or b"").startswith(_DIGEST)


class LetterLine(msgspec.Struct, frozen=True):
    """What a list shows of a letter, without its bytes: they may be many. `size` is of the value."""

    topic: str
    partition: int
    offset: int
    ingested_at: datetime
    reason: str
    looks_like: str
    size: int
    detail: str
    replayed_at: datetime | None


class Unsendable(msgspec.Struct, frozen=True):
    """A letter that cannot be sent again, and why."""

    letter: DeadLetter
    why: str


def letter_lines(store: Store, wanted: LetterFilter, *, limit: int) -> list[LetterLine]:
    """Return the letters' lines, newest first. Raises FatalError where a position is not written as one."""
    conditions, parameters = _conditions(wanted)
    sql = f"""
        SELECT topic, `partition`, `offset`, toUnixTimestamp64Milli(dead_letters_v1.ingested_at), reason,
               if(schema_guess = '', source, schema_guess), length(ifNull(value, '')), detail,
               toUnixTimestamp64Milli(dead_letters_v1.replayed_at)
        FROM dead_letters_v1
        WHERE {" AND ".join(conditions) or "1"}
        {_NEWEST_FIRST}
        LIMIT {limit:d}
    """
    return [
        LetterLine(
            topic=topic,
            partition=partition,
            offset=offset,
            ingested_at=_time(ingested),
            reason=reason,
            looks_like=looks_like,
            size=size,
            detail=detail,
            replayed_at=None if replayed is None else _time(replayed),
        )
        for topic, partition, offset, ingested, reason, looks_like, size, detail, replayed in store.query(
            sql, parameters
        )
    ]


def letter_positions(store: Store, wanted: LetterFilter) -> list[str]:
    """Return where the letters are, each position once, as `LetterFilter.positions` takes them."""
    conditions, parameters = _conditions(wanted)
    sql = f"""
        SELECT DISTINCT topic_id, `partition`, `offset` FROM dead_letters_v1
        WHERE {" AND ".join(conditions) or "1"}
        ORDER BY topic_id, `partition`, `offset`
    """
    return ["/".join(map(str, row)) for row in store.query(sql, parameters)]


def find_letters(store: Store, wanted: LetterFilter) -> list[DeadLetter]:
    """Return the letters whole, newest first: ask for a few, their bytes may be many.

    Raises FatalError where a position is not written as one.
    """
    conditions, parameters = _conditions(wanted)
    sql = f"""
        SELECT experiment, topic, topic_id, `partition`, `offset`, source, reason, detail, request_id,
               kafka_timestamp_ms, hex(`key`), hex(value), arrayMap(h -> (h.1, hex(h.2)), headers),
               toUnixTimestamp64Milli(ingested_at), is_redacted, schema_guess,
               toUnixTimestamp64Milli(replayed_at)
        FROM dead_letters_v1
        WHERE {" AND ".join(conditions) or "1"}
        {_NEWEST_FIRST}
    """
    return [_letter(row) for row in store.query(sql, parameters)]


def count_letters(store: Store, wanted: LetterFilter) -> list[tuple[str, str, int, int]]:
    """Return (reason, guess, letters, of these not sent again) for each kind, the most frequent first."""
    conditions, parameters = _conditions(wanted)
    sql = f"""
        SELECT reason, schema_guess, count() AS letters, countIf(isNull(replayed_at))
        FROM dead_letters_v1
        WHERE {" AND ".join(conditions) or "1"}
        GROUP BY reason, schema_guess
        ORDER BY letters DESC, reason, schema_guess
    """
    return [(str(row[0]), str(row[1]), int(row[2]), int(row[3])) for row in store.query(sql, parameters)]


def records_to_send(
    letters: Sequence[DeadLetter], kafka: KafkaSettings, *, allow_redacted: bool
) -> tuple[list[RawRecord], list[Unsendable]]:
    """Return the records of the letters, each once and with its original bytes, and what cannot be sent.

    A letter whose bytes are not the record's own (the row of a table, a redacted record) is read again from
    Kafka. Where Kafka no longer has it, `allow_redacted` sends a redacted record as it is stored.
    Raises FatalError if Kafka is needed and away.
    """
    whole = {letter.record.position: letter.record for letter in letters if letter.is_whole}
    others = {letter.record.position: letter for letter in letters if letter.record.position not in whole}
    refused = []
    for position, again in reread(kafka, list(others)):
        letter = others[position]
        if again is not None:
            whole[position] = again
        elif letter.is_redacted and letter.source == "record" and allow_redacted and not letter.is_digest:
            whole[position] = letter.record
        else:
            refused.append(Unsendable(letter, _why_not(letter, allow_redacted=allow_redacted)))
    return [whole[position] for position in sorted(whole)], refused


def send_again(
    store: Store, records: Iterable[RawRecord], kafka: KafkaSettings, *, keep_times: bool
) -> Iterator[RawRecord]:
    """Send the records to the mirror topic, mark their letters, and yield each that is sent.

    A kill between the two leaves some unmarked: sent again, they are skipped as duplicates.
    Raises FatalError if the broker is away or refuses; what was sent by then is marked.
    """
    unmarked: list[SourcePosition] = []
    try:
        for record, _ in resend(records, kafka, keep_times=keep_times):
            unmarked.append(record.position)
            if len(unmarked) == _MARK_AT_ONCE:
                mark_replayed(store, unmarked, datetime.now(UTC))
                unmarked = []
            yield record
    finally:
        mark_replayed(store, unmarked, datetime.now(UTC))


def mark_replayed(store: Store, positions: Iterable[SourcePosition], now: datetime) -> None:
    """Note in every letter of these positions that its record was sent again at `now` (UTC)."""
    keys = [(position.topic_id, position.partition, position.offset) for position in positions]
    if not keys:
        return
    # A later version of the same row: the table keeps the latest.
    store.command(
        """
        INSERT INTO dead_letters
        SELECT * REPLACE (
            fromUnixTimestamp64Milli({now:Int64}, 'UTC') AS replayed_at,
            version + 1 AS version
        )
        FROM dead_letters FINAL
        WHERE (topic_id, `partition`, `offset`) IN {keys:Array(Tuple(String, UInt32, UInt64))}
        """,
        {"now": milliseconds(now), "keys": keys},
    )


def _why_not(letter: DeadLetter, *, allow_redacted: bool) -> str:
    if letter.source != "record":
        return "only its row is stored, and Kafka no longer has the record"
    if letter.is_digest:
        return "redaction left only a digest of it, and Kafka no longer has the record"
    assert not allow_redacted
    return "it was redacted and Kafka no longer has the record; --redacted sends it as it is stored"


def _conditions(wanted: LetterFilter) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    # Written with the view's name: an alias of the SELECT would hide the column.
    for name in ("experiment", "reason"):
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(f"dead_letters_v1.{name} = {{{name}:String}}")
            parameters[name] = value
    if wanted.since is not None:
        conditions.append("dead_letters_v1.ingested_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')")
        parameters["since"] = milliseconds(wanted.since)
    if wanted.is_waiting:
        conditions.append("isNull(dead_letters_v1.replayed_at)")
    if wanted.positions:
        choices = []
        for number, (topic_id, partition, offset) in enumerate(map(_position, wanted.positions)):
            choice = f"`partition` = {{p{number}:UInt32}} AND `offset` = {{o{number}:UInt64}}"
            parameters |= {f"p{number}": partition, f"o{number}": offset}
            if topic_id is not None:
                choice += f" AND topic_id = {{t{number}:String}}"
                parameters[f"t{number}"] = topic_id
            choices.append(f"({choice})")
        conditions.append(f"({' OR '.join(choices)})")
    return conditions, parameters


def _position(written: str) -> tuple[str | None, int, int]:
    parts = written.split("/")
    numbers = parts[-2:]
    if len(parts) not in (2, 3) or not all(number.isascii() and number.isdigit() for number in numbers):
        raise FatalError(f"{written!r} is no position: write partition/offset, or topic_id/partition/offset")
    partition, offset = int(numbers[0]), int(numbers[1])
    if partition >= 2**32 or offset >= 2**63:
        raise FatalError(f"{written!r} is no position: the number is too large")
    return (parts[0] if len(parts) == 3 else None), partition, offset


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    (experiment, topic, topic_id, partition, offset, source, reason, detail, request_id) = row[:9]
    (timestamp_ms, key, value, headers, ingested_ms, is_redacted, guess, replayed_ms) = row[9:]
    record = RawRecord(
        SourcePosition(topic, topic_id, partition, offset),
        -1 if timestamp_ms is None else timestamp_ms,
        _bytes(key),
        _bytes(value),
        tuple((name, bytes.fromhex(content)) for name, content in headers),
    )
    return DeadLetter(
        experiment=experiment,
        record=record,
        source=source,
        reason=reason,
        detail=detail,
        request_id=request_id,
        ingested_at=_time(ingested_ms),
        is_redacted=bool(is_redacted),
        schema_guess=guess,
        replayed_at=None if replayed_ms is None else _time(replayed_ms),
    )


def _bytes(hexadecimal: str | None) -> bytes | None:
    return None if hexadecimal is None else bytes.fromhex(hexadecimal)


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
