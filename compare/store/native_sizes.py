"""How many bytes a column takes in ClickHouse's Native format, without reading its values.

The layouts are those of `src/DataTypes/Serializations` in the ClickHouse sources.
"""

from __future__ import annotations

import re

from ingest.errors import FatalError

_FIXED = {
    **dict.fromkeys(("Int8", "UInt8", "Bool", "Enum8", "Nothing"), 1),
    **dict.fromkeys(("Int16", "UInt16", "Enum16", "Date", "BFloat16"), 2),
    **dict.fromkeys(("Int32", "UInt32", "Float32", "Date32", "DateTime", "Time", "IPv4", "Decimal32"), 4),
    **dict.fromkeys(("Int64", "UInt64", "Float64", "DateTime64", "Time64", "Decimal64"), 8),
    **dict.fromkeys(("Int128", "UInt128", "UUID", "IPv6", "Decimal128"), 16),
    **dict.fromkeys(("Int256", "UInt256", "Decimal256"), 32),
}
_TYPE = re.compile(r"^(\w+)(?:\((.*)\))?$", re.DOTALL)
_NAMED = re.compile(r"^(?:`(?:[^`\\]|\\.|``)*`|[A-Za-z_]\w*)\s+(?=[A-Z])")
_PIECE = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.|``)*`|.", re.DOTALL)


class Cursor:
    """A place in the bytes of Native blocks. Raises FatalError past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def skip(self, size: int) -> None:
        """Go over `size` bytes."""
        self.at += size
        if self.at > len(self._data):
            raise FatalError("a Native block is cut off")

    def number(self, size: int) -> int:
        """A little-endian number of `size` bytes."""
        start = self.at
        self.skip(size)
        return int.from_bytes(self._data[start : self.at], "little")

    def varint(self) -> int:
        """A LEB128 number."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> str:
        """A string with its length before it."""
        size = self.varint()
        start = self.at
        self.skip(size)
        return self._data[start : self.at].decode()

    def skip_strings(self, count: int) -> None:
        """Go over `count` strings; most are shorter than 128 bytes."""
        data, at = self._data, self.at
        try:
            for _ in range(count):
                size = data[at]
                if size < 0x80:
                    at += size + 1
                else:
                    self.at = at
                    size = self.varint()
                    at = self.at + size
        except IndexError as error:
            raise FatalError("a Native block is cut off") from error
        self.at = at
        self.skip(0)


def skip_column(cursor: Cursor, type_name: str, rows: int) -> None:
    """Move past a column of `rows` > 0 values. Raises FatalError for a type that is not known here."""
    _skip_prefix(cursor, type_name)
    _skip_values(cursor, type_name, rows)


def _parts(type_name: str) -> tuple[str, list[str]]:
    """The type's name and the types in its brackets."""
    found = _TYPE.match(type_name.strip())
    if found is None:
        raise FatalError(f"a column of type {type_name} cannot be sent at this client_protocol_version")
    name, inside = found.group(1), found.group(2)
    if inside is None or name in _FIXED or name in ("FixedString", "Decimal"):
        return name, []
    if name in ("SimpleAggregateFunction",):
        return name, _split(inside)[1:]
    return name, [_NAMED.sub("", part.strip()) for part in _split(inside)]


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _skip_prefix(cursor: Cursor, type_name: str) -> None:
    """LowCardinality, at any depth, writes its version before all data of the column."""
    name, inner = _parts(type_name)
    if name == "LowCardinality":
        cursor.skip(8)
        return
    for part in inner:
        _skip_prefix(cursor, part)


def _skip_values(cursor: Cursor, type_name: str, rows: int) -> None:
    name, inner = _parts(type_name)
    if rows == 0:
        return
    if name in _FIXED or name.startswith("Interval"):
        cursor.skip(_FIXED.get(name, 8) * rows)
    elif name == "String":
        cursor.skip_strings(rows)
    elif name in ("FixedString", "Decimal"):
        cursor.skip(_sized(type_name) * rows)
    elif name == "Nullable":
        cursor.skip(rows)
        _skip_values(cursor, inner[0], rows)
    elif name in ("Array", "Map", "Nested"):
        cursor.skip(8 * (rows - 1))
        items = cursor.number(8)
        for part in inner:
            _skip_values(cursor, part, items)
    elif name in ("Tuple", "SimpleAggregateFunction"):
        for part in inner:
            _skip_values(cursor, part, rows)
    elif name == "LowCardinality":
        _skip_low_cardinality(cursor, inner[0])
    else:
        raise FatalError(f"a column of type {type_name} cannot be sent at this client_protocol_version")


def _skip_low_cardinality(cursor: Cursor, type_name: str) -> None:
    # The dictionary holds the bare type; its first key stands for NULL.
    name, inner = _parts(type_name)
    index_bytes = 1 << (cursor.number(8) & 0xFF)
    _skip_values(cursor, inner[0] if name == "Nullable" else type_name, cursor.number(8))
    cursor.skip(index_bytes * cursor.number(8))


def _sized(type_name: str) -> int:
    """Bytes of a FixedString(N) or a Decimal(P, S)."""
    size = int(re.findall(r"\d+", type_name)[0])
    if type_name.startswith("FixedString"):
        return size
    return 4 if size <= 9 else 8 if size <= 18 else 16 if size <= 38 else 32
