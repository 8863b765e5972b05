"""The texts of the entries that lead each list, cut out of JSON without making objects of the entries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import astuple

_TEXT = msgspec.json.Decoder(str)
# Beside its name an entry of a list has no string but its keys, hence no brace that is not its own.
_LISTED = r'\{[^}]*?"token": ?"([^"\\]*(?:\\.[^"\\]*)*)"[^}]*\}'


class _Triple(msgspec.Struct, array_like=True, gc=False):
    """[logprob, id, text or null]."""

    logprob: float
    id: int
    text: str | None = None


def texts_of_entries(entries: list[bytes], sizes: list[int], count: int | None) -> list[str] | None:
    """Return the texts of the first `count` alternatives (None: of all) of all entries of the chat shape.

    Entries are such as the scanner lifts: known keys only, each once, and lists of the given `sizes`. None
    where a list does not look like that.
    """
    names: list[bytes] = []
    for entry, size in zip(entries, sizes, strict=True):
        shown = size if count is None else min(count, size)
        if shown > 0:
            found = _first(shown).search(entry)
            if found is None:
                return None
            names += found.groups()
    return _strings(names)


def _strings(names: list[bytes]) -> list[str]:
    """Return the texts of JSON strings whose quotes are off."""
    if not names:
        return []
    escaped = {place: _TEXT.decode(b'"%b"' % name) for place, name in enumerate(names) if b"\\" in name}
    for place in escaped:
        # It may have a quote in it, which parts the others.
        names[place] = b""
    texts = b'"'.join(names).decode().split('"')
    for place, text in escaped.items():
        texts[place] = text
    return texts


@cache
def _first(count: int) -> re.Pattern[bytes]:
    """A pattern for a list's first entries, a group for each name."""
    return re.compile(rf'"top_logprobs": ?\[{", ?".join([_LISTED] * count)}'.encode(), re.DOTALL)


def texts_of_triples(meta: bytes | msgspec.Raw, count: int | None) -> list[str] | None:
    """Return the same for the positions of an SGLang `meta_info` as `ingest.triples` lifts it.

    None where an entry is not one of two regular parts or more.
    """
    try:
        lists = _lists(count).decode(meta).output_top_logprobs
    except msgspec.MsgspecError:
        return None
    return [entry.text or "" for lead in lists or () for entry in _given(lead)]


def _given(lead: Any) -> Iterator[_Triple]:
    return (entry for entry in (lead if isinstance(lead, tuple) else astuple(lead)) if entry is not None)


@cache
def _lists(count: int | None) -> msgspec.json.Decoder[Any]:
    """A decoder that passes over all entries from the `count`-th on."""
    lead: Any = tuple[_Triple, ...]
    if count is not None:
        fields: list[Any] = [(f"entry_{place}", _Triple, None) for place in range(count)]
        lead = msgspec.defstruct("_Lead", fields, array_like=True, gc=False)
    kind: Any = list[lead] | None
    return msgspec.json.Decoder(msgspec.defstruct("_Meta", [("output_top_logprobs", kind, None)], gc=False))
