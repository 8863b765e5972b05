"""What is wrong with records, through the whole chain: broken, repeated, reordered, misdated, with gaps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.consumer.fetcher import Fetcher

from compare.run import run_service
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

HOUR_MS = 3_600_000
YEAR_33658_MS = 1_000_000_000_000_000
"""What a producer writes that gives microseconds where Kafka wants milliseconds."""

BROKEN: dict[str, tuple[bytes | None, ...]] = {
    "empty_value": (None, b"", b" \n"),
    "invalid_utf8": (b'{"model": "\xff\xfe"}',),
    "invalid_json": (b"{", b"\x00\x01\x02", b"nothing"),
    "too_deep": (b'{"schema": ' + b"[" * 5000 + b"]" * 5000 + b"}",),
    "not_an_object": (b"[1, 2]", b"7"),
    "missing_field": (b'{"schema": "gnomon.mirror/1", "request_id": "x"}', b'{"hello": 1}'),
    "wrong_type": (b'{"schema": "gnomon.mirror/1", "request_id": "x", "request": []}',),
    "unknown_schema": (b'{"schema": "gnomon.mirror/9", "request_id": "x", "request": {}}',),
}


class Sent(NamedTuple):
    """One record to produce."""

    value: bytes | None
    timestamp_ms: int | None = None
    partition: int = 0


def produce(bench: Bench, records: Sequence[Sent], **options: Any) -> None:
    """Send them in this order, each with a key and a header."""
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap, **options)
    for record in records:
        producer.send(
            bench.topic,
            record.value,
            key=b"\xffkey",
            headers=[("trace", b"\x00\xff")],
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )
    producer.flush()
    producer.close()


def accounted(bench: Bench) -> tuple[object, ...]:
    (row,) = bench.rows(
        "SELECT consumed, compared, skipped, failed, dead_lettered, unaccounted FROM accounting_v1"
    )
    return row


def test_malformed_repeated_and_reordered_records_end_once_each(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    broken = [(reason, value) for reason, values in BROKEN.items() for value in values]
    now_ms = int(time.time() * 1000)
    lone = rb'{"schema": "gnomon.mirror/1", "request_id": "lone", "request": {"model": "m", "messages": '
    lone += rb'[{"role": "user", "content": "half \ud83d of it"}]}}'
    good = [
        # As two producers and a retry leave them: neither times nor ids are in order.
        Sent(envelope("r2", "say 2"), now_ms),
        Sent(envelope("r1", "say 1"), now_ms - 60_000),
        Sent(envelope("r2", "say 2"), now_ms + 10),
        Sent(envelope("r3", "say 3"), now_ms - 30_000),
        Sent(envelope("r1", "another text under the same id"), now_ms - 90_000),
        Sent(lone),
        Sent(lone.replace(b'"lone"', b'"raw"').replace(rb"\ud83d", b"\xed\xa0\xbd")),
    ]
    records = [*good[:3], *(Sent(value) for _, value in broken), *good[3:]]
    produce(bench, records)
    report = run_service(bench.settings, stop_when=lambda c: c.outcomes >= len(records))

    assert (report.compared, report.skipped, report.failed) == (5, {"duplicate": 2}, {})
    assert accounted(bench) == (len(records), 5, 2, 0, len(broken), 0)
    assert bench.committed() == len(records)
    first = 3 + len(broken)
    compared = bench.rows("SELECT offset, request_id, has_lone_surrogates FROM requests_v1 ORDER BY offset")
    assert compared == [
        (0, "r2", False),
        (1, "r1", False),
        (first, "r3", False),
        (first + 2, "lone", True),
        (first + 3, "raw", True),
    ]
    assert bench.rows(
        "SELECT offset, detail FROM outcomes_v1 WHERE reason = 'duplicate' ORDER BY offset"
    ) == [
        (2, "first seen at partition 0 offset 0"),
        (first + 1, "first seen at partition 0 offset 1"),
    ]
    # Each model was asked once a request, and with text that is Unicode.
    for stub in stubs:
        assert sorted(stub.calls)[0].startswith("half \ufffd")
        assert sorted(stub.calls)[2:] == ["say 1", "say 2", "say 3"]

    letters = bench.rows("SELECT offset, reason, value, key, headers FROM dead_letters_v1 ORDER BY offset")
    assert [(offset, reason) for offset, reason, *_ in letters] == [
        (3 + n, reason) for n, (reason, _) in enumerate(broken)
    ]
    sent = {
        int(headers["gnomon.offset"]): (value, headers) for value, headers in bench.dead_letters(len(broken))
    }
    for n, (reason, value) in enumerate(broken):
        got, headers = sent[3 + n]
        assert (got, headers["trace"], headers["gnomon.reason"]) == (value, b"\x00\xff", reason.encode())


def test_wrong_clocks_are_clamped_and_told_and_do_not_fool_shedding(bench: Bench) -> None:
    now_ms = int(time.time() * 1000)
    # In time but for some producers: hours late and early, years, none at all.
    odd_ms = {
        "late": now_ms - 5 * HOUR_MS,
        "early": now_ms + 5 * HOUR_MS,
        "year 33658": YEAR_33658_MS,
        "1970": 0,
        "seconds": now_ms // 1000,
        "a week early": now_ms + 24 * 8 * HOUR_MS,
    }
    in_time = [Sent(envelope(f"a{n}", f"say a{n}"), now_ms) for n in range(16)]
    in_time += [Sent(envelope(name, f"say {name}"), odd) for name, odd in odd_ms.items()]
    in_time += [Sent(envelope(f"b{n}", f"say b{n}"), now_ms) for n in range(16)]
    # Far behind: clocks that say otherwise save nobody but themselves, and those without a time nobody.
    behind = [Sent(envelope(f"c{n}", f"say c{n}"), now_ms - 5 * HOUR_MS) for n in range(16)]
    behind += [Sent(envelope("behind, 33658"), YEAR_33658_MS), Sent(envelope("behind, 1970"), 0)]
    behind += [Sent(envelope("behind, early"), now_ms + 5 * HOUR_MS)]
    behind += [Sent(envelope(f"d{n}", f"say d{n}"), now_ms - 5 * HOUR_MS) for n in range(16)]

    shedding = msgspec.structs.replace(bench.settings.delivery, max_lag_s=3600.0)
    settings = msgspec.structs.replace(bench.settings, delivery=shedding)
    produce(bench, in_time)
    began = datetime.now(UTC) - timedelta(seconds=1)
    report = run_service(settings, stop_when=lambda c: c.outcomes >= len(in_time))
    assert (report.compared, report.skipped) == (len(in_time), {})

    week = timedelta(days=7)
    expected = {
        "late": (timedelta(hours=-5), False),
        "early": (timedelta(hours=5), False),
        "year 33658": (week, True),
        "1970": (-week, True),
        "seconds": (-week, True),
        "a week early": (week, True),
        "a0": (timedelta(0), False),
    }
    rows = {
        str(name): (mirrored_at, ingested_at, is_suspect)
        for name, *rest in bench.rows(
            "SELECT request_id, mirrored_at, ingested_at, is_clock_suspect FROM pairs_v1"
        )
        for mirrored_at, ingested_at, is_suspect in [rest]
    }
    for name, (shift, is_suspect) in expected.items():
        mirrored_at, ingested_at, was_suspect = rows[name]
        assert isinstance(mirrored_at, datetime) and isinstance(ingested_at, datetime)
        assert was_suspect == is_suspect, name
        # Rows lie in the day on which they were taken up, whatever the record says.
        assert began <= ingested_at.astimezone(UTC) <= datetime.now(UTC)
        slack = timedelta(0) if is_suspect else timedelta(minutes=10)
        assert abs(mirrored_at - ingested_at - shift) <= slack, name

    produce(bench, behind)
    again = run_service(settings, stop_when=lambda c: c.outcomes >= len(behind))
    shed = {name for (name,) in bench.rows("SELECT request_id FROM outcomes_v1 WHERE reason = 'shed'")}
    assert {"behind, 33658", "behind, 1970", *(f"d{n}" for n in range(16))} <= shed
    assert "behind, early" not in shed
    assert again.compared == 1 and again.skipped == {"shed": len(behind) - 1}
    total = len(in_time) + len(behind)
    assert accounted(bench) == (total, len(in_time) + 1, len(behind) - 1, 0, 0, 0)


def test_gaps_of_transactions_and_compaction_are_committed_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tansu writes the markers and does not name aborted transactions; and it compacts nothing.

    So the names of what was aborted are added where kafka-python looks for them, and what a compaction would
    have taken is taken out of what the broker gives.
    """
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap, transactional_id=bench.topic)
    producer.init_transactions()
    for name in ("a", "aborted", "c"):
        producer.begin_transaction()
        for n in range(3):
            producer.send(bench.topic, envelope(f"{name}{n}", f"say {name}{n}"), partition=0)
        producer.flush()
        if name == "aborted":
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer_id = producer._transaction_manager.producer_id_and_epoch.producer_id
    producer.close()

    class Aborted(NamedTuple):
        producer_id: int
        first_offset: int

    begin = Fetcher.PartitionRecords.__init__

    def told(self: Any, *positional: Any, **named: Any) -> None:
        begin(self, *positional, **{**named, "aborted_transactions": [Aborted(producer_id, 4)]})

    poll = KafkaConsumer.poll

    def compacted(self: Any, *positional: Any, **named: Any) -> Any:
        polled = poll(self, *positional, **named)
        return {tp: kept for tp, of in polled.items() if (kept := [r for r in of if r.offset not in (0, 9)])}

    monkeypatch.setattr(Fetcher.PartitionRecords, "__init__", told)
    monkeypatch.setattr(KafkaConsumer, "poll", compacted)
    # 0-2 and a marker, 4-6 aborted and a marker, 8-10 and a marker; 0 and 9 compacted.
    report = run_service(bench.settings, stop_when=lambda c: c.outcomes >= 4)
    assert report.consumed == report.compared == 4
    assert bench.rows("SELECT offset, request_id FROM pairs_v1 ORDER BY offset") == [
        (1, "a1"),
        (2, "a2"),
        (8, "c0"),
        (10, "c2"),
    ]
    assert bench.committed() == 12
    assert accounted(bench) == (4, 4, 0, 0, 0, 0)

    bench.produce([envelope("after", "say after")])
    again = run_service(bench.settings, stop_when=lambda c: c.outcomes >= 1)
    assert (again.consumed, again.already_stored, again.compared) == (1, 0, 1)
    assert bench.rows("SELECT sum(records), max(end_offset) FROM delivered_ranges_v1") == [(5, 13)]
    assert accounted(bench) == (5, 5, 0, 0, 0, 0)
