"""The tokens of an answer, as columns for those who reckon and as objects for those who show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import Any, Protocol, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.alternative import Alternative
from ingest.packed_texts import PackedTexts
from ingest.scan import keys_of

NO_ID = -1
"""Stands for a missing token id in a column of ids."""

NO_KEY = 0
"""Stands for unknown bytes in a column of keys."""


Places = NDArray[np.int64]
Distinct = tuple[list[str], NDArray[np.bool_]]
"""Texts, and of each whether the token's bytes are the text's."""


class Token(msgspec.Struct, frozen=True, gc=False):
    """One generated token with its list of alternatives.

    `top` is in falling order and may hold the sampled token as an appended entry beyond
    the ranked ones (`ranked` is how many lead the list; known mass beyond them is never the
    bound m). `logprob` is None where the server gave none or one that cannot be trusted.
    """

    text: str
    logprob: float | None
    raw: bytes | None = None
    id: int | None = None
    top: tuple[Alternative, ...] = ()
    ranked: int = 0


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """n tokens and, flat behind each other, the m entries of their lists.

    Entries of token i are `start[i]:start[i + 1]`. A key stands for a token's bytes: two are equal where
    the bytes are (but for a chance of 2**-64), within one process and those that it spawns.
    """

    logprob: NDArray[np.float64]
    """(n,) the chosen tokens' logprobs in nats, NaN where there is none."""
    id: NDArray[np.int64]
    """(n,) token ids, NO_ID where absent."""
    key: NDArray[np.uint64]
    """(n,) keys of the tokens' bytes, NO_KEY where the bytes are unknown."""
    ranked: NDArray[np.int64]
    """(n,) how many entries lead each list."""
    start: NDArray[np.int64]
    """(n + 1,)"""
    top_logprob: NDArray[np.float64]
    """(m,) natural, -inf where impossible."""
    top_id: NDArray[np.int64]
    """(m,)"""
    top_key: NDArray[np.uint64]
    """(m,)"""


class Backing(Protocol):
    """Tokens that are still in the text that a server sent, made into objects on demand."""

    columns: TokenColumns

    def texts(self) -> list[str]:
        """Return the chosen tokens' texts."""
        ...

    def packed_texts(self) -> PackedTexts:
        """Return the same, packed."""
        ...

    def top_texts(self, count: int | None) -> PackedTexts:
        """Return the texts of each token's first `count` alternatives (None: all), flat behind each other."""
        ...

    def distinct_texts(self, first: Places, numbers: Places) -> Distinct | None:
        """Return the texts of the entries at `first` of all lists, and whose bytes are the text's.

        Entry i has the bytes and the id of that at `first[numbers[i]]`. None if it has another text.
        """
        ...

    def token(self, place: int) -> Token:
        """Make one token."""
        ...

    def tokens(self) -> list[Token]:
        """Make all."""
        ...


class Tokens(Sequence[Token]):
    """The tokens of one answer, in order. Equal to any other sequence of the same tokens."""

    __slots__ = ("_backing", "_columns", "_objects", "_texts")

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._objects: tuple[Token, ...] | None = tuple(tokens)
        self._columns: TokenColumns | None = None
        self._backing: Backing | None = None
        self._texts: list[str] | None = None

    @classmethod
    def backed(cls, backing: Backing) -> Tokens:
        """Return tokens whose numbers are known and whose objects are made when somebody asks for them."""
        tokens = cls()
        tokens._objects, tokens._backing, tokens._columns = None, backing, backing.columns
        return tokens

    @property
    def columns(self) -> TokenColumns:
        """The numbers, made once."""
        if self._columns is None:
            self._columns = _columns_of(self._all())
        return self._columns

    @property
    def texts(self) -> list[str]:
        """The chosen tokens' texts."""
        if self._texts is None:
            known = self._backing
            self._texts = [token.text for token in self._all()] if known is None else known.texts()
        return self._texts

    @property
    def raws(self) -> list[bytes | None]:
        """The chosen tokens' bytes, None where they are unknown."""
        if self._backing is None:
            return [token.raw for token in self._all()]
        keys = self.columns.key
        raws: list[bytes | None] = [text.encode() for text in self.texts]
        for place in np.flatnonzero(keys_of(raws, NO_KEY) != keys).tolist():
            raws[place] = None if keys[place] == NO_KEY else self._backing.token(place).raw
        return raws

    @property
    def packed_texts(self) -> PackedTexts:
        """The chosen tokens' texts, packed."""
        return PackedTexts.of(self.texts) if self._backing is None else self._backing.packed_texts()

    def top_texts(self, count: int | None = None) -> PackedTexts:
        """Return the texts of each token's first `count` alternatives (None: all), flat behind each other."""
        return top_texts(self._all(), count) if self._backing is None else self._backing.top_texts(count)

    def distinct_texts(self, first: Places, numbers: Places) -> Distinct | None:
        """Return the texts of the entries at `first` of all lists, and whose bytes are the text's.

        Entry i has the bytes and the id of that at `first[numbers[i]]`. None if it has another text.
        """
        if self._backing is None:
            written = top_texts(self._all(), None)
            return distinct_texts(written, self.columns.top_key, first, numbers)
        return self._backing.distinct_texts(first, numbers)

    def __len__(self) -> int:
        return len(self._objects) if self._objects is not None else len(self.columns.id)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, index: int | slice) -> Token | tuple[Token, ...]:
        if self._backing is not None and isinstance(index, int):
            return self._backing.token(range(len(self))[index])
        return self._all()[index]

    def __iter__(self) -> Iterator[Token]:
        return iter(self._all())

    def _all(self) -> tuple[Token, ...]:
        if self._objects is None:
            assert self._backing is not None
            self._objects = tuple(self._backing.tokens())
            # The text behind them has nothing more to tell.
            self._backing = None
        return self._objects

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return f"Tokens({self._all()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what is known, as it is known: the text behind the tokens, else their fields.

        Thousands of alternatives, one by one, would take fifty times as long as the text.
        """
        if self._objects is None:
            return Tokens.backed, (self._backing,)
        return _with_columns, (*_fields_of(self._objects), self._columns)


def top_texts(tokens: Sequence[Token], count: int | None) -> PackedTexts:
    """Return the texts of each token's first `count` alternatives (None: all), flat behind each other."""
    return PackedTexts.of([entry.text for token in tokens for entry in token.top[:count]])


def distinct_texts(
    written: PackedTexts, keys: NDArray[np.uint64], first: Places, numbers: Places
) -> Distinct | None:
    """Do what `Tokens.distinct_texts` does with the texts and keys of all entries."""
    texts = written.listed()
    distinct = [texts[place] for place in first.tolist()]
    if [distinct[number] for number in numbers.tolist()] != texts:
        return None
    return distinct, keys_of([text.encode() for text in distinct], NO_KEY) == keys[first]


def key_of(raw: bytes | None) -> int:
    """Return the key of a token's bytes, NO_KEY for None."""
    return int(keys_of([raw], NO_KEY)[0])


_Fields = tuple[list[Any], ...]


def _fields_of(tokens: Sequence[Token]) -> tuple[_Fields, _Fields]:
    """Return the fields of tokens and of all their entries, each a flat list."""
    entries = list(chain.from_iterable(token.top for token in tokens))
    given = [entry.given_bytes for entry in entries]
    return (
        [token.text for token in tokens],
        [token.logprob for token in tokens],
        [token.raw for token in tokens],
        [token.id for token in tokens],
        [token.ranked for token in tokens],
        [len(token.top) for token in tokens],
    ), (
        [entry.text for entry in entries],
        [entry.logprob for entry in entries],
        [bytes(item) if isinstance(item, msgspec.Raw) else item for item in given],
        [entry.id for entry in entries],
        [isinstance(item, msgspec.Raw) for item in given],
    )


def _with_columns(tokens: _Fields, entries: _Fields, columns: TokenColumns | None) -> Tokens:
    """Undo `_fields_of`."""
    listed = (
        Alternative(text, logprob, msgspec.Raw(given) if is_raw else given, number)
        for text, logprob, given, number, is_raw in zip(*entries, strict=True)
    )
    made = Tokens(
        Token(text, logprob, raw, number, tuple(islice(listed, size)), ranked)
        for text, logprob, raw, number, ranked, size in zip(*tokens, strict=True)
    )
    made._columns = columns
    return made


def _columns_of(tokens: Sequence[Token]) -> TokenColumns:
    entries = list(chain.from_iterable(token.top for token in tokens))
    return TokenColumns(
        logprob=np.array([token.logprob for token in tokens], dtype=np.float64),
        id=np.array([NO_ID if token.id is None else token.id for token in tokens], dtype=np.int64),
        key=keys_of([token.raw for token in tokens], NO_KEY),
        ranked=np.array([token.ranked for token in tokens], dtype=np.int64),
        start=np.array([0, *accumulate(len(token.top) for token in tokens)], dtype=np.int64),
        top_logprob=np.array([entry.logprob for entry in entries], dtype=np.float64),
        top_id=np.array([NO_ID if entry.id is None else entry.id for entry in entries], dtype=np.int64),
        top_key=keys_of([entry.raw for entry in entries], NO_KEY),
    )
