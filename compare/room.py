"""How many bytes of records may be under way at once."""

from __future__ import annotations

import asyncio

from compare.stages import Source
from ingest.hand_over import Delivered, record_bytes


class Room:
    """Bytes of records that were taken up and are not settled yet. One may always go, whatever its size.

    A record is held several times over on its way (decoded, as sent to each side, in rows), so that
    the memory of a run is some times this. For the tasks of one loop.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = 0
        self._given_back = asyncio.Event()
        self._taking = asyncio.Lock()

    async def next_of(self, source: Source) -> Delivered:
        """Take the next record, and room for it. One caller at a time: who waits for room holds a record."""
        async with self._taking:
            delivered = await source.get()
            await self.take(record_bytes(delivered.record))
        return delivered

    async def take(self, size: int) -> None:
        """Wait until there is room for `size` bytes, and take it."""
        while self._held and self._held + size > self._max_bytes:
            self._given_back.clear()
            await self._given_back.wait()
        self._held += size

    def give_back(self, size: int) -> None:
        """Give back what was taken."""
        self._held -= size
        self._given_back.set()
