"""From a server's logprob entries to tokens, position by position.

Whatever cannot be trusted is taken out and named by a note (`ingest.notes`). What only the whole answer
shows (stale lists, missing bytes, ...) is looked at in `ingest.logprob_trust`.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import msgspec

from ingest.alternative import Alternative
from ingest.alternatives import IMPOSSIBLE, ROUNDING, SENTINEL, checked, converted, falls, raw_bytes, repaired
from ingest.errors import DeadLetterError
from ingest.tokens import Token
from ingest.tolerant_json import clean_text, loads
from ingest.wire import AnyLogprobs, Entry, Listed, Logprobs
from ingest.wire_lenient import as_float, as_int

AS_ID = "token_id:"
"""Begins a token's name where vLLM is asked for `return_tokens_as_token_ids`."""

DIFFERENCE_NATS = 0.01
"""A token's own logprob and the one in its list may differ by rounding, not by more than this."""

DIFFERS = "logprob_differs"
"""Noted where a token's own logprob and its list's differ, until the whole answer has been looked at."""


class Head(NamedTuple):
    """The generated token as its entry names it, without the list."""

    text: str
    logprob: float | None
    raw: bytes | None = None
    id: int | None = None


_ENTRY_DECODER = msgspec.json.Decoder(Entry)
_NOT_SOUND = (msgspec.MsgspecError, ValueError, RecursionError)


def read_tokens(
    logprobs: AnyLogprobs, *, asked: int | None, room: int, notes: dict[str, None]
) -> tuple[list[Token], int]:
    """Read at most `room` tokens of one piece and say how many the server gave.

    `asked` is the number of alternatives that the request asked for, None if it is not known.
    """
    entries = logprobs.content
    if entries is not None:
        return [read_entry(entry, asked=asked, notes=notes) for entry in entries[:room]], len(entries)
    if isinstance(logprobs, Logprobs) and logprobs.tokens is not None:
        return _read_legacy(logprobs, asked=asked, room=room, notes=notes), len(logprobs.tokens)
    return [], 0


def read_entry(entry: Entry | msgspec.Raw | bytes, *, asked: int | None, notes: dict[str, None]) -> Token:
    """Read one entry of the chat shape, which llama.cpp's `completion_probabilities` has too."""
    if not isinstance(entry, Entry):
        data = bytes(entry)
        try:
            entry = _ENTRY_DECODER.decode(data)
        except _NOT_SOUND:
            return _read_leniently(data, asked, notes)
    text, top, logprob, token_id = entry.token, entry.top_logprobs or (), entry.logprob, entry.id
    raw = raw_bytes(entry.bytes, notes)
    if top and logprob == top[0].logprob and text == top[0].text and token_id == top[0].id:
        is_short = len(top) <= (asked or len(top))
        if is_short and not text.startswith(AS_ID) and checked(top):
            # Nearly every position of a greedy answer: nothing to repair, nothing to note.
            return Token(text, logprob, raw, token_id, top, len(top))
    return make_token(Head(text, logprob, raw, token_id), top, asked, notes)


def make_token(
    head: Head,
    top: tuple[Alternative, ...] | list[Listed] | tuple[()],
    asked: int | None,
    notes: dict[str, None],
) -> Token:
    """Put a token and its list together: sorted, each token once, the appended one told apart."""
    text, logprob, raw, token_id = head
    if text.startswith(AS_ID):
        token_id = _id_of(text)
        notes["tokens_as_ids"] = None
        # The alternatives' bytes are those of their names; the token's own are real unless it had no list.
        if raw == text.encode():
            raw = None
        if isinstance(top, tuple):
            top = tuple(Alternative(item.text, item.logprob, None, _id_of(item.text)) for item in top)
        else:
            ids = [_id_of(item.token) if item.id is None else item.id for item in top]
            top = [Listed(item.token, item.logprob, None, id_) for item, id_ in zip(top, ids, strict=True)]
        if raw is not None and token_id is not None:
            text = raw.decode("utf-8", "replace")
    sound = converted(top) if top and isinstance(top, list) else None
    if isinstance(top, tuple) and (not top or checked(top)):
        sound = top
    if sound is not None:
        kept, is_sorted = sound, True
    else:
        kept, is_sorted = repaired(top, notes), falls(top)
    ranked = len(kept)
    if asked and ranked > asked + 1:
        notes["alternatives_over_asked"] = None
    logprob = _chosen(logprob, notes)
    if not ranked:
        if logprob is None and head.logprob is None:
            notes["logprob_null"] = None
        return Token(text, logprob, raw, token_id)
    place = place_in(kept, text, raw, token_id)
    if place is not None:
        own = kept[place]
        if text != own.text and token_id is not None and raw is not None and own.raw not in (None, raw):
            # llama.cpp gives a character made of several tokens one entry: the bytes of all, but the id, the
            # logprob and the list of the last. Compared by id it could pass for another character.
            notes["tokens_merged"] = None
            return Token(text, None, raw)
        if logprob is None:
            if head.logprob is None and own.logprob > -math.inf:
                logprob = own.logprob
                notes["logprob_from_list"] = None
            elif head.logprob is None:
                notes["logprob_null"] = None
        elif abs(logprob - own.logprob) > DIFFERENCE_NATS:
            # Which of the two is wrong, the lists around this one may tell: `ingest.logprob_trust`.
            notes[DIFFERS] = None
        if place == ranked - 1 and place and (asked is None or ranked > asked or not is_sorted):
            # Listed because it was sampled, not because it is the next most likely: vLLM puts it first,
            # others append it.
            ranked -= 1
    elif logprob is None and head.logprob is None:
        notes["logprob_null"] = None
    return Token(text, logprob, raw, token_id, kept, ranked)


def with_id(token: Token, number: int) -> Token:
    """Return a token with an id where it had none and `number` is one."""
    if token.id is not None or not 0 <= number < 2**31:
        return token
    return msgspec.structs.replace(token, id=number)


def clean_name(text: str, notes: dict[str, None]) -> str:
    """Return a token's text as it can be written in UTF-8."""
    return text if text.isascii() else clean_text(text, notes)


def differs(token: Token) -> bool:
    """Whether a token's own logprob is another than the one in its list."""
    if token.logprob is None or not token.top:
        return False
    place = place_in(token.top, token.text, token.raw, token.id)
    return place is not None and abs(token.logprob - token.top[place].logprob) > DIFFERENCE_NATS


def place_in(top: tuple[Alternative, ...], text: str, raw: bytes | None, token_id: int | None) -> int | None:
    """Return where the generated token stands in its list."""
    for place, item in enumerate(top):
        if token_id is not None and item.id is not None:
            is_same = item.id == token_id
        elif raw is not None and item.raw is not None:
            is_same = item.raw == raw
        else:
            is_same = item.text == text
        if is_same:
            return place
    return None


def _chosen(logprob: float | None, notes: dict[str, None]) -> float | None:
    if logprob is None:
        return None
    if logprob != logprob:
        notes["logprob_nan"] = None
    elif logprob <= IMPOSSIBLE and (logprob <= SENTINEL or logprob == int(logprob)):
        notes["logprob_impossible"] = None
    elif logprob > ROUNDING:
        notes["logprob_positive"] = None
    else:
        return logprob if logprob < 0.0 else 0.0
    return None


def _id_of(text: str) -> int | None:
    """Return the id where vLLM writes tokens as `token_id:123`."""
    if not text.startswith(AS_ID):
        return None
    number = as_int(text[len(AS_ID) :])
    return number if number is not None and 0 <= number < 2**31 else None


def _read_leniently(data: bytes, asked: int | None, notes: dict[str, None]) -> Token:
    try:
        value = loads(data, notes)
    except DeadLetterError:
        value = None
    if not isinstance(value, dict):
        notes["odd_logprobs"] = None
        value = {}
    top = value.get("top_logprobs")
    head = lenient_listed(value, notes)
    return make_token(
        Head(head.token, head.logprob, raw_bytes(head.bytes, notes), head.id),
        [lenient_listed(item, notes) for item in top if isinstance(item, dict)]
        if isinstance(top, list)
        else [],
        asked,
        notes,
    )


def lenient_listed(value: dict[str, Any], notes: dict[str, None]) -> Listed:
    """Take what can be used of a decoded entry."""
    token, raw, number = value.get("token"), value.get("bytes"), as_int(value.get("id"))
    return Listed(
        clean_name(token, notes) if isinstance(token, str) else "",
        as_float(value.get("logprob")),
        raw if isinstance(raw, list) and all(isinstance(byte, int) for byte in raw) else None,
        number if number is not None and 0 <= number < 2**31 else None,
    )


def _read_legacy(logprobs: Logprobs, *, asked: int | None, room: int, notes: dict[str, None]) -> list[Token]:
    """Read the legacy shape: parallel lists, alternatives as an object from token text to logprob."""
    texts = logprobs.tokens or []
    given = logprobs.token_logprobs or []
    tops = logprobs.top_logprobs or []
    if len(given) != len(texts) or (tops and len(tops) != len(texts)):
        notes["logprobs_uneven"] = None
    tokens = []
    for index, text in enumerate(texts[:room]):
        listed = _legacy_list(tops[index], notes) if index < len(tops) else []
        number = given[index] if index < len(given) else None
        name = clean_name(text or "", notes)
        tokens.append(make_token(Head(name, number, None, _id_of(name)), listed, asked, notes))
    return tokens


def _legacy_list(top: msgspec.Raw, notes: dict[str, None]) -> list[Listed]:
    data = bytes(top)
    if data == b"null":
        return []
    try:
        # Pairs, since different tokens may have the same text: an object would keep only the last.
        pairs = json.loads(data, object_pairs_hook=list)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, list):
        notes["odd_logprobs"] = None
        return []
    listed = []
    for pair in pairs:
        if isinstance(pair, tuple):
            name = clean_name(pair[0], notes)
            listed.append(Listed(name, as_float(pair[1]), None, _id_of(name)))
        elif isinstance(pair, list):  # an object within a list: one entry of the chat shape
            listed.append(lenient_listed(dict(item for item in pair if isinstance(item, tuple)), notes))
    return listed
