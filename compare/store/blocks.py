"""ClickHouse's own compressed blocks, which `compress=1` and `decompress=1` ask for.

A block is CityHash128 of the rest (16 bytes), a method byte, the compressed size with these 9 bytes,
the plain size, and the data (`src/Compression/ICompressionCodec.h` and `CompressedReadBufferBase.cpp`).
The JDBC driver and clickhouse-go read results so.
"""

from __future__ import annotations

import struct

import lz4.block  # type: ignore[import-untyped]
import zstandard

from compare.store.cityhash import cityhash128
from ingest.errors import FatalError

_LZ4, _ZSTD, _NONE = 0x82, 0x90, 0x02
_HEADER = struct.Struct("<BII")
_CHECKSUM = struct.Struct("<QQ")
_PLAIN_BYTES = 1 << 20
_MAX_PLAIN_BYTES = 1 << 30


def pack_blocks(data: bytes) -> bytes:
    """The data as LZ4 blocks of at most 1 MiB each; nothing for nothing."""
    out = bytearray()
    for start in range(0, len(data), _PLAIN_BYTES):
        plain = data[start : start + _PLAIN_BYTES]
        packed = lz4.block.compress(plain, store_size=False)
        body = _HEADER.pack(_LZ4, len(packed) + _HEADER.size, len(plain)) + packed
        out += _CHECKSUM.pack(*cityhash128(body)) + body
    return bytes(out)


def unpack_blocks(data: bytes, limit: int) -> bytes:
    """The plain data of all blocks. Raises FatalError on a broken one, or beyond `limit` bytes."""
    out = bytearray()
    at = 0
    while at < len(data):
        start = at + _CHECKSUM.size
        if start + _HEADER.size > len(data):
            raise FatalError(f"the compressed block at byte {at} is cut off")
        method, size, plain_size = _HEADER.unpack_from(data, start)
        body = data[start : start + size]
        if size < _HEADER.size or len(body) < size:
            raise FatalError(f"the compressed block at byte {at} is cut off")
        if cityhash128(body) != _CHECKSUM.unpack_from(data, at):
            raise FatalError(f"the compressed block at byte {at} has a wrong checksum")
        if plain_size > _MAX_PLAIN_BYTES or len(out) + plain_size > limit:
            raise FatalError(f"the body is over {limit} bytes when decompressed")
        out += _plain(method, body[_HEADER.size :], plain_size, at)
        at = start + size
    return bytes(out)


def _plain(method: int, packed: bytes, plain_size: int, at: int) -> bytes:
    try:
        if method == _LZ4:
            plain: bytes = lz4.block.decompress(packed, uncompressed_size=plain_size)
        elif method == _ZSTD:
            plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=plain_size)
        elif method == _NONE:
            plain = packed
        else:
            raise FatalError(f"the compressed block at byte {at} has the unknown method {method:#x}")
    except (lz4.block.LZ4BlockError, zstandard.ZstdError) as error:
        raise FatalError(f"the compressed block at byte {at} is broken: {error}") from error
    if len(plain) != plain_size:
        raise FatalError(f"the compressed block at byte {at} does not hold {plain_size} bytes")
    return plain
