"""Redaction: what the rules take out of texts, JSON, raw records and messages before anything is stored.

Pure: no clock, no network, no file. docs/design/0005-redaction-and-purge.md says what it promises.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from ingest.errors import FatalError
from ingest.json_escapes import views
from ingest.json_path import ANY, DESCEND, DROPPED, matches_root, replaced
from ingest.records import RawRecord
from ingest.redact_rules import FieldRule, PathRule, compiled, stronger
from ingest.settings import RedactionAction, RedactionSettings

MASK = "[redacted]"
HASH_PREFIX = "hmac:"
LEAST_KEY_CHARACTERS = 16
LEAST_VALUE_BYTES = 6
"""A value that a path or field names is looked for in the rest of its record from this length on."""
MAX_VALUES = 200
"""More such values in one record, and the rest of its texts is masked as a whole."""
MAX_NAMED = 10_000
"""The same for short values."""
GRAM_BYTES = 4
"""A message that shares so many bytes in a row with what was taken out may quote a part of it."""
MAX_GRAM_BYTES = 64 * 1024
_CACHED_TEXTS = 100_000
_CACHED_CHARACTERS = 64

_log = logging.getLogger(__name__)


class Taken:
    """What has been taken out of one record so far."""

    def __init__(self) -> None:
        self.values: dict[bytes, RedactionAction] = {}
        """Values that a path or field named, to be taken out wherever the record repeats them.

        Each costs a search through every text, hence MAX_VALUES."""
        self.named: list[bytes] = []
        """The same, of any length."""
        self.memo: dict[str, str] = {}
        """Texts that were seen already: the bodies that are sent repeat the request's."""
        self.is_everything = False
        """Too much was taken out to look for each part: texts are masked whole."""
        self._grams: set[bytes] = set()
        self._short: set[bytes] = set()
        self._gram_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._gram_bytes)

    def note(self, data: bytes) -> None:
        """Remember the parts of something that was taken out."""
        data = data.lower()
        self._gram_bytes += len(data)
        if len(data) < GRAM_BYTES:
            self._short.add(data)
        elif self._gram_bytes <= MAX_GRAM_BYTES:
            self._grams.update(data[at : at + GRAM_BYTES] for at in range(len(data) - GRAM_BYTES + 1))

    def name(self, data: bytes, action: RedactionAction) -> None:
        """Remember a value that a path or field named."""
        if not data or data in (b"true", b"false", b"null"):
            return
        self.note(data)
        if self.is_everything:
            return
        self.named.append(data)
        if len(data) >= LEAST_VALUE_BYTES and self.values.get(data) != action:
            self.values[data] = stronger(self.values.get(data, action), action)
            self.memo.clear()
        if len(self.values) > MAX_VALUES or len(self.named) > MAX_NAMED:
            self.is_everything = True

    def beside(self) -> Taken:
        """A new one that shares the values: for a part of the record whose own must be told apart."""
        other = Taken()
        other.values, other.is_everything = self.values, self.is_everything
        return other

    def join(self, other: Taken) -> None:
        """Add what another one has noted."""
        self._grams |= other._grams
        self._short |= other._short
        self._gram_bytes += other._gram_bytes
        self.is_everything = self.is_everything or other.is_everything
        if other.named:
            self.memo.clear()

    def may_be_quoted_in(self, data: bytes) -> bool:
        """Whether a text shares a part with anything that was taken out."""
        if not self._gram_bytes:
            return False
        if self._gram_bytes > MAX_GRAM_BYTES:
            return True
        data = data.lower()
        if any(short in data for short in self._short):
            return True
        return any(data[at : at + GRAM_BYTES] in self._grams for at in range(len(data) - GRAM_BYTES + 1))


class Cut(NamedTuple):
    """A span of the original bytes, and what stands there instead."""

    start: int
    end: int
    instead: bytes


class Letter(NamedTuple):
    """A record that is kept as a dead letter, as it may be kept."""

    raw: RawRecord
    detail: str
    is_redacted: bool


class Redactor:
    """The rules of one `[redaction]`. Any thread may call it."""

    def __init__(self, settings: RedactionSettings) -> None:
        """Raises FatalError for what `check_rules` refuses."""
        problem = check_rules(settings)
        if problem:
            raise FatalError(f"redaction.rules: {problem}")
        rules = [compiled(rule) for rule in settings.rules]
        self._paths = [rule for rule in rules if isinstance(rule, PathRule)]
        self._fields = [rule for rule in rules if isinstance(rule, FieldRule)]
        self._finders = [rule for rule in rules if not isinstance(rule, PathRule)]
        self._by_name: dict[str, RedactionAction] = {}
        for rule in self._fields:
            self._by_name[rule.name] = stronger(self._by_name.get(rule.name, rule.action), rule.action)
        self._keeps_letters = settings.dead_letters == "redact" and not self._paths
        self._key = (settings.key or "").encode()
        self.harmless: set[str] = set()
        """Short texts that no rule concerns: tokens come again and again."""

    def keyed(self, data: bytes) -> str:
        """HMAC-SHA-256 under GNOMON_REDACTION_KEY, the first 32 hex characters."""
        return hmac.new(self._key, data, hashlib.sha256).hexdigest()[:32]

    def cuts(self, data: bytes, taken: Taken) -> list[Cut]:
        """What is to be taken out of a text, in order and apart; `taken` learns of it. Linear in `data`."""
        found: list[tuple[int, int, RedactionAction, bytes, bytes]] = []
        for view in views(data):
            for rule in self._finders:
                for one in rule.find(view.data):
                    value = view.data[one.start : one.end]
                    if isinstance(rule, FieldRule):
                        taken.name(value.strip(b'"'), one.action)
                    quote = b"\\" * (2**view.depth - 1) + b'"' if one.is_bare else b""
                    found.append((*view.original(one.start, one.end), one.action, value, quote))
            for value, action in () if taken.is_everything else tuple(taken.values.items()):
                at = view.data.find(value)
                while at >= 0:
                    found.append((*view.original(at, at + len(value)), action, value, b""))
                    at = view.data.find(value, at + len(value))
        for _, _, _, value, _ in found:
            taken.note(value)
        return self._merged(data, found, taken)

    def _merged(
        self, data: bytes, found: list[tuple[int, int, RedactionAction, bytes, bytes]], taken: Taken
    ) -> list[Cut]:
        cuts: list[Cut] = []
        found.sort(key=lambda one: (one[0], -one[1]))
        at = 0
        while at < len(found):
            start, end, action, value, quote = found[at]
            at += 1
            while at < len(found) and found[at][0] < end:
                _, other_end, other_action, other, _ = found[at]
                action = stronger(action, other_action)
                if other_end > end:
                    end, quote = other_end, b""
                    value = other if len(other) > len(value) else value
                at += 1
            taken.note(data[start:end])
            cuts.append(Cut(start, end, self._instead(action, value, quote)))
        return cuts

    def data(self, value: bytes, taken: Taken) -> bytes:
        """The bytes without what the rules take out."""
        if not value:
            return value
        cuts = () if taken.is_everything else self.cuts(value, taken)
        return MASK.encode() if taken.is_everything else _without(value, cuts)

    def text(self, value: str, taken: Taken) -> str:
        """The text without what the rules take out. The same object if that is nothing."""
        if not value:
            return value
        is_short = len(value) <= _CACHED_CHARACTERS and not taken.values and not taken.is_everything
        if is_short and value in self.harmless:
            return value
        if (known := taken.memo.get(value)) is not None:
            return known
        data = value.encode("utf-8", "surrogatepass")
        cut = self.data(data, taken)
        made = value if cut == data else cut.decode("utf-8", "replace")
        if not is_short:
            taken.memo[value] = made
        elif made is value:
            if len(self.harmless) > _CACHED_TEXTS:
                self.harmless.clear()
            self.harmless.add(value)
        return made

    def line(self, value: str) -> str:
        """A line of a log or an error."""
        return self.text(value, Taken())

    def named(self, value: Any, root: str, taken: Taken) -> Any:
        """`value`, the part of a record under `root`, without what paths and field names take out."""
        for rule in self._paths:
            if matches_root(rule.steps[0], root):
                # `$..x` has to be looked for within the root too.
                steps = rule.steps if rule.steps[0] is DESCEND else rule.steps[1:]
                value = replaced(value, steps, self._take(rule.action, taken))
                if value is DROPPED:
                    return None
        return self._without_fields(value, taken) if self._by_name else value

    def texts(self, value: Any, taken: Taken) -> Any:
        """`value` with `text` applied to every string of it, keys too. Call `named` first."""
        if isinstance(value, str):
            return self.text(value, taken)
        if isinstance(value, list):
            return [self.texts(item, taken) for item in value]
        if not isinstance(value, dict):
            return value if value is None or isinstance(value, bool) else self._number(value, taken)
        made: dict[str, Any] = {}
        for key, item in value.items():
            name = plain = self.text(key, taken)
            while name in made:
                name = f"{plain} {len(made)}"
            made[name] = self.texts(item, taken)
        return made

    def message(self, value: str, taken: Taken) -> str:
        """A text that may quote others, cut anywhere: masked if it shares a part with what was taken."""
        made = self.text(value, taken)
        rest = made.replace(MASK, " ").encode("utf-8", "surrogatepass")
        return MASK if taken.is_everything or taken.may_be_quoted_in(rest) else made

    def letter(self, raw: RawRecord, detail: str) -> Letter:
        """A dead letter as it may be kept: its bytes where the rules can be relied on, else a digest.

        A path cannot be relied on in a record that was not decoded, nor a pattern in bytes that are not
        UTF-8. What is kept then is `{"gnomon.redacted":{"hmac_sha256":...,"bytes":...}}`.
        """
        taken = Taken()
        value, key = self._bytes(raw.value, taken), self._bytes(raw.key, taken)
        headers = tuple((name, self._header(name, content, taken)) for name, content in raw.headers)
        is_hidden = raw.value is not None and value is not None and value == self.digest(raw.value)
        kept = MASK if is_hidden else self.message(detail, taken)
        made = msgspec.structs.replace(raw, key=key, value=value, headers=headers)
        return Letter(made, kept, made != raw or kept != detail)

    def digest(self, data: bytes) -> bytes:
        """What stands for bytes that may not be kept."""
        return msgspec.json.encode({"gnomon.redacted": {"hmac_sha256": self.keyed(data), "bytes": len(data)}})

    def _bytes(self, data: bytes | None, taken: Taken) -> bytes | None:
        if not data:
            return data
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return self.digest(data)
        return self.data(data, taken) if self._keeps_letters else self.digest(data)

    def _header(self, name: str, content: bytes, taken: Taken) -> bytes:
        action = self._by_name.get(name.casefold())
        for rule in self._paths:
            wanted = rule.steps[1] if len(rule.steps) > 1 else ANY
            is_wanted = wanted is ANY or str(wanted).casefold() == name.casefold()
            if is_wanted and matches_root(rule.steps[0], "headers"):
                action = stronger(action or rule.action, rule.action)
        if action is not None and content:
            taken.name(content, action)
            return self._instead(action, content, b"")
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            return self.digest(content)
        return self.data(content, taken)

    def _take(self, action: RedactionAction, taken: Taken) -> Callable[[Any], Any]:
        def take(value: Any) -> Any:
            if value is None or value == "" or value == MASK:
                return value
            for leaf in _leaves(value):
                taken.name(leaf, action)
            if action == "drop":
                return DROPPED
            plain = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else _canonical(value)
            return self._instead(action, plain, b"").decode()

        return take

    def _without_fields(self, value: Any, taken: Taken) -> Any:
        if isinstance(value, list):
            return [self._without_fields(item, taken) for item in value]
        if not isinstance(value, dict):
            return value
        made = {}
        for key, item in value.items():
            action = self._by_name.get(key.casefold())
            made[key] = self._take(action, taken)(item) if action else self._without_fields(item, taken)
        return {key: item for key, item in made.items() if item is not DROPPED}

    def _number(self, value: Any, taken: Taken) -> Any:
        """A number is a text to a pattern: a card's number may have come without quotes."""
        plain = str(value)
        made = self.text(plain, taken)
        return value if made == plain else made

    def _instead(self, action: RedactionAction, value: bytes, quote: bytes) -> bytes:
        if action == "drop":
            return b"null" if quote else b""
        made = MASK.encode() if action == "mask" else (HASH_PREFIX + self.keyed(value)).encode()
        return quote + made + quote


def check_rules(settings: RedactionSettings) -> str | None:
    """The first thing that is wrong with the rules, in one line with the rule's number from 1, or None."""
    for number, rule in enumerate(settings.rules, 1):
        try:
            compiled(rule)
        except ValueError as error:
            return f"rule {number}: {error}"
    if settings.rules and len(settings.key or "") < LEAST_KEY_CHARACTERS:
        return (
            f"a key of at least {LEAST_KEY_CHARACTERS} characters is needed: hashes are keyed, since a plain "
            "hash of something short is found by trying; set GNOMON_REDACTION_KEY"
        )
    return None


def redactor_of(settings: RedactionSettings) -> Redactor | None:
    """The redactor, or None where there are no rules."""
    return Redactor(settings) if settings.rules else None


def refuse_redacted(request_id: str, *, is_redacted: bool, allow_redacted: bool) -> None:
    """Raise FatalError for a stored request that is not what the client sent, unless that is asked for.

    For whoever replays from the store (`requests_v1.is_redacted`): another prompt gets another answer.
    """
    if not is_redacted:
        return
    if not allow_redacted:
        raise FatalError(
            f"request {request_id!r} was redacted when it was stored: a replay would send another prompt "
            "than the client did, and its numbers would say nothing of the original; ask for redacted "
            "requests if that is what you want"
        )
    _log.warning("request %r is replayed as it was redacted, not as it was sent", request_id)


def _without(data: bytes, cuts: Iterable[Cut]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for cut in cuts:
        parts += (data[at : cut.start], cut.instead)
        at = cut.end
    return b"".join((*parts, data[at:])) if parts else data


def _leaves(value: Any) -> Iterable[bytes]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        if value:
            yield value.encode("utf-8", "surrogatepass")
    elif value is not None and not isinstance(value, bool):
        yield str(value).encode()


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
