"""Bodies of requests and answers: Content-Encoding, Accept-Encoding, and ClickHouse's own blocks."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Protocol

import lz4.frame  # type: ignore[import-untyped]
import zstandard

from compare.store.blocks import pack_blocks, unpack_blocks
from ingest.errors import FatalError

BLOCKS = "blocks"
"""The name here of `compress=1`: no HTTP encoding, but ClickHouse's blocks."""

_SLICE = 4096
"""Compressed bytes taken at once, so that a bomb is seen before it has grown."""


class Encoder(Protocol):
    """Encodes an answer piece by piece; each piece can be read by the client when it arrives."""

    def piece(self, data: bytes) -> bytes:
        """The next bytes of the body."""
        ...

    def end(self) -> bytes:
        """The last bytes of the body."""
        ...


class _Plain:
    def piece(self, data: bytes) -> bytes:
        return data

    def end(self) -> bytes:
        return b""


class _Blocks(_Plain):
    def piece(self, data: bytes) -> bytes:
        return pack_blocks(data)


class _Zlib:
    def __init__(self, window_bits: int) -> None:
        self._stream = zlib.compressobj(1, zlib.DEFLATED, window_bits)

    def piece(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._stream.flush()


class _Lz4:
    def __init__(self) -> None:
        self._stream = lz4.frame.LZ4FrameCompressor(auto_flush=True)
        self._start: bytes = self._stream.begin()

    def piece(self, data: bytes) -> bytes:
        start, self._start = self._start, b""
        return start + bytes(self._stream.compress(data))

    def end(self) -> bytes:
        start, self._start = self._start, b""
        return start + bytes(self._stream.flush())


class _Zstd:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor(level=1).compressobj()

    def piece(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._stream.flush()


_ENCODERS: dict[str, Callable[[], Encoder]] = {
    "lz4": _Lz4,
    "zstd": _Zstd,
    "gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(15),
}

_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(31),
    "deflate": zlib.decompressobj,
    "lz4": lz4.frame.LZ4FrameDecompressor,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj(),
}
_DECODING_ERRORS = (OSError, EOFError, zlib.error, RuntimeError, zstandard.ZstdError)


def accepted_encoding(accepted: str) -> str | None:
    """The encoding of an Accept-Encoding header that the client likes best among those written here."""
    offers: list[tuple[float, str]] = []
    for part in accepted.lower().split(","):
        name, _, quality = part.partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=")) if quality else 1.0
        except ValueError:
            weight = 1.0
        if name.strip() in _ENCODERS and weight > 0:
            offers.append((weight, name.strip()))
    # `max` keeps the first of equals: the client's own order.
    return max(offers, key=lambda offer: offer[0])[1] if offers else None


def encoder_of(name: str | None) -> Encoder:
    """A new encoder by its name; None is plain, `BLOCKS` is `compress=1`."""
    if name is None:
        return _Plain()
    return _Blocks() if name == BLOCKS else _ENCODERS[name]()


def decode_body(data: bytes, encoding: str, *, in_blocks: bool, limit: int) -> bytes:
    """The plain body of a request; `in_blocks` is `decompress=1`.

    Raises FatalError on an unknown or broken encoding, or on more than `limit` plain bytes.
    """
    name = encoding.strip().lower()
    if name not in ("", "identity"):
        data = _decoded(data, name, limit)
    return unpack_blocks(data, limit) if in_blocks else data


def _decoded(data: bytes, name: str, limit: int) -> bytes:
    make = _DECODERS.get(name)
    if make is None:
        known = ", ".join(sorted([*_DECODERS, "identity"]))
        raise FatalError(f"Content-Encoding {name!r} is not supported, use one of: {known}")
    out = bytearray()
    stream = None
    try:
        for start in range(0, len(data), _SLICE):
            rest = data[start : start + _SLICE]
            while rest:
                # A body may be several frames in a row.
                stream = make() if stream is None or stream.eof else stream
                out += stream.decompress(rest)
                rest = stream.unused_data if stream.eof else b""
                if len(out) > limit:
                    raise FatalError(f"the body is over {limit} bytes when decompressed")
    except _DECODING_ERRORS as error:
        raise FatalError(f"the body is not valid {name}: {error}") from error
    if stream is None or not stream.eof:
        raise FatalError(f"the body is not valid {name}: it is cut off")
    return bytes(out)
