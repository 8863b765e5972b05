"""Pieces of ClickHouse's Native format as bytes: numbers, texts, dictionaries of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.errors import FatalError
from ingest.packed_texts import varint

LOW_CARDINALITY_VERSION = 1
_HAS_KEYS, _NEW_DICTIONARY = 1 << 9, 1 << 10
_CODES = ("u1", "<u2", "<u4", "<u8")

Numbers = npt.NDArray[Any]


def u64(value: int) -> bytes:
    """A number of 64 bits, its low byte first."""
    return value.to_bytes(8, "little")


def text(value: bytes) -> bytes:
    """A text with its length before it."""
    return varint(len(value)) + value


def even_strings(values: Numbers) -> bytes:
    """Texts of one length, a row of `values` (n, length) each."""
    before = np.frombuffer(varint(values.shape[1]), dtype="u1")
    out = np.empty((len(values), len(before) + values.shape[1]), dtype="u1")
    out[:, : len(before)] = before
    out[:, len(before) :] = values
    return out.tobytes()


def word_strings(words: Iterable[str], codes: Numbers) -> bytes:
    """The words that the codes name, each with its length before it; a negative code is an empty one."""
    known = [text(word.encode()) for word in words]
    _check_codes(codes, len(known), lowest=-1)
    # A negative code counts from the end.
    known.append(varint(0))
    return b"".join(map(known.__getitem__, codes.tolist()))


def dictionary(words: Sequence[str], codes: Numbers, *, is_nullable: bool) -> list[bytes]:
    """A LowCardinality column: its words once, and a code a row. A negative code is NULL."""
    if not len(codes):
        return []
    _check_codes(codes, len(words), lowest=-1 if is_nullable else 0)
    encoded = [word.encode() for word in words]
    if is_nullable:
        # The first entry stands for NULL.
        encoded = [b"", *encoded]
    size = next(size for size in range(4) if len(encoded) <= 1 << (8 << size))
    kept = codes.astype(_CODES[size], copy=False)
    if is_nullable:
        # Wraps from the largest code to 0 where it is NULL.
        kept = kept + np.array(1, dtype=_CODES[size])
    return [
        u64(size | _HAS_KEYS | _NEW_DICTIONARY),
        u64(len(encoded)),
        b"".join(map(text, encoded)),
        u64(len(codes)),
        kept.tobytes(),
    ]


def _check_codes(codes: Numbers, words: int, *, lowest: int) -> None:
    if len(codes) and (codes.min() < lowest or codes.max() >= words):
        raise FatalError(f"a code of {codes.min()} to {codes.max()} is outside {words} words")
