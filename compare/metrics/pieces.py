"""Texts cut into the word pieces that an encoder reads, by the package `tokenizers` alone.

The same pieces as transformers' tokenizer gives, which is a wrapper around this one; it would bring torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Read(NamedTuple):
    """The pieces of one text: number, start and end in the text, and word of each (None: of no word)."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    words: list[int | None]


class PieceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tokenizer's file does not say of it."""

    unknown: int | None
    """The number of the piece that stands for what the encoder does not know."""
    padding: int
    splits_special: bool
    """Whether the name of a special piece within a text is read as text."""


class PieceReader:
    """Reads texts. Not to be used by two threads at once."""

    def __init__(self, tokenizer: Tokenizer, settings: PieceSettings) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = settings.splits_special
        self.settings = settings
        self._tokenizer = tokenizer
        whole, own = tokenizer.encode("a").ids, tokenizer.encode("a", add_special_tokens=False).ids
        start = next((n for n in range(len(whole)) if whole[n : n + len(own)] == own), len(whole))
        self._before, self._after = whole[:start], whole[start + len(own) :]

    @classmethod
    def of_file(cls, text: str, settings: PieceSettings) -> PieceReader:
        """Return the reader of a `tokenizer.json`, given as text."""
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_str(text), settings)

    @classmethod
    def of_library(cls, tokenizer: Any) -> PieceReader:
        """Return one that reads as a tokenizer of transformers does, whose own settings stay as they are.

        Raises AttributeError if that is one of the slow ones, which do not know where a piece stands.
        """
        settings = PieceSettings(
            tokenizer.unk_token_id, tokenizer.pad_token_id or 0, tokenizer.split_special_tokens
        )
        return cls.of_file(tokenizer.backend_tokenizer.to_str(), settings)

    @property
    def reads_words_alone(self) -> bool:
        """Whether a word's pieces do not depend on what stands before it, as in WordPiece."""
        return type(self._tokenizer.model).__name__ == "WordPiece"

    def read(self, text: str) -> Read:
        """Return the text's own pieces, all of them."""
        read = self._tokenizer.encode(text, add_special_tokens=False)
        return Read(read.ids, read.offsets, read.word_ids)

    def wrapped(self, pieces: Sequence[int], limit: int | None = None) -> list[int]:
        """Return pieces between the special ones, `limit` at most in all."""
        if limit is not None:
            pieces = pieces[: max(0, limit - len(self._before) - len(self._after))]
        return [*self._before, *pieces, *self._after]

    def as_file(self) -> str:
        """Return the text of its `tokenizer.json`."""
        text: str = self._tokenizer.to_str()
        return text
