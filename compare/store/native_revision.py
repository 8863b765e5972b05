"""Native blocks as a client of a later protocol revision wants them.

chDB writes Native at revision 0. With `client_protocol_version` a server puts a block header before each
block and, from revision 54454, a byte for the serialization after each column's type
(`src/Formats/NativeWriter.cpp` and `src/Core/ProtocolDefines.h`). clickhouse-go, and so Grafana, needs that.
"""

from __future__ import annotations

from compare.store.native_sizes import Cursor, skip_column

_WITH_CUSTOM_SERIALIZATION = 54454
# Field 1 (is_overflows) false, field 2 (bucket_num) -1, end of fields.
_BLOCK_HEADER = b"\x01\x00\x02\xff\xff\xff\xff\x00"
_DEFAULT_SERIALIZATION = b"\x00"


def at_revision(blocks: bytes, revision: int) -> bytes:
    """Whole Native blocks of revision 0, rewritten for `revision` (0: unchanged).

    Raises FatalError for a column whose type cannot be measured, or for bytes that are no such blocks.
    """
    if revision <= 0 or not blocks:
        return blocks
    cursor = Cursor(blocks)
    out = bytearray()
    while cursor.at < len(blocks):
        out += _BLOCK_HEADER
        copied = cursor.at
        columns, rows = cursor.varint(), cursor.varint()
        for _ in range(columns):
            cursor.text()
            type_name = cursor.text()
            if revision >= _WITH_CUSTOM_SERIALIZATION:
                out += blocks[copied : cursor.at] + _DEFAULT_SERIALIZATION
                copied = cursor.at
            if rows:
                skip_column(cursor, type_name, rows)
        out += blocks[copied : cursor.at]
    return bytes(out)
