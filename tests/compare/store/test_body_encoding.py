"""Encodings of bodies, each against the library that clients use for it."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable

import lz4.block  # type: ignore[import-untyped]
import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard

from compare.store.blocks import pack_blocks, unpack_blocks
from compare.store.body_encoding import accepted_encoding, decode_body, encoder_of
from compare.store.cityhash import cityhash128
from ingest.errors import FatalError

TEXT = b"SELECT 1; " * 30_000
LIMIT = 1_000_000

ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "lz4": lz4.frame.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
DECODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "lz4": lz4.frame.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def block(method: int, packed: bytes, plain_size: int) -> bytes:
    body = struct.pack("<BII", method, len(packed) + 9, plain_size) + packed
    return struct.pack("<QQ", *cityhash128(body)) + body


@pytest.mark.parametrize("name", ENCODE)
def test_every_encoding_of_requests_is_read_in_one_frame_or_two(name: str) -> None:
    encode = ENCODE[name]
    assert decode_body(encode(TEXT), name.upper(), in_blocks=False, limit=LIMIT) == TEXT
    assert decode_body(encode(b"a") + encode(b"b"), name, in_blocks=False, limit=LIMIT) == b"ab"
    assert decode_body(encode(pack_blocks(TEXT)), name, in_blocks=True, limit=LIMIT) == TEXT


@pytest.mark.parametrize("name", ENCODE)
def test_a_body_that_is_cut_off_or_too_long_is_refused(name: str) -> None:
    with pytest.raises(FatalError, match=f"not valid {name}: it is cut off"):
        decode_body(ENCODE[name](TEXT)[:-1], name, in_blocks=False, limit=LIMIT)
    with pytest.raises(FatalError, match="over 1000 bytes when decompressed"):
        decode_body(ENCODE[name](TEXT), name, in_blocks=False, limit=1000)


@pytest.mark.parametrize("name", DECODE)
def test_every_encoding_of_answers_can_be_read(name: str) -> None:
    encoder = encoder_of(name)
    pieces = [encoder.piece(TEXT), encoder.piece(b"end")]
    assert DECODE[name](b"".join(pieces) + encoder.end()) == TEXT + b"end"


@pytest.mark.parametrize("name", [None, *DECODE])
def test_an_empty_answer_is_empty(name: str | None) -> None:
    encoder = encoder_of(name)
    whole = encoder.piece(b"") + encoder.end()
    assert (DECODE[name](whole) if name else whole) == b""


@pytest.mark.parametrize(
    ("accepted", "name"),
    [
        ("lz4,zstd,gzip,deflate", "lz4"),
        ("br, gzip;q=0.5, zstd;q=0.9", "zstd"),
        ("gzip;q=0, identity", None),
        ("GZIP", "gzip"),
        ("br", None),
        ("", None),
    ],
)
def test_the_client_chooses_among_what_is_written(accepted: str, name: str | None) -> None:
    assert accepted_encoding(accepted) == name


def test_blocks_of_each_method_are_read_and_answers_are_written_in_blocks_of_a_mebibyte() -> None:
    body = block(0x82, lz4.block.compress(b"one", store_size=False), 3)
    body += block(0x90, zstandard.ZstdCompressor().compress(b"two"), 3) + block(0x02, b"three", 5)
    assert unpack_blocks(body, LIMIT) == b"onetwothree"
    long = b"x" * (2**20 + 1)
    packed = pack_blocks(long)
    first_size = struct.unpack_from("<I", packed, 17)[0]
    assert struct.unpack_from("<I", packed, 21)[0] == 2**20
    assert struct.unpack_from("<I", packed, 16 + first_size + 21)[0] == 1
    assert unpack_blocks(packed, 2 * LIMIT) == long


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"SELECT 1", "cut off"),
        (block(0x02, b"three", 5)[:-1], "cut off"),
        (b"\x00" + block(0x02, b"three", 5)[1:], "wrong checksum"),
        (block(0x02, b"three", 4), "does not hold 4 bytes"),
        (block(0x82, b"three", 50), "is broken|does not hold"),
        (block(0x77, b"three", 5), "unknown method 0x77"),
        (block(0x82, lz4.block.compress(TEXT, store_size=False), 2**30), "over 1000000 bytes"),
    ],
)
def test_a_broken_block_is_named(body: bytes, words: str) -> None:
    with pytest.raises(FatalError, match=words):
        unpack_blocks(body, LIMIT)
