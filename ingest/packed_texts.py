"""Many short texts in one piece of memory, each behind its length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

_SHORT = [bytes((length,)) for length in range(128)]


class PackedTexts(msgspec.Struct, frozen=True):
    """`count` texts in UTF-8, one behind the other, each with its length in bytes (LEB128) before it.

    ClickHouse's Native format writes them so: they are stored as they are.
    """

    count: int
    data: bytes

    @classmethod
    def of(cls, texts: Iterable[str]) -> PackedTexts:
        """Pack them, each as `utf8` has it."""
        encoded = list(map(utf8, texts))
        return cls(len(encoded), strings(encoded))

    def listed(self) -> list[str]:
        """Undo `of`."""
        data, at, texts = self.data, 0, []
        for _ in range(self.count):
            length = shift = 0
            while (byte := data[at]) >= 0x80:
                length |= (byte & 0x7F) << shift
                shift, at = shift + 7, at + 1
            length |= byte << shift
            texts.append(data[at + 1 : at + 1 + length].decode())
            at += 1 + length
        return texts

    def __len__(self) -> int:
        return self.count


def utf8(text: str) -> bytes:
    """The text as UTF-8 can carry it: surrogate pairs joined, lone surrogates as U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def varint(value: int) -> bytes:
    """A LEB128 number."""
    if value < 0x80:
        return _SHORT[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def strings(values: Sequence[bytes]) -> bytes:
    """Each text with its length before it."""
    lengths = set(map(len, values))
    if len(lengths) == 1:
        # Hashes and ids: the same length before each.
        before = varint(lengths.pop())
        return before + before.join(values)
    if max(lengths, default=0) < len(_SHORT):
        before_each = map(_SHORT.__getitem__, map(len, values))
        return b"".join(chain.from_iterable(zip(before_each, values, strict=True)))
    return b"".join([varint(len(value)) + value for value in values])
