"""Breaking off a query that runs in another thread, by shutting the sockets that its answer comes through.

Neither clickhouse-connect nor urllib3 can stop a read that waits. A server, and the owner's port, cancel a
reading query whose client has left.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref

from clickhouse_connect.driver.httputil import check_env_proxy, get_pool_manager_options
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError


class Interrupt:
    """The open sockets of one pool. `now()` may be called from any thread; it leaves the pool of no use."""

    def __init__(self) -> None:
        self._connections: weakref.WeakSet[HTTPConnection] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._is_over = False

    def pool(self, scheme: str, host: str, port: int, *, verify: bool, ca_cert: str | None) -> PoolManager:
        """A pool as clickhouse-connect makes them, through the environment's proxy if it names one."""
        interrupt = self

        class Plain(HTTPConnection):
            def connect(self) -> None:
                interrupt._refuse_if_over(self)
                super().connect()
                interrupt._opened(self)

        class Tls(HTTPSConnection):
            def connect(self) -> None:
                interrupt._refuse_if_over(self)
                super().connect()
                interrupt._opened(self)

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class TlsPool(HTTPSConnectionPool):
            ConnectionCls = Tls

        options = get_pool_manager_options(verify=verify, ca_cert=ca_cert)
        proxy = check_env_proxy(scheme, host, port)
        manager = ProxyManager(proxy, **options) if proxy else PoolManager(**options)
        manager.pool_classes_by_scheme = {"http": PlainPool, "https": TlsPool}
        return manager

    def now(self) -> None:
        """End every call that is under way on the pool, and all later ones, with a lost connection."""
        with self._lock:
            self._is_over = True
            for connection in list(self._connections):
                self._shut(connection)

    def _refuse_if_over(self, connection: HTTPConnection) -> None:
        if self._is_over:
            # What was cut off is tried again by the client.
            raise NewConnectionError(connection, "interrupted")

    def _opened(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._connections.add(connection)
            if self._is_over:
                self._shut(connection)

    @staticmethod
    def _shut(connection: HTTPConnection) -> None:
        if connection.sock is not None:
            # It may have been closed meanwhile, which is as good.
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
