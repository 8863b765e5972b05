"""From a server's logprob entries to tokens, with what cannot be trusted taken out and named.

Notes that may come of it: `logprob_null`, `logprob_nan`, `logprob_impossible`, `logprob_positive` (the
chosen token's), `alternatives_nan`, `alternatives_positive` (the list is dropped), `tokens_merged`,
`bytes_invalid`, `odd_logprobs`, `logprobs_uneven`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ingest.errors import DeadLetterError
from ingest.observation import Alternative, Token
from ingest.tolerant_json import clean_text, loads
from ingest.wire import Logprobs, as_float, as_int

IMPOSSIBLE = -9999.0
"""At or below this a logprob is a sentinel for probability 0 (vLLM -9999, SGLang -3.4e38, -Infinity)."""

ROUNDING = 1e-3
"""A logprob may exceed 0 by this much through rounding; more means that it is no log-probability."""

_MINUS_INFINITY = float("-inf")


class _Listed(msgspec.Struct, gc=False):
    token: str = ""
    logprob: float | None = None
    bytes: list[int] | None = None
    id: int | None = None


class _Entry(msgspec.Struct, gc=False):
    token: str = ""
    logprob: float | None = None
    bytes: list[int] | None = None
    id: int | None = None
    top_logprobs: list[_Listed] | None = None


_ENTRY_DECODER = msgspec.json.Decoder(_Entry)


def read_tokens(
    logprobs: Logprobs, *, asked: int | None, room: int, notes: dict[str, None]
) -> tuple[list[Token], int]:
    """Read at most `room` tokens of one piece and say how many the server gave.

    `asked` is the number of alternatives that the request asked for, None if it is not known.
    """
    if logprobs.content is not None:
        entries = logprobs.content
        return [read_entry(entry, asked=asked, notes=notes) for entry in entries[:room]], len(entries)
    if logprobs.tokens is not None:
        return _read_legacy(logprobs, asked=asked, room=room, notes=notes), len(logprobs.tokens)
    return [], 0


def read_entry(entry: msgspec.Raw | bytes, *, asked: int | None, notes: dict[str, None]) -> Token:
    """Read one entry of the chat shape, which llama.cpp's `completion_probabilities` has too."""
    try:
        decoded = _ENTRY_DECODER.decode(entry)
    except (msgspec.MsgspecError, ValueError):
        decoded = _lenient_entry(bytes(entry), notes)
    raw = _raw(decoded.bytes, notes)
    alternatives, is_sorted = _alternatives(decoded.top_logprobs or [], notes)
    if decoded.id is not None and raw is not None and _is_merged(decoded.id, raw, alternatives):
        # llama.cpp gives a character made of several tokens one entry: the bytes of all, but the id, the
        # logprob and the list of the last. Compared by id it could pass for another character.
        notes["tokens_merged"] = None
        return Token(decoded.token, None, raw)
    return _token(decoded.token, decoded.logprob, raw, decoded.id, alternatives, is_sorted, asked, notes)


def _token(
    text: str,
    logprob: float | None,
    raw: bytes | None,
    token_id: int | None,
    alternatives: list[Alternative],
    is_sorted: bool,
    asked: int | None,
    notes: dict[str, None],
) -> Token:
    if not is_sorted:
        alternatives.sort(key=lambda item: item.logprob, reverse=True)
    ranked = len(alternatives)
    if ranked > 1 and (not is_sorted or asked is None or ranked > asked):
        last = alternatives[-1]
        chosen_is_last = last.id == token_id if token_id is not None else last.text == text
        if chosen_is_last:
            # Listed because it was sampled, not because it is the next most likely: vLLM puts it first,
            # others append it.
            ranked -= 1
    return Token(text, _chosen(logprob, notes), raw, token_id, tuple(alternatives), ranked)


def _chosen(logprob: float | None, notes: dict[str, None]) -> float | None:
    if logprob is None:
        notes["logprob_null"] = None
    elif logprob != logprob:
        notes["logprob_nan"] = None
    elif logprob <= IMPOSSIBLE:
        notes["logprob_impossible"] = None
    elif logprob > ROUNDING:
        notes["logprob_positive"] = None
    else:
        return logprob if logprob < 0.0 else 0.0
    return None


def _alternatives(listed: list[_Listed], notes: dict[str, None]) -> tuple[list[Alternative], bool]:
    """Read a list and say whether it falls; an untrustworthy one comes back empty."""
    result: list[Alternative] = []
    previous, is_sorted = 1.0, True
    for item in listed:
        logprob = item.logprob
        if logprob is None or logprob <= IMPOSSIBLE:
            logprob = _MINUS_INFINITY
        elif not logprob <= 0.0:
            if logprob != logprob or logprob > ROUNDING:
                notes["alternatives_nan" if logprob != logprob else "alternatives_positive"] = None
                return [], True
            logprob = 0.0
        if logprob > previous:
            is_sorted = False
        previous = logprob
        raw = None if item.bytes is None else _raw(item.bytes, notes)
        result.append(Alternative(item.token, logprob, raw, item.id))
    return result, is_sorted


def _is_merged(token_id: int, raw: bytes, alternatives: list[Alternative]) -> bool:
    for item in alternatives:
        if item.id == token_id:
            return item.raw is not None and item.raw != raw
    return False


def _read_legacy(logprobs: Logprobs, *, asked: int | None, room: int, notes: dict[str, None]) -> list[Token]:
    """Read the legacy shape: parallel lists, alternatives as an object from token text to logprob."""
    texts = logprobs.tokens or []
    given = logprobs.token_logprobs or []
    tops = logprobs.top_logprobs or []
    if len(given) != len(texts) or (tops and len(tops) != len(texts)):
        notes["logprobs_uneven"] = None
    tokens = []
    for index, text in enumerate(texts[:room]):
        top = tops[index] if index < len(tops) else None
        listed = [
            _Listed(_name(key, notes), number, None, _token_id(key)) for key, number in (top or {}).items()
        ]
        alternatives, is_sorted = _alternatives(listed, notes)
        number = given[index] if index < len(given) else None
        name = text or ""
        tokens.append(
            _token(_name(name, notes), number, None, _token_id(name), alternatives, is_sorted, asked, notes)
        )
    return tokens


def _name(text: str, notes: dict[str, None]) -> str:
    return text if text.isascii() else clean_text(text, notes)


def _token_id(text: str) -> int | None:
    """Return the id where vLLM writes tokens as `token_id:123` (`return_tokens_as_token_ids`)."""
    return as_int(text[9:]) if text.startswith("token_id:") else None


def _raw(values: list[int] | None, notes: dict[str, None]) -> bytes | None:
    if values is None:
        return None
    try:
        return bytes(values)
    except (ValueError, TypeError):
        notes["bytes_invalid"] = None
        return None


def _lenient_entry(entry: bytes, notes: dict[str, None]) -> _Entry:
    try:
        value = loads(entry, notes)
    except DeadLetterError:
        value = None
    if not isinstance(value, dict):
        notes["odd_logprobs"] = None
        return _Entry()
    top = value.get("top_logprobs")
    head = _lenient_listed(value, notes)
    return _Entry(
        head.token,
        head.logprob,
        head.bytes,
        head.id,
        [_lenient_listed(item, notes) for item in top if isinstance(item, dict)]
        if isinstance(top, list)
        else None,
    )


def _lenient_listed(value: dict[str, Any], notes: dict[str, None]) -> _Listed:
    token, raw = value.get("token"), value.get("bytes")
    return _Listed(
        _name(token, notes) if isinstance(token, str) else "",
        as_float(value.get("logprob")),
        raw if isinstance(raw, list) and all(isinstance(byte, int) for byte in raw) else None,
        as_int(value.get("id")),
    )
