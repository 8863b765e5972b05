from __future__ import annotations

import importlib.util
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import FatalError
from ingest.kafka_options import common_options, require_broker, require_reachable, split_address
from ingest.settings import KafkaSettings


def test_plaintext() -> None:
    assert common_options(KafkaSettings(bootstrap_servers=["a:1", "b:2"])) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
        "client_id": "gnomon",
    }


def test_sasl_over_tls() -> None:
    options = common_options(
        KafkaSettings(
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512",
            username="u",
            password="hush",
            tls_ca_file="ca.pem",
            tls_cert_file="c.pem",
            tls_key_file="c.key",
        )
    )
    assert options == {
        "bootstrap_servers": ["localhost:9092"],
        "security_protocol": "SASL_SSL",
        "client_id": "gnomon",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "hush",
        "ssl_check_hostname": True,
        "ssl_cafile": "ca.pem",
        "ssl_certfile": "c.pem",
        "ssl_keyfile": "c.key",
    }


def test_every_option_is_one_that_kafka_python_knows() -> None:
    from kafka import KafkaConsumer, KafkaProducer

    options = common_options(KafkaSettings(security_protocol="SASL_SSL", username="u", password="p"))
    assert options.keys() <= KafkaConsumer.DEFAULT_CONFIG.keys()
    assert options.keys() <= KafkaProducer.DEFAULT_CONFIG.keys()


def test_sasl_without_a_password() -> None:
    with pytest.raises(FatalError, match="there is no password: set GNOMON_KAFKA_PASSWORD"):
        common_options(KafkaSettings(security_protocol="SASL_PLAINTEXT", username="u"))


def test_refuses_to_run_without_crc32c(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "crc32c" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(FatalError, match="the package crc32c is missing"):
        common_options(KafkaSettings())


@pytest.mark.parametrize(
    ("server", "pair"),
    [
        ("host:9093", ("host", 9093)),
        ("host", ("host", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
    ],
)
def test_addresses(server: str, pair: tuple[str, int]) -> None:
    assert split_address(server) == pair


@pytest.mark.parametrize("server", ["", ":9092", "host:", "host:x", "host:0", "host:65536", "host:²"])
def test_addresses_that_are_none(server: str) -> None:
    with pytest.raises(FatalError, match="is not the address of a Kafka broker; write host:port"):
        split_address(server)


def test_one_server_of_several_is_enough() -> None:
    with socket.socket() as unused, socket.socket() as listening:
        unused.bind(("127.0.0.1", 0))
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        names = [f"127.0.0.1:{s.getsockname()[1]}" for s in (unused, listening)]
        require_reachable(names)
        with pytest.raises(FatalError, match=rf"no Kafka .* at {names[0]} \(Connection refused\)"):
            require_reachable(names[:1])


def test_unknown_host_is_named() -> None:
    with pytest.raises(FatalError, match=r"no Kafka broker answers at no-such-host\.invalid:9092 \("):
        require_reachable(["no-such-host.invalid:9092"])


def test_tls_against_a_listener_without_tls() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(FatalError) as caught:
            require_broker(KafkaSettings(bootstrap_servers=[address], security_protocol="SSL"))
        thread.join()
    assert str(caught.value) == (
        "no Kafka broker answers with TLS (kafka.security_protocol = SSL) "
        f"at {address} (wrong version number)"
    )


def test_tls_files_that_hold_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    with pytest.raises(FatalError, match=r"kafka: the TLS files .*ca\.pem cannot be used: no certificate"):
        require_broker(KafkaSettings(security_protocol="SSL", tls_ca_file=str(file)))
