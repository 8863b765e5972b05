"""The options that every Kafka client of ours shares, and a first look whether a broker is there."""

from __future__ import annotations

import importlib.util
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from ingest.errors import FatalError
from ingest.settings import KafkaSettings

DEFAULT_PORT = 9092


def common_options(settings: KafkaSettings) -> dict[str, Any]:
    """Keyword arguments for any kafka-python 3 client: servers, security, SASL, TLS.

    Raises FatalError when `crc32c` is missing: without it kafka-python computes each record's
    checksum in pure Python, 17 to 26 times slower, and says nothing.
    """
    if importlib.util.find_spec("crc32c") is None:
        raise FatalError(
            "the package crc32c is missing; Kafka would run 20 times slower without it: pip install crc32c"
        )
    options: dict[str, Any] = {
        "bootstrap_servers": list(settings.bootstrap_servers),
        "security_protocol": settings.security_protocol,
        "client_id": "gnomon",
    }
    if settings.security_protocol.startswith("SASL"):
        if settings.username is None or settings.password is None:
            missing = "username" if settings.username is None else "password"
            raise FatalError(
                f"kafka.security_protocol is {settings.security_protocol} and there is no {missing}: "
                f"set GNOMON_KAFKA_{missing.upper()}"
            )
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"] = settings.username
        options["sasl_plain_password"] = settings.password
    if settings.security_protocol.endswith("SSL"):
        options["ssl_check_hostname"] = True
        options["ssl_cafile"] = settings.tls_ca_file
        options["ssl_certfile"] = settings.tls_cert_file
        options["ssl_keyfile"] = settings.tls_key_file
    return options


def require_reachable(servers: Sequence[str], timeout_s: float = 3.0) -> None:
    """Return as soon as one of `servers` (`host:port`) takes a TCP connection.

    Asked before a client is made, because kafka-python tries for half a minute and leaves its
    sockets open when nobody answers. Raises FatalError naming each server and why it failed.
    """
    failures = []
    for server in servers:
        host, port = split_address(server)
        try:
            socket.create_connection((host, port), timeout=timeout_s).close()
        except OSError as error:
            failures.append(f"{server} ({_plain(error)})")
        else:
            return
    raise FatalError(f"no Kafka broker answers at {', '.join(failures)}")


def require_broker(settings: KafkaSettings, timeout_s: float = 3.0) -> None:
    """As `require_reachable`, and with TLS one of the servers must also complete a handshake.

    kafka-python 3.0 waits for ever for a handshake that the other side does not answer, which is
    what a listener without TLS does. Raises FatalError naming each server and why it failed.
    """
    if not settings.security_protocol.endswith("SSL"):
        require_reachable(settings.bootstrap_servers, timeout_s)
        return
    context = _tls_context(settings)
    failures = []
    for server in settings.bootstrap_servers:
        host, port = split_address(server)
        try:
            with (
                socket.create_connection((host, port), timeout=timeout_s) as plain,
                context.wrap_socket(plain, server_hostname=host),
            ):
                return
        except OSError as error:
            failures.append(f"{server} ({_plain(error)})")
    raise FatalError(
        f"no Kafka broker answers with TLS (kafka.security_protocol = {settings.security_protocol}) "
        f"at {', '.join(failures)}"
    )


def split_address(server: str) -> tuple[str, int]:
    """`host:port`, `[v6]:port` or `host` (port 9092) as a pair. Raises FatalError otherwise."""
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise FatalError(f"{server!r} is not the address of a Kafka broker; write host:port")
    return host.strip("[]"), int(port)


def _tls_context(settings: KafkaSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file)
        if settings.tls_cert_file is not None:
            context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
    except OSError as error:
        files = [settings.tls_ca_file, settings.tls_cert_file, settings.tls_key_file]
        names = ", ".join(file for file in files if file is not None)
        raise FatalError(f"kafka: the TLS files {names} cannot be used: {_plain(error)}") from error
    return context


def _plain(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return error.strerror or str(error)
