"""One open way to a store."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal

import lz4.frame  # type: ignore[import-untyped]
import msgspec
from clickhouse_connect.driver.client import Client


class Connection(msgspec.Struct, frozen=True):
    """One way to the store that is open now; `where` names it for people."""

    client: Client
    where: str
    on_close: Callable[[], None] = lambda: None
    interrupt: Callable[[], None] = lambda: None
    place: Literal["here", "loopback", "far"] = "here"

    def close(self) -> None:
        """Close what this connection opened."""
        self.client.close()
        self.on_close()

    def body(self, parts: list[bytes]) -> bytes | Generator[bytes, None, None]:
        """What is sent: compressed if far, for a network is slower than LZ4, memory and loopback are not."""
        if self.place == "here":
            # Written to a file piece by piece: joined first, a block takes its size in memory once more.
            return (part for part in parts)
        return lz4.frame.compress(b"".join(parts)) if self.place == "far" else b"".join(parts)
