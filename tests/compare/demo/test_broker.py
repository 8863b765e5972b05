from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from compare.demo.broker import EmbeddedBroker, create_topic
from ingest.errors import FatalError


def _is_alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_for_end(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _is_alive(pid)


def test_large_record_goes_through(broker: EmbeddedBroker, topic: str) -> None:
    value = os.urandom(1024) * (4 * 1024)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, max_request_size=20 * 1024 * 1024)
    producer.send(topic, value).get(timeout=10)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", fetch_max_bytes=20 * 1024 * 1024
    )
    consumer.assign([TopicPartition(topic, 0)])
    record = next(iter(consumer))
    consumer.close()
    assert record.value == value
    assert record.offset == 0


def test_topic_has_the_partitions_asked_for_and_survives_a_second_create(broker: EmbeddedBroker) -> None:
    create_topic(broker.bootstrap, "three-partitions", partitions=3)
    create_topic(broker.bootstrap, "three-partitions", partitions=5)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (described,) = admin.describe_topics(["three-partitions"])
    admin.close()
    assert sorted(p["partition_index"] for p in described["partitions"]) == [0, 1, 2]


def test_listens_on_loopback_only(broker: EmbeddedBroker) -> None:
    host, port = broker.bootstrap.split(":")
    assert host == "127.0.0.1"
    wanted = f"0100007F:{int(port):04X}"
    listening = [
        line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if line.split()[3] == "0A"
    ]
    assert wanted in listening
    assert f"00000000:{int(port):04X}" not in listening


def test_stop_ends_the_process_and_can_be_repeated() -> None:
    running = EmbeddedBroker()
    running.start()
    pid = running.pid
    assert _is_alive(pid)
    running.stop()
    running.stop()
    assert not _is_alive(pid)
    with pytest.raises(FatalError, match="not running"):
        _ = running.bootstrap


def test_outlives_the_thread_that_started_it() -> None:
    running = EmbeddedBroker()
    starter = threading.Thread(target=running.start)
    starter.start()
    starter.join()
    try:
        create_topic(running.bootstrap, "after-the-thread", partitions=1)
        assert _is_alive(running.pid)
    finally:
        running.stop()


def test_dies_with_a_killed_parent() -> None:
    script = (
        "import time\n"
        "from compare.demo.broker import EmbeddedBroker\n"
        "b = EmbeddedBroker(); b.start(); print(b.pid, flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _is_alive(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert _wait_for_end(pid)


def test_taken_port_is_one_clear_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(FatalError, match=f"127.0.0.1:{port}.*in use") as caught:
            EmbeddedBroker(port).start()
    assert "\n" not in str(caught.value)


def test_missing_binary_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALF_TANSU_BIN", "no-such-folder/tansu")
    with pytest.raises(FatalError, match="no-such-folder/tansu"):
        EmbeddedBroker().start()


def test_program_that_ends_at_once_is_reported_with_its_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "tansu"
    program.write_text("#!/bin/sh\necho 'no such engine' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(program))
    with pytest.raises(FatalError, match="code 3: no such engine"):
        EmbeddedBroker().start()


def test_no_broker_to_create_a_topic_on() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(FatalError, match=f"no Kafka broker answers at 127.0.0.1:{port}"):
            create_topic(f"127.0.0.1:{port}", "x", partitions=1)


def test_a_trial_broker_holds_its_topics_until_it_is_told_to_end() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "compare.demo.broker", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(f"127.0.0.1:{port}: in memory")
            again = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert again.returncode == 1
            assert again.stderr.startswith(f"gnomon: the broker cannot listen on 127.0.0.1:{port}")
            admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
            assert {"gnomon.mirror", "gnomon.dead"} <= set(admin.list_topics())
            admin.close()
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=20) == ("", "")
            assert process.returncode == 0
        finally:
            # Else a failed assertion would wait for its end.
            process.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
