from __future__ import annotations

import io
import json
import os
import signal
import socket
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from compare.demo.broker import EmbeddedBroker, create_topic
from ingest.errors import FatalError
from ingest.mirror import MirrorReport, mirror_lines
from ingest.settings import KafkaSettings


def envelope(number: int, content: str = "hi") -> bytes:
    request = {"model": "m", "messages": [{"role": "user", "content": content}]}
    return json.dumps({"schema": "gnomon.mirror/1", "request_id": f"r-{number}", "request": request}).encode()


def settings(broker: EmbeddedBroker, topic: str, **more: Any) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=[broker.bootstrap], topic=topic, **more)


def quiet(done: int, total: int | None) -> None:
    """Progress is of no interest here."""


def consumed(broker: EmbeddedBroker, topic: str, count: int) -> list[tuple[bytes | None, bytes]]:
    return [(record.key, record.value) for record in records_of(broker, topic, count)]


def records_of(broker: EmbeddedBroker, topic: str, count: int) -> list[Any]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        fetch_max_bytes=40 * 1024 * 1024,
        max_partition_fetch_bytes=40 * 1024 * 1024,
    )
    consumer.assign([TopicPartition(topic, 0)])
    records = [record for _, record in zip(range(count), consumer, strict=False)]
    consumer.close()
    return records


def test_good_lines_are_sent_and_bad_ones_reported_by_number(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "traffic.jsonl"
    lines = [envelope(1), b"{broken", b"", envelope(4) + b"\r", b"[]", envelope(6, "错误码")]
    file.write_bytes(b"\n".join(lines))
    progress: list[tuple[int, int | None]] = []
    report = mirror_lines(file, settings(broker, topic), lambda done, total: progress.append((done, total)))
    assert report == MirrorReport(
        sent=3,
        bad=(
            (
                2,
                "invalid_json: the value is no JSON: Expecting property name enclosed in double quotes "
                "at byte 1 of 7: '{broken'",
            ),
            (5, "not_an_object: the value is an array, it must be an object"),
        ),
        bad_count=2,
    )
    size = file.stat().st_size
    assert progress == [(size, size)]
    assert consumed(broker, topic, 3) == [
        (b"r-1", envelope(1)),
        (b"r-4", envelope(4)),
        (b"r-6", envelope(6, "错误码")),
    ]


def test_times_are_kept_on_request(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    sent = datetime.now(UTC).replace(microsecond=250_000) - timedelta(hours=2)
    timed = {**json.loads(envelope(1)), "sent_at": sent.isoformat()}
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(json.dumps(timed).encode() + b"\n" + envelope(2))
    mirror_lines(file, settings(broker, topic), quiet, keep_times=True)
    mirror_lines(file, settings(broker, topic), quiet)
    ages = [sent.timestamp() * 1000 - record.timestamp for record in records_of(broker, topic, 4)]
    assert ages[0] == 0
    two_hours_ms = 7_200_000
    assert all(-two_hours_ms - 600_000 < age < -two_hours_ms + 1_000 for age in ages[1:])


def test_many_and_large_lines(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    large = envelope(0, "x" * 9_000_000)
    lines = [large, *(envelope(number) for number in range(1, 3001))]
    file.write_bytes(b"\n".join(lines) + b"\n")
    calls: list[int] = []
    report = mirror_lines(file, settings(broker, topic), lambda done, total: calls.append(done))
    assert report == MirrorReport(3001, (), 0)
    assert calls == sorted(calls)
    assert calls[-1] == file.stat().st_size
    assert [value for _, value in consumed(broker, topic, 3001)] == lines


def test_standard_input(broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(envelope(1) + b"\n" + envelope(2))))
    calls: list[int | None] = []
    report = mirror_lines(Path("-"), settings(broker, topic), lambda done, total: calls.append(total))
    assert report == MirrorReport(2, (), 0)
    assert calls == [None]
    assert [key for key, _ in consumed(broker, topic, 2)] == [b"r-1", b"r-2"]


def test_lines_over_the_limits_are_bad_and_the_rest_goes_on(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "traffic.jsonl"
    exact = envelope(2, "y" * 300)
    file.write_bytes(b"\n".join([envelope(1, "x" * 5000), exact, b"z" * 3_000_000, envelope(4)]))
    report = mirror_lines(file, settings(broker, topic, max_record_bytes=len(exact)), quiet)
    assert report.sent == 2
    first = len(envelope(1, "x" * 5000)) + 1
    assert report.bad == (
        (1, f"oversize: the line has {first} bytes, a record at most {len(exact)}"),
        (3, f"oversize: the line has 3000001 bytes, a record at most {len(exact)}"),
    )
    assert [key for key, _ in consumed(broker, topic, 2)] == [b"r-2", b"r-4"]


def test_missing_file_and_folder(broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"cannot read .*no\.jsonl: No such file or directory"):
        mirror_lines(tmp_path / "no.jsonl", settings(broker, topic), quiet)
    with pytest.raises(FatalError, match="cannot read .*: Is a directory"):
        mirror_lines(tmp_path, settings(broker, topic), quiet)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up after one or two seconds instead of 5 and 20."""
    monkeypatch.setattr("ingest.kafka_producer._CONNECT_MS", 1_000)
    monkeypatch.setattr("ingest.kafka_producer.DELIVERY_S", 2.0)
    monkeypatch.setattr("ingest.kafka_producer._REACH_S", 1.0)


@pytest.mark.usefixtures("impatient")
def test_missing_topic_is_not_made(broker: EmbeddedBroker, tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(envelope(1))
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    with pytest.raises(FatalError, match="topic 'gnomon.miror' does not exist on Kafka at 127"):
        mirror_lines(file, settings(broker, "gnomon.miror"), quiet)
    assert "gnomon.miror" not in consumer.topics()
    consumer.close()


def test_nobody_listens(tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(envelope(1))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        nobody = KafkaSettings(bootstrap_servers=[address])
        with pytest.raises(FatalError) as caught:
            mirror_lines(file, nobody, quiet)
    assert str(caught.value) == f"no Kafka broker answers at {address} (Connection refused)"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("PLAINTEXT", "at {}: the port is open; check kafka.security_protocol = PLAINTEXT"),
        ("SSL", "with TLS (kafka.security_protocol = SSL) at {} (timed out)"),
    ],
)
def test_listener_that_does_not_answer(tmp_path: Path, protocol: Any, message: str) -> None:
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(envelope(1))
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(FatalError) as caught:
            mirror_lines(file, KafkaSettings(bootstrap_servers=[address], security_protocol=protocol), quiet)
    assert str(caught.value) == "no Kafka broker answers " + message.format(address)


@pytest.mark.usefixtures("impatient")
def test_wrong_password(tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(envelope(1))
    with EmbeddedBroker(options=["--authentication"]) as guarded:
        refused = settings(
            guarded, "t", security_protocol="SASL_PLAINTEXT", username="gnomon", password="hush"
        )
        with pytest.raises(FatalError) as caught:
            mirror_lines(file, refused, quiet)
    assert str(caught.value) == (
        f"no Kafka broker answers at {refused.bootstrap_servers[0]}: the port is open; "
        "check kafka.security_protocol = SASL_PLAINTEXT and the password of 'gnomon'"
    )


@pytest.mark.usefixtures("impatient")
def test_broker_that_falls_silent_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(b"\n".join(envelope(number, "x" * 1000) for number in range(5000)))
    with EmbeddedBroker() as frozen:
        create_topic(frozen.bootstrap, "t", partitions=1)
        known = settings(frozen, "t")
        try:
            with pytest.raises(FatalError, match=r"^line \d+ cannot be sent, \d+ lines before it were: "):
                mirror_lines(file, known, lambda done, total: os.kill(frozen.pid, signal.SIGSTOP))
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
