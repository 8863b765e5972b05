"""What each decoder yields, and tolerant access to optional fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ingest.errors import DeadLetterError
from ingest.records import ProductionAnswer, ServedBy

_LONGEST_VALUE = 60
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A mirrored request without what Kafka adds (position, times). Fields as in MirroredRequest."""

    request_id: str
    body: dict[str, Any]
    source_format: str
    sent_at: datetime | None = None
    tenant: str = ""
    route: str = ""
    endpoint: str = ""
    production: ProductionAnswer | None = None
    served_by: ServedBy = ServedBy()
    tags: dict[str, str] = {}
    dropped: tuple[str, ...] = ()
    """Optional fields that were of a wrong type and are left out."""


class Fields:
    """One JSON object, read field by field.

    A field that is missing or null is None. An optional one of another type is None too and its
    name goes to `dropped`, which tables inside share.
    """

    def __init__(self, tree: Mapping[str, Any], prefix: str = "", dropped: list[str] | None = None) -> None:
        self.tree = tree
        self.prefix = prefix
        self.dropped: list[str] = [] if dropped is None else dropped

    def drop(self, name: str) -> None:
        """Note that the field `name` could not be used."""
        self.dropped.append(self.prefix + name)

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.tree.get(name)
        if value is None or isinstance(value, str):
            return value
        self.drop(name)
        return None

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self.tree.get(name)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        self.drop(name)
        return None

    def whole(self, name: str) -> int | None:
        """A whole number that fits 32 bits; 200.0 is one."""
        number = self.number(name)
        if number is None:
            return None
        if number.is_integer() and abs(number) < 2**31:
            return int(number)
        self.drop(name)
        return None

    def time(self, name: str) -> datetime | None:
        """An ISO 8601 time with its zone, as UTC."""
        text = self.text(name)
        if text is None:
            return None
        time = parse_time(text)
        if time is None:
            self.drop(name)
        return time

    def unix_time(self, name: str) -> datetime | None:
        """Seconds since 1970, as UTC."""
        seconds = self.number(name)
        if seconds is None:
            return None
        time = from_unix(seconds)
        if time is None:
            self.drop(name)
        return time

    def table(self, name: str) -> Fields | None:
        """An object."""
        value = self.tree.get(name)
        if isinstance(value, dict):
            return Fields(value, f"{self.prefix}{name}.", self.dropped)
        if value is not None:
            self.drop(name)
        return None

    def required_text(self, name: str) -> str:
        """A string that is not empty. Raises DeadLetterError `missing_field` or `wrong_type`."""
        value = self._required(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        if not value:
            raise DeadLetterError("missing_field", f"{self.prefix}{name} is empty")
        return value

    def required_object(self, name: str) -> dict[str, Any]:
        """An object. Raises DeadLetterError `missing_field` or `wrong_type`."""
        value = self._required(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return value

    def wrong(self, name: str, wanted: str) -> DeadLetterError:
        """The error that says that `name` must be `wanted`."""
        value = self.tree.get(name)
        kind = json_type(value)
        return DeadLetterError(
            "wrong_type", f"{self.prefix}{name} is {kind}, it must be {wanted}: {short(value)}"
        )

    def _required(self, name: str) -> Any:
        value = self.tree.get(name)
        if value is None:
            keys = ", ".join(list(self.tree)[:8]) or "none"
            raise DeadLetterError(
                "missing_field", f"{self.prefix}{name} is missing; fields here: {short_text(keys)}"
            )
        return value


def parse_time(text: str) -> datetime | None:
    """An ISO 8601 time with a zone, as UTC; None where it is none or its zone is not known."""
    try:
        time = datetime.fromisoformat(text)
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def from_unix(seconds: float) -> datetime | None:
    """Seconds since 1970 as UTC; None outside the years 2000 to 2200, where the unit is another."""
    if not _EARLIEST <= seconds < _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def as_tag(value: Any) -> str | None:
    """A tag's value: strings as they are, numbers and booleans as in JSON; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return msgspec.json.encode(value).decode()
    return None


def guess_endpoint(body: Mapping[str, Any]) -> str:
    """The path that a body with these fields was most likely sent to; empty if none fits."""
    if "messages" in body:
        return "/v1/chat/completions"
    if "prompt" in body:
        return "/v1/completions"
    if "input" in body:
        return "/v1/responses" if "previous_response_id" in body else "/v1/embeddings"
    return ""


def json_type(value: Any) -> str:
    """The JSON name of a value's type, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names[type(value)]


def short(value: Any) -> str:
    """The start of a value's repr, on one line."""
    return short_text(repr(value))


def short_text(text: str) -> str:
    """The start of a text, on one printable line."""
    line = "".join(character if character.isprintable() else "?" for character in text[: _LONGEST_VALUE + 1])
    return line if len(line) <= _LONGEST_VALUE else line[:_LONGEST_VALUE] + "..."
