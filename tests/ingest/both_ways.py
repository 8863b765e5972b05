"""Read an answer with the scanner and without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from unittest.mock import patch

import msgspec
import numpy as np

from ingest.answer import StreamReader
from ingest.observation import Observation
from ingest.scanned import ScannedTokens, new_scanner
from ingest.tokens import TokenColumns, Tokens
from ingest.triples import TripleTokens, lift_triples


def read(pieces: Sequence[bytes], asked: int | None, *, scans: bool) -> Observation:
    def no_scanner(asked: int | None) -> None:
        return None

    def no_triples(source: msgspec.Raw, asked: int | None, room: int) -> None:
        return None

    with (
        patch("ingest.gathered.new_scanner", new_scanner if scans else no_scanner),
        patch("ingest.dialects.sglang.lift_triples", lift_triples if scans else no_triples),
    ):
        reader = StreamReader(asked=asked)
        for piece in pieces:
            reader.feed(piece)
        return reader.finish()


def is_scanned(seen: Observation) -> bool:
    return isinstance(seen.tokens._backing, (ScannedTokens, TripleTokens))


def same_columns(a: TokenColumns, b: TokenColumns) -> bool:
    return all(
        getattr(a, field.name).dtype == getattr(b, field.name).dtype
        and np.array_equal(getattr(a, field.name), getattr(b, field.name), equal_nan="logprob" in field.name)
        for field in fields(TokenColumns)
    )


def check(pieces: Sequence[bytes], asked: int | None) -> bool:
    """Compare everything there is to an answer; returns whether the scanner had a part in it."""
    known, seen = read(pieces, asked, scans=False), read(pieces, asked, scans=True)
    was_scanned = is_scanned(seen)
    assert not is_scanned(known)
    assert len(seen.tokens) == len(known.tokens)
    assert same_columns(seen.tokens.columns, known.tokens.columns)
    # By columns, one by one, and all at once: three ways to the same objects.
    assert seen.tokens.texts == [token.text for token in known.tokens]
    assert seen.tokens.raws == [token.raw for token in known.tokens]
    for count in (0, 1, 2, 5, None):
        texts = [entry.text for token in known.tokens for entry in token.top[:count]]
        assert seen.tokens.top_texts(count).listed() == texts
    assert seen.tokens.packed_texts.listed() == seen.tokens.texts
    assert is_scanned(seen) == was_scanned
    assert [seen.tokens[place] for place in range(len(seen.tokens))] == list(known.tokens)
    assert same_columns(Tokens(seen.tokens).columns, known.tokens.columns)
    assert seen == known
    assert seen.notes == known.notes
    return was_scanned


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = [*sorted(places), len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
