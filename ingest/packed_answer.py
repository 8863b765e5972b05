"""An answer with all its lists, packed to be kept: about a tenth of what the server sent, and exact.

Each list's logprobs are one column, as Float32 where that loses nothing (engines compute in it). Its tokens
are places in a table of the answer's distinct ones, for the same few come again and again. No process of
ours is in it: keys of bytes are made anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.alternative import Alternative
from ingest.observation import Observation
from ingest.reference_answers import KnownAnswer
from ingest.tokens import NO_ID, NO_KEY, Token, Tokens

FORMAT = 1
"""A later format gets another number; what an older one cannot read is asked for again."""

_SAME = True
"""Stands for bytes that are the text's own."""
_Bytes = bytes | bool | None
_Name = tuple[str, _Bytes, int | None]
_Told = bytes | tuple[bytes] | None


class _Packed(msgspec.Struct, array_like=True, frozen=True):
    format: int
    vocabulary_size: int | None
    observation: Observation
    """Without its tokens."""
    text: list[str]
    raw: list[_Bytes]
    id: list[int | None]
    has_logprob: list[bool]
    logprob: bytes
    ranked: list[int]
    sizes: list[int]
    names: list[_Name]
    places: bytes
    """Which of `names` each entry of the lists is; 4 bytes each."""
    top_logprob: bytes


class _Format(msgspec.Struct, array_like=True):
    format: int


_ENCODE = msgspec.msgpack.Encoder(enc_hook=lambda value: list(value))
_DECODE = msgspec.msgpack.Decoder(_Packed, dec_hook=lambda kind, value: kind(value))
_FORMAT = msgspec.msgpack.Decoder(_Format)


def pack(answer: KnownAnswer) -> bytes:
    """Pack it. Raises UnicodeEncodeError where a text has lone surrogates, which the reader never leaves."""
    tokens, columns = answer.observation.tokens, answer.observation.tokens.columns
    names, places = _by_columns(tokens) or _by_hand(tokens)
    has_logprob = ~np.isnan(columns.logprob)
    return _ENCODE.encode(
        _Packed(
            format=FORMAT,
            vocabulary_size=answer.vocabulary_size,
            observation=msgspec.structs.replace(answer.observation, tokens=Tokens()),
            text=tokens.texts,
            raw=[_short(raw, text) for raw, text in zip(tokens.raws, tokens.texts, strict=True)],
            id=_numbered(columns.id),
            has_logprob=has_logprob.tolist(),
            logprob=_column(np.where(has_logprob, columns.logprob, 0.0)),
            ranked=columns.ranked.tolist(),
            sizes=np.diff(columns.start).tolist(),
            names=names,
            places=places.astype("<u4").tobytes(),
            top_logprob=_column(columns.top_logprob),
        )
    )


def _by_columns(tokens: Tokens) -> tuple[list[_Name], NDArray[np.int64]] | None:
    """The distinct entries and which of them each is, by the keys of their bytes and their ids.

    None where some bytes are unknown, or a token is not always written alike: `_by_hand` looks at each then,
    which takes four times as long.
    """
    keys, ids = tokens.columns.top_key, tokens.columns.top_id
    if not len(keys) or (keys == NO_KEY).any():
        return None
    # Ids are under 2**31; an odd factor keeps them apart beside the keys, which are random.
    mixed = keys ^ (ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    _, first, places = np.unique(mixed, return_index=True, return_inverse=True)
    if not (np.array_equal(keys[first][places], keys) and np.array_equal(ids[first][places], ids)):
        return None
    found = tokens.distinct_texts(first, places)
    if found is None:
        return None
    texts, is_same = found
    raws: list[_Bytes] = [_SAME] * len(texts)
    for place in np.flatnonzero(~is_same).tolist():
        raws[place] = _entry(tokens, int(first[place])).raw
    names: list[_Name] = list(zip(texts, raws, _numbered(ids[first]), strict=True))
    return names, places


def _entry(tokens: Tokens, place: int) -> Alternative:
    """The entry at a place among those of all lists."""
    start = tokens.columns.start
    token = int(np.searchsorted(start, place, side="right")) - 1
    return tokens[token].top[place - int(start[token])]


def _numbered(ids: NDArray[np.int64]) -> list[int | None]:
    return [None if number == NO_ID else number for number in ids.tolist()]


def _by_hand(tokens: Tokens) -> tuple[list[_Name], NDArray[np.int64]]:
    entries = list(chain.from_iterable(token.top for token in tokens))
    keys = [(entry.text, _told(entry), entry.id) for entry in entries]
    distinct: dict[tuple[str, _Told, int | None], Alternative] = {}
    for key, entry in zip(keys, entries, strict=True):
        distinct.setdefault(key, entry)
    numbers = {key: number for number, key in enumerate(distinct)}
    names: list[_Name] = [
        (entry.text, _short(entry.raw, entry.text), entry.id) for entry in distinct.values()
    ]
    return names, np.array([numbers[key] for key in keys], dtype=np.int64)


def unpack(data: bytes) -> KnownAnswer | None:
    """Undo `pack`. None for what another version packed in another format, and for what is damaged."""
    try:
        if _FORMAT.decode(data).format != FORMAT:
            return None
        packed = _DECODE.decode(data)
    except msgspec.MsgspecError:
        return None
    places = np.frombuffer(packed.places, dtype="<u4").tolist()
    values = _values(packed.top_logprob, len(places))
    chosen = _values(packed.logprob, len(packed.text))
    if sum(packed.sizes) != len(places) or values is None or chosen is None:
        return None
    given = [(text, _long(raw, text), number) for text, raw, number in packed.names]
    listed = (
        Alternative(given[place][0], logprob, given[place][1], given[place][2])
        for place, logprob in zip(places, values, strict=True)
    )
    tokens = Tokens(
        Token(
            text,
            logprob if has_logprob else None,
            _long(raw, text),
            number,
            tuple(islice(listed, size)),
            ranked,
        )
        for text, raw, number, has_logprob, logprob, ranked, size in zip(
            packed.text,
            packed.raw,
            packed.id,
            packed.has_logprob,
            chosen,
            packed.ranked,
            packed.sizes,
            strict=True,
        )
    )
    observation = msgspec.structs.replace(packed.observation, tokens=tokens)
    return KnownAnswer(observation, packed.vocabulary_size)


def _told(entry: Alternative) -> _Told:
    """The entry's bytes as something to tell them apart by, which costs less than reading them."""
    given = entry.given_bytes
    return (bytes(given),) if isinstance(given, msgspec.Raw) else given


def _short(raw: bytes | None, text: str) -> _Bytes:
    return _SAME if raw is not None and raw == text.encode() else raw


def _long(short: _Bytes, text: str) -> bytes | None:
    if isinstance(short, bool):
        return text.encode()
    return short


def _column(values: Sequence[float] | NDArray[np.float64]) -> bytes:
    """The numbers as Float32 behind an `f`, or as Float64 behind a `d` where that would round one."""
    exact = np.array(values, dtype="<f8")
    with np.errstate(over="ignore"):
        single = exact.astype("<f4")
    if np.array_equal(single.astype("<f8"), exact, equal_nan=True):
        return b"f" + single.tobytes()
    return b"d" + exact.tobytes()


def _values(column: bytes, count: int) -> list[float] | None:
    """Undo `_column`; None unless there are `count`."""
    kind = {b"f": "<f4", b"d": "<f8"}.get(column[:1])
    if kind is None or (len(column) - 1) != count * int(kind[-1]):
        return None
    values: list[float] = np.frombuffer(column, dtype=kind, offset=1).astype(np.float64).tolist()
    return values
