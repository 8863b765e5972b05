"""One redaction rule, compiled: what it finds in bytes, and which rules are refused.

Patterns are RE2's. Requests are written by strangers, and Python's own `re` (as any engine that goes back
over its steps) can be held up for years by forty characters; a time limit would then have to drop either the
record or the redaction. RE2 takes time in proportion to the text, whatever text and pattern, and refuses
what it cannot do so (look-around, back references, huge repetitions) when the rule is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import re2

from ingest.json_path import ANY, DESCEND, Step, parse_path
from ingest.settings import RedactionAction, RedactionRule

MAX_PATTERN_CHARACTERS = 2_000
ROOTS = ("request", "response", "answer", "tags", "headers", "tenant", "route", "endpoint", "request_id")
"""What a path may begin with: the envelope's fields, `answer` for each endpoint's own, Kafka's `headers`."""

_STRENGTH: dict[RedactionAction, int] = {"hash": 0, "mask": 1, "drop": 2}
_SECRET_GROUP = b"secret"
_STRING = {
    ord('"'): re.compile(rb'"(?:[^"\\]++|\\.)*+', re.DOTALL),
    ord("'"): re.compile(rb"'(?:[^'\\]++|\\.)*+", re.DOTALL),
}
_SCALAR = re.compile(rb"[^,}\]\s]*+")
_BRACKET = re.compile(rb"""["\[\]{}]""")


class Found(NamedTuple):
    """A span that a rule takes out. `is_bare` says that it is a JSON value without quotes of its own."""

    start: int
    end: int
    action: RedactionAction
    is_bare: bool = False


def stronger(one: RedactionAction, other: RedactionAction) -> RedactionAction:
    """Of two actions, the one that leaves less."""
    return one if _STRENGTH[one] >= _STRENGTH[other] else other


class PatternRule:
    """A regular expression. With a group named `secret`, only that group is taken out."""

    def __init__(self, pattern: str, action: RedactionAction) -> None:
        """Raises ValueError, in words, where the pattern is refused."""
        if len(pattern) > MAX_PATTERN_CHARACTERS:
            raise ValueError(f"has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS} are allowed")
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled: Any = re2.compile(pattern.encode(), options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise ValueError(
                f"is refused ({text}); RE2's syntax has no look-around and no back references, so that no "
                "text can make it slow"
            ) from error
        if self._compiled.search(b"") is not None:
            raise ValueError("matches the empty text, so it would match everywhere")
        self._group = self._compiled.groupindex.get(_SECRET_GROUP, 0)
        self.action: RedactionAction = action

    def find(self, data: bytes) -> Iterator[Found]:
        """Every match, none of them empty."""
        for match in self._compiled.finditer(data):
            start, end = match.span(self._group)
            if end > start:
                yield Found(start, end, self.action)


class FieldRule:
    """A field's name, in any case, in JSON at any depth and in text that looks like JSON."""

    def __init__(self, name: str, action: RedactionAction) -> None:
        if not name.strip():
            raise ValueError("is empty")
        self.name = name.casefold()
        self.action: RedactionAction = action
        options = re2.Options()
        options.log_errors = False
        quoted = re2.escape(name)
        self._key: Any = re2.compile(f"(?i)[\"']{quoted}[\"']\\s*:\\s*".encode(), options)

    def find(self, data: bytes) -> Iterator[Found]:
        """The values of the field; a text that ends within one counts to its end. Linear in `data`."""
        at = 0
        while (match := self._key.search(data, at)) is not None:
            start = match.end()
            first = data[start] if start < len(data) else None
            if first in _STRING:
                start, end, is_bare = start + 1, _STRING[first].match(data, start).end(), False  # type: ignore[union-attr]
            elif first in (ord("{"), ord("[")):
                end, is_bare = _closed(data, start), True
            else:
                end, is_bare = _SCALAR.match(data, start).end(), True  # type: ignore[union-attr]
            if end > start:
                yield Found(start, end, self.action, is_bare)
            # What lies within a value is taken out with it.
            at = max(end, match.end())


class PathRule(NamedTuple):
    """A JSON path from one of the roots."""

    steps: tuple[Step, ...]
    action: RedactionAction


def compiled(rule: RedactionRule) -> PatternRule | FieldRule | PathRule:
    """The rule, ready for use. Raises ValueError, one line, that begins with the key that is at fault."""
    given = [name for name in ("path", "pattern", "field") if getattr(rule, name) is not None]
    if len(given) != 1:
        said = " and ".join(given) if given else "none"
        raise ValueError(f"has {said}; it must have exactly one of path, pattern, field")
    try:
        if rule.pattern is not None:
            return PatternRule(rule.pattern, rule.action)
        if rule.field is not None:
            return FieldRule(rule.field, rule.action)
        steps = parse_path(rule.path or "")
        if steps[0] not in (ANY, DESCEND, *ROOTS):
            raise ValueError(f"begins with {steps[0]!r}; it must be one of {', '.join(ROOTS)}")
        return PathRule(steps, rule.action)
    except ValueError as error:
        raise ValueError(f"{given[0]} {getattr(rule, given[0])!r} {error}") from error


def _closed(data: bytes, start: int) -> int:
    """Where the bracket at `start` is closed, or the end of the text."""
    depth, at = 0, start
    while (found := _BRACKET.search(data, at)) is not None:
        at = found.end()
        symbol = found.group()
        if symbol == b'"':
            at = min(_STRING[ord('"')].match(data, found.start()).end() + 1, len(data))  # type: ignore[union-attr]
        elif symbol in b"[{":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return at
    return len(data)
