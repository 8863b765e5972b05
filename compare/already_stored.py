"""Whether a delivered record is in the store already, whole or in part."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from compare.read_back import StoredKey
from compare.row_values import text
from ingest.decode import decode, oversize
from ingest.errors import DeadLetterError
from ingest.kafka_prepare import NIL_TOPIC_ID
from ingest.records import RawRecord, SourcePosition

_log = logging.getLogger(__name__)


class Finds(Protocol):
    """`compare.read_back.ReadBack`."""

    async def find(self, position: SourcePosition) -> StoredKey | None:
        """What is stored of a position."""


class Settled(msgspec.Struct, frozen=True):
    """What a delivered record needs yet: nothing (`is_whole`), or pairs for all but these candidates."""

    is_whole: bool
    candidates: frozenset[str] = frozenset()


class AlreadyStored:
    """Holds a delivered record against what was read back of its position."""

    def __init__(
        self, read_back: Finds, candidates: Sequence[str], keyed: Callable[[bytes], str] | None = None
    ) -> None:
        """`keyed` is the redactor's hash, if rows are redacted before they are stored."""
        self._read_back = read_back
        self._candidates = frozenset(candidates)
        self._keyed = keyed

    async def look(self, record: RawRecord, now: datetime) -> Settled | None:
        """What is still to be done for a delivered record; None if nothing of it is stored.

        Raises as `ReadBack.find`.
        """
        stored = await self._read_back.find(record.position)
        if stored is None:
            return None
        try:
            mirrored = decode(record, now) if oversize(record) is None else None
        except DeadLetterError:
            mirrored = None
        if mirrored is None:
            return self.match(record.position, stored, "", None)
        return self.match(record.position, stored, mirrored.request_id, mirrored.request_hash)

    def match(
        self, position: SourcePosition, stored: StoredKey, request_id: str, request_hash: str | None
    ) -> Settled | None:
        """What is still to be done for a record; None if what is stored is of another one.

        `request_id` is empty and `request_hash` None for a record that cannot be decoded.
        """
        mine = {request_hash}
        if self._keyed is not None and request_hash is not None:
            mine.add(self._keyed(request_hash.encode()))
        candidates = frozenset(candidate for candidate, digest in stored.pairs if digest in mine)
        if candidates >= self._candidates:
            return Settled(True)
        if stored.has_outcome and self._is_same(position, stored, request_id):
            return Settled(True)
        if candidates:
            return Settled(False, candidates)
        _log.error(
            "%s[%d]@%d: another record is stored at this position (topic id %s); this one is processed "
            "and replaces it", position.topic, position.partition, position.offset, position.topic_id,
        )  # fmt: skip
        return None

    def _is_same(self, position: SourcePosition, stored: StoredKey, request_id: str) -> bool:
        """Other outcomes keep no hash, and dead letters not even an id: with a topic id the place tells."""
        if position.topic_id == NIL_TOPIC_ID:
            return stored.outcome_id != "" and stored.outcome_id == text(request_id)
        return self._keyed is not None or stored.outcome_id in ("", text(request_id))
