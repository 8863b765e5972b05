"""The rows of one compared pair in one piece of memory, from where they are made to where they are stored."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import zstandard

_LARGE_BYTES = 1 << 20
"""From here on it is worth a look whether the same text is in it several times."""
_SAME_TEXT = zstandard.ZstdCompressionParameters.from_level(1, window_log=26, enable_ldm=True)
"""A large prompt is in the request's row and in each side's: this finds it again within 64 MiB."""


class PairRow(NamedTuple):
    """A row of the store. `once` names it where several candidates share it: it is stored once."""

    table: str
    values: dict[str, Any]
    once: tuple[Any, ...] = ()


class PackedRows(msgspec.Struct, frozen=True):
    """All rows of one pair. `attempt_id`, a UUID, joins them."""

    attempt_id: str
    data: bytes
    is_compressed: bool

    @classmethod
    def of(cls, attempt_id: str, rows: Sequence[PairRow]) -> PackedRows:
        """Pack them. They are read again by processes of ours only, of the same version."""
        data = pickle.dumps(tuple(rows), pickle.HIGHEST_PROTOCOL)
        if len(data) < _LARGE_BYTES:
            return cls(attempt_id, data, is_compressed=False)
        packed = zstandard.ZstdCompressor(compression_params=_SAME_TEXT).compress(data)
        return cls(attempt_id, packed, is_compressed=True)

    def rows(self) -> tuple[PairRow, ...]:
        """Undo `of`."""
        data = zstandard.ZstdDecompressor().decompress(self.data) if self.is_compressed else self.data
        rows: tuple[PairRow, ...] = pickle.loads(data)
        return rows

    def __len__(self) -> int:
        """The bytes that they take."""
        return len(self.data)
