"""An answer that breaks off after its first block, from the real port through a proxy that closes."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest

from compare.store import Store, open_store
from compare.store.lockfile import read_owner
from ingest.errors import RetryError
from ingest.settings import StoreSettings

LET_THROUGH = 1_000_000
LONG = "SELECT number, randomPrintableASCII(1000) FROM numbers(20000) SETTINGS max_block_size = 500"


def _forward(source: socket.socket, sink: socket.socket, limit: int | None) -> None:
    passed = 0
    with contextlib.suppress(OSError):
        while (data := source.recv(65536)) and (limit is None or passed + len(data) <= limit):
            sink.sendall(data)
            passed += len(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _cutting(listener: socket.socket, target: tuple[str, int]) -> None:
    """Forward connections, each until `LET_THROUGH` bytes were answered, until the listener is shut."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client, socket.create_connection(target) as server:
            asking = threading.Thread(target=_forward, args=(client, server, None))
            asking.start()
            _forward(server, client, LET_THROUGH)
            asking.join()


def test_an_answer_that_breaks_off_is_a_store_that_went_away(
    migrated_store: Store, store_settings: StoreSettings
) -> None:
    owner = read_owner(Path(store_settings.url.removeprefix("chdb://")))
    assert owner is not None
    host, port = owner.url.removeprefix("http://").split(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = threading.Thread(target=_cutting, args=(listener, (host, int(port))))
        proxy.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = StoreSettings(url=url, username="default", password=owner.writer_token)
        try:
            with open_store(settings, role="any") as store:
                assert store.query("SELECT 1").rows == [(1,)]
                with pytest.raises(RetryError, match="connection closed by server"):
                    store.query(LONG)
                # The next query makes a connection of its own.
                assert store.query("SELECT 2").rows == [(2,)]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            proxy.join()
