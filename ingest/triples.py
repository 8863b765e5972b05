"""Triples [logprob, id, text or null], as SGLang's own route writes them.

All positions are decoded at once and checked as columns. Objects, where somebody asks for them, are made
position by position from the same bytes, and so is everything that is not regular.
"""

from __future__ import annotations

import re
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.alternatives import ROUNDING, SURE
from ingest.fields import decoded, items_of
from ingest.leading_texts import texts_of_triples
from ingest.logprobs import AS_ID, DIFFERENCE_NATS, Head, clean_name, make_token
from ingest.packed_texts import PackedTexts
from ingest.token_bytes import has_foreign_marks
from ingest.tokens import NO_KEY, Distinct, Places, Token, TokenColumns, distinct_texts, top_texts
from ingest.wire import MAX_FAST_BYTES, Listed
from ingest.wire_lenient import as_float, as_int

_IDS = 2**31
_NULL = msgspec.Raw(b"null")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class _Head(msgspec.Struct, array_like=True, gc=False):
    logprob: float
    id: int
    text: str | None


class _Pair(msgspec.Struct, array_like=True, gc=False):
    """A triple whose text is passed over: thousands of them, and hardly anybody asks."""

    logprob: float
    id: int


class Meta(msgspec.Struct):
    """`meta_info`, its regular lists decoded."""

    output_token_logprobs: list[_Head]
    output_top_logprobs: list[list[_Pair]] | None = None
    prompt_tokens: msgspec.Raw = _NULL
    completion_tokens: msgspec.Raw = _NULL
    finish_reason: msgspec.Raw = _NULL
    spec_verify_ct: msgspec.Raw = _NULL


class _RawLists(msgspec.Struct):
    output_token_logprobs: list[msgspec.Raw]
    output_top_logprobs: list[msgspec.Raw] | None = None


_META = msgspec.json.Decoder(Meta)
_RAW_LISTS = msgspec.json.Decoder(_RawLists)
_TRIPLE = msgspec.json.Decoder(tuple[float | None, int, str | None])
_TRIPLES = msgspec.json.Decoder(list[tuple[float | None, int, str | None]] | None)
_NOT_SOUND = (msgspec.MsgspecError, ValueError, RecursionError)


class TripleTokens:
    """n tokens as they stand in `meta_info`; a `Backing` of `Tokens`. All of them have ids."""

    def __init__(
        self, columns: TokenColumns, texts: list[str], source: msgspec.Raw, asked: int | None
    ) -> None:
        self.columns = columns
        self._texts = texts
        self._source = source
        self._asked = asked
        self._positions: list[tuple[msgspec.Raw, msgspec.Raw | None]] | None = None

    def texts(self) -> list[str]:
        """Return the chosen tokens' texts."""
        return self._texts

    def packed_texts(self) -> PackedTexts:
        """Return the same, packed."""
        return PackedTexts.of(self._texts)

    def top_texts(self, count: int | None) -> PackedTexts:
        """Return the texts of each token's first `count` alternatives (None: all), flat behind each other."""
        texts = texts_of_triples(self._source, count)
        return top_texts(self.tokens(), count) if texts is None else PackedTexts.of(texts)

    def distinct_texts(self, first: Places, numbers: Places) -> Distinct | None:
        """See `Tokens.distinct_texts`."""
        return distinct_texts(self.top_texts(None), self.columns.top_key, first, numbers)

    def token(self, place: int) -> Token:
        """Make one token."""
        raw, top = self._raw()[place]
        return read_position(raw, top, self._asked, {})

    def tokens(self) -> list[Token]:
        """Make all."""
        notes: dict[str, None] = {}
        return [read_position(raw, top, self._asked, notes) for raw, top in self._raw()]

    def first(self) -> bytes:
        """Return the first triple as the server wrote it."""
        return bytes(self._raw()[0][0])

    def is_trusted(self, body: str) -> bool:
        """Whether `ingest.logprob_trust.trusted` would take nothing out; `body` is reasoning and text.

        False where it would, or might; then it must be asked.
        """
        columns = self.columns
        sizes = np.diff(columns.start)
        most = int(sizes.max())
        if columns.logprob[0] == 0.0 and most <= 1:
            return False
        listed = sizes[sizes > 0]
        if len(listed) and int(listed.min()) < max(self._asked or 0, most):
            return False
        return not has_foreign_marks("".join(self._texts), body)

    def _raw(self) -> list[tuple[msgspec.Raw, msgspec.Raw | None]]:
        if self._positions is None:
            lists = _RAW_LISTS.decode(self._source)
            heads, tops = lists.output_token_logprobs, lists.output_top_logprobs
            places = zip(heads, tops, strict=True) if tops else ((head, None) for head in heads)
            self._positions = list(places)
        return self._positions


def lift_triples(source: msgspec.Raw, asked: int | None, room: int) -> tuple[Meta, TripleTokens] | None:
    """Take a `meta_info` of at most `room` tokens; None where it is not regular, read it one by one then."""
    if len(memoryview(source)) > MAX_FAST_BYTES or (asked is not None and asked < 0):
        return None
    data = bytes(source)
    if b"\\u" in data and _SURROGATE.search(data):
        return None
    try:
        meta = _META.decode(data)
        # The texts that were passed over must be such as a strict reader takes.
        str(data, "utf-8")
    except _NOT_SOUND:
        return None
    heads, tops = (
        meta.output_token_logprobs,
        meta.output_top_logprobs or [[]] * len(meta.output_token_logprobs),
    )
    if not 0 < len(heads) <= room or len(tops) != len(heads):
        return None
    texts = [head.text or "" for head in heads]
    if AS_ID in "".join(texts):
        return None
    columns = _columns(heads, tops, asked)
    return None if columns is None else (meta, TripleTokens(columns, texts, source, asked))


def _columns(heads: list[_Head], tops: list[list[_Pair]], asked: int | None) -> TokenColumns | None:
    """Return what `make_token` would make of each position, None if it repairs or notes anything."""
    count = len(heads)
    sizes = np.fromiter(map(len, tops), np.int64, count)
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(sizes, out=start[1:])
    pairs = list(chain.from_iterable(tops))
    try:
        given = np.fromiter([head.logprob for head in heads], np.float64, count)
        ids = np.fromiter([head.id for head in heads], np.int64, count)
        values = np.fromiter([pair.logprob for pair in pairs], np.float64, len(pairs))
        top_ids = np.fromiter([pair.id for pair in pairs], np.int64, len(pairs))
    except OverflowError:
        return None
    if asked and int(sizes.max()) > asked + 1:
        return None
    if not (_are_ids(ids) and _are_ids(top_ids) and _fall(values, start)):
        return None
    if float(given.max()) > ROUNDING or float(given.min()) <= SURE:
        return None
    logprob = np.where(given < 0.0, given, 0.0)
    row = np.repeat(np.arange(count), sizes)
    each = np.sort(row * _IDS + top_ids)
    if (each[1:] == each[:-1]).any():
        return None
    own = np.flatnonzero(top_ids == ids[row])
    place = row[own]
    if (np.abs(logprob[place] - values[own]) > DIFFERENCE_NATS).any():
        return None
    if _may_be_stale(place, values, start):
        return None
    ranked = sizes.copy()
    # The same rule as in `make_token`: listed because it was sampled.
    is_appended = (own == start[place + 1] - 1) & (own > start[place])
    if asked is not None:
        is_appended &= sizes[place] > asked
    ranked[place[is_appended]] -= 1
    return TokenColumns(
        logprob=logprob,
        id=ids,
        key=np.full(count, NO_KEY, dtype=np.uint64),
        ranked=ranked,
        start=start,
        top_logprob=values,
        top_id=top_ids,
        top_key=np.full(len(pairs), NO_KEY, dtype=np.uint64),
    )


def _are_ids(numbers: NDArray[np.int64]) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < _IDS)


def _fall(values: NDArray[np.float64], start: NDArray[np.int64]) -> bool:
    """Whether every list falls, from 0 at most, and holds nothing that might stand for impossible."""
    if not len(values):
        return True
    if float(values.max()) > 0.0 or float(values.min()) <= SURE:
        return False
    rises = values[1:] > values[:-1]
    begins = start[(start > 0) & (start < len(values))]
    rises[begins - 1] = False
    return not rises.any()


def _may_be_stale(place: NDArray[np.int64], values: NDArray[np.float64], start: NDArray[np.int64]) -> bool:
    """Whether a list without its own token, those at `place` have it, may be the list before it."""
    is_unlisted = np.diff(start) > 0
    is_unlisted[place] = False
    for here in np.flatnonzero(is_unlisted).tolist():
        if here:
            before, begin, end = start[here - 1 : here + 2].tolist()
            if np.array_equal(values[before:begin], values[begin:end]):
                return True
    return False


def read_position(
    raw: msgspec.Raw, top: msgspec.Raw | None, asked: int | None, notes: dict[str, None]
) -> Token:
    """Read one token and its list."""
    head = _listed(raw, notes)
    listed: list[Listed] = []
    if top is not None:
        try:
            listed = [
                Listed(text or "", logprob, None, number if 0 <= number < _IDS else None)
                for logprob, number, text in _TRIPLES.decode(top) or ()
            ]
        except _NOT_SOUND:
            listed = [_listed(item, notes) for item in items_of(top, notes) or ()]
    return make_token(Head(head.token, head.logprob, None, head.id), listed, asked, notes)


def _listed(raw: msgspec.Raw, notes: dict[str, None]) -> Listed:
    try:
        logprob, number, text = _TRIPLE.decode(raw)
        return Listed(text or "", logprob, None, number if 0 <= number < _IDS else None)
    except _NOT_SOUND:
        value = decoded(raw, notes)
    if not isinstance(value, list):
        notes["odd_logprobs"] = None
        return Listed()
    given, identity, name = [*value, None, None, None][:3]
    known = as_int(identity)
    return Listed(
        clean_name(name, notes) if isinstance(name, str) else "",
        as_float(given),
        None,
        known if known is not None and 0 <= known < _IDS else None,
    )
