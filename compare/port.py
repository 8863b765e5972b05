"""Loopback ports."""

from __future__ import annotations

import socket

from ingest.errors import FatalError


def refuse_taken_port(address: str, port: int) -> None:
    """Raise FatalError, naming the port, if nothing could listen there."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise FatalError(f"cannot listen on {address}:{port}: {error.strerror}; try --port") from error
