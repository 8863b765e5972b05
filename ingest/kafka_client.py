"""kafka-python's network client, with three gaps of version 3.0 closed.

- A refused password goes to a connection's `init_future` and never into the cache of authentication
  failures, so kafka-python tries the same password until the time is out and then says that nobody
  answers. Here the next attempt at that node raises the refusal.
- When the first connection fails, thread and sockets are left behind. `Clients.close` ends them.
- A connection that is closed while bytes wait to be sent keeps its socket: it is to be closed once they are
  sent, and the loop that would send them ends first. Here the client's `close` closes it.
"""

from __future__ import annotations

from typing import Any

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient


class Clients:
    """A factory for the option `kafka_client` that keeps what it made, and the last error seen."""

    def __init__(self) -> None:
        self.last_error: BaseException | None = None
        self._made: list[Any] = []
        self._refusals: dict[Any, BaseException] = {}

    def __call__(self, **config: Any) -> Any:
        """Make a client: called by KafkaConsumer or KafkaProducer."""
        client = KafkaNetClient(**config)
        manager = client._manager
        plain = manager.get_connection

        def get_connection(node_id: Any, *arguments: Any, **options: Any) -> Any:
            if node_id in self._refusals:
                raise self._refusals[node_id]
            connection = plain(node_id, *arguments, **options)
            connection.init_future.add_errback(lambda error: self._note(node_id, error))
            return connection

        close_client = client.close

        def close(node_id: Any = None) -> None:
            close_client(node_id)
            # Those that were closed whole are gone from there.
            left = list(manager._conns.values()) if node_id is None else []
            for transport in (connection.transport for connection in left):
                if transport is not None and transport._sock is not None:
                    transport._sock.close()

        manager.get_connection = get_connection
        client.close = close
        self._made.append(client)
        return client

    @property
    def cluster(self) -> Any:
        """The metadata of the client made last."""
        return self._made[-1].cluster

    def close(self) -> None:
        """Close every client. For a constructor that failed; else the consumer closes its own."""
        for client in self._made:
            client.close()

    def _note(self, node_id: Any, error: BaseException) -> None:
        self.last_error = error
        if isinstance(error, kafka_errors.SaslAuthenticationFailedError | kafka_errors.AuthorizationError):
            self._refusals[node_id] = error
