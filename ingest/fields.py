"""A JSON object whose values are decoded only when they are asked for.

The dialects beside OpenAI's have a handful of keys that matter and lists of logprobs that may be long: those
stay bytes until each of their entries is read, and entries beyond the limit are never decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ingest.errors import DeadLetterError
from ingest.notes import odd
from ingest.tolerant_json import clean_text, loads
from ingest.wire import MAX_FAST_BYTES, Entry
from ingest.wire_lenient import as_float, as_int, count_of, encoded

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[Entry])
_TEXT = msgspec.json.Decoder(str)
_NOT_SOUND = (msgspec.MsgspecError, ValueError, RecursionError)


class Fields:
    """The keys of one JSON object. No method raises: what has another type than asked is as if absent."""

    def __init__(self, values: dict[str, msgspec.Raw], notes: dict[str, None]) -> None:
        self._values = values
        self._notes = notes

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def raw(self, key: str) -> msgspec.Raw | None:
        """Return a value as it stands in the text."""
        return self._values.get(key)

    def is_text(self, key: str, quoted: bytes) -> bool:
        """Whether a value is a string written just so, quotes and all."""
        raw = self._values.get(key)
        return raw is not None and bytes(raw) == quoted

    def is_null(self, key: str) -> bool:
        """Whether a key is absent or null."""
        raw = self._values.get(key)
        return raw is None or bytes(raw) == b"null"

    def value(self, key: str) -> Any:
        """Decode a value whatever it is; None if absent."""
        raw = self._values.get(key)
        return None if raw is None else decoded(raw, self._notes)

    def text(self, key: str) -> str | None:
        """Take a text; anything else gets a code."""
        raw = self._values.get(key)
        if raw is None:
            return None
        try:
            return _TEXT.decode(raw)
        except _NOT_SOUND:
            value = decoded(raw, self._notes)
        if value is None or isinstance(value, str):
            return value
        self._notes[odd(key)] = None
        return None

    def name(self, key: str) -> str:
        """Take a token's text as it can be written in UTF-8; empty if absent."""
        value = self.value(key)
        return clean_text(value, self._notes) if isinstance(value, str) else ""

    def count(self, key: str) -> int | None:
        """Take a number of tokens."""
        return count_of(self.value(key), self._notes)

    def id(self, key: str) -> int | None:
        """Take a token's id."""
        number = as_int(self.value(key))
        return number if number is not None and 0 <= number < 2**31 else None

    def number(self, key: str) -> float | None:
        """Take a number, also one written as text."""
        return as_float(self.value(key))

    def flag(self, key: str) -> bool:
        """Whether a value is true."""
        return self.value(key) is True

    def object(self, key: str) -> Fields | None:
        """Take an object."""
        raw = self._values.get(key)
        return None if raw is None else fields_of(raw, self._notes)

    def entries(self, key: str) -> Sequence[Entry | msgspec.Raw]:
        """Take entries in the chat shape, decoded if all are sound and they are not too many at once."""
        raw = self._values.get(key)
        if raw is None:
            return ()
        data = memoryview(raw)
        if len(data) <= MAX_FAST_BYTES:
            try:
                entries = _ENTRIES.decode(data)
            except _NOT_SOUND:
                entries = None
            # Entries of another shape decode too, to nothing.
            if entries is not None and all(entry.logprob is not None for entry in entries):
                return entries
        return items_of(raw, self._notes) or ()

    def list(self, key: str) -> list[msgspec.Raw] | None:
        """Take a list, its items not decoded."""
        raw = self._values.get(key)
        return None if raw is None else items_of(raw, self._notes)


def fields_if_sound(data: bytes, notes: dict[str, None]) -> Fields | None:
    """Open a JSON object, None if it is none that a strict reader takes."""
    try:
        return Fields(_OBJECT.decode(data), notes)
    except _NOT_SOUND:
        return None


def fields_of(data: bytes | msgspec.Raw, notes: dict[str, None]) -> Fields | None:
    """Open a JSON object, None if it is none."""
    try:
        return Fields(_OBJECT.decode(data), notes)
    except _NOT_SOUND:
        value = decoded(data, notes)
    if not isinstance(value, dict):
        return None
    return Fields({key: encoded(item) for key, item in value.items()}, notes)


def items_of(data: bytes | msgspec.Raw, notes: dict[str, None]) -> list[msgspec.Raw] | None:
    """Open a JSON list, None if it is none."""
    try:
        return _LIST.decode(data)
    except _NOT_SOUND:
        value = decoded(data, notes)
    return [encoded(item) for item in value] if isinstance(value, list) else None


def decoded(data: bytes | msgspec.Raw, notes: dict[str, None]) -> Any:
    """Decode JSON tolerantly, None if it is none."""
    try:
        return loads(bytes(data), notes)
    except DeadLetterError:
        return None
