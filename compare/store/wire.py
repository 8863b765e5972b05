"""Bytes of the ClickHouse HTTP protocol: encodings, error status, Native headers, insert statements."""

from __future__ import annotations

import email
import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from email.message import Message

import lz4.frame  # type: ignore[import-untyped]
import msgspec
import zstandard

from ingest.errors import FatalError

_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": lambda data: data,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "lz4": lz4.frame.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
    "gzip": lambda data: gzip.compress(data, compresslevel=1),
}
_DECODING_ERRORS = (OSError, EOFError, zlib.error, RuntimeError, zstandard.ZstdError)

# As `exceptionCodeToHTTPStatus` of ClickHouse's HTTP handler; every other code is 500.
_STATUS = {
    **dict.fromkeys((192, 193, 194, 497, 516), 403),
    **dict.fromkeys((6, 26, 27, 36, 38, 41, 42, 43, 44, 53, 62, 70, 72, 115, 321, 456, 457, 636), 400),
    **dict.fromkeys((16, 46, 47, 60, 78, 81), 404),
    159: 408,
    48: 501,
    202: 503,
    223: 413,
}

_INSERT_WITH_DATA = re.compile(
    rb"^(?P<head>\s*INSERT\s+INTO\s.*?)(?P<settings>\sSETTINGS\s.*?)?"
    rb"\s+FORMAT\s+(?P<format>\w+)[ \t]*(?:\r?\n|$)",
    re.IGNORECASE | re.DOTALL,
)


class InsertStatement(msgspec.Struct, frozen=True):
    """`INSERT INTO head [settings] FORMAT format` with its data."""

    head: str
    settings: str
    format: str
    data: bytes

    def from_file(self, path: str) -> str:
        """The same insert, reading its data from a file: the embedded engine takes bytes only so."""
        quoted = path.replace("\\", "\\\\").replace("'", "\\'")
        return f"{self.head} FROM INFILE '{quoted}'{self.settings} FORMAT {self.format}"


def decode_body(data: bytes, encoding: str) -> bytes:
    """The body without its Content-Encoding. Raises FatalError on an unknown or broken one."""
    decoder = _DECODERS.get(encoding.strip().lower() or "identity")
    if decoder is None:
        known = ", ".join(sorted(_DECODERS))
        raise FatalError(f"Content-Encoding {encoding!r} is not supported, use one of: {known}")
    try:
        return decoder(data)
    except _DECODING_ERRORS as error:
        raise FatalError(f"the body is not valid {encoding}: {error}") from error


def encode_body(data: bytes, accepted: str) -> tuple[bytes, str | None]:
    """The body in the first encoding of an Accept-Encoding header that we write, and its name."""
    for part in accepted.split(","):
        name, _, quality = part.strip().lower().partition(";")
        if name in _ENCODERS and quality.replace(" ", "") != "q=0":
            return _ENCODERS[name](data), name
    return data, None


def status_of(code: int) -> int:
    """The HTTP status that a ClickHouse server sends with an error code."""
    return _STATUS.get(code, 500)


def parse_insert(query: str, body: bytes) -> InsertStatement | None:
    """An insert whose data follows in a named format, or None for any other statement.

    The statement is in the `query` parameter, or leads the body.
    """
    found = _INSERT_WITH_DATA.match(query.encode() if query else body)
    if found is None:
        return None
    data = body if query else body[found.end() :]
    if not data:
        return None
    return InsertStatement(
        head=found["head"].decode(),
        settings=(found["settings"] or b"").decode(),
        format=found["format"].decode(),
        data=data,
    )


def parse_form(content_type: str, body: bytes) -> dict[str, str]:
    """Fields of a multipart form, as clickhouse-connect sends long queries and parameters."""
    message = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    fields: dict[str, str] = {}
    for part in message.walk():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(part, Message) and isinstance(payload, bytes):
            fields[name] = payload.decode()
    return fields


def native_header(columns: Sequence[tuple[str, str]]) -> bytes:
    """A Native block without rows: what a server sends for an empty result, and chDB leaves out."""
    out = bytearray(_varint(len(columns)) + _varint(0))
    for text in (text for column in columns for text in column):
        data = text.encode()
        out += _varint(len(data)) + data
    return bytes(out)


def _varint(value: int) -> bytes:
    """LEB128, as ClickHouse writes lengths."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
