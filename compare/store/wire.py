"""Bytes of the ClickHouse HTTP protocol: insert statements, forms, Native headers."""

from __future__ import annotations

import email
import re
from collections.abc import Sequence
from email.message import Message

import msgspec

from ingest.packed_texts import strings, varint

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
    written = strings([text.encode() for column in columns for text in column])
    return varint(len(columns)) + varint(0) + written
