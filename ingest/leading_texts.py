"""The texts of the entries that lead each list of an SGLang answer, without making objects of the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import astuple


class _Triple(msgspec.Struct, array_like=True, gc=False):
    """[logprob, id, text or null]."""

    logprob: float
    id: int
    text: str | None = None


def texts_of_triples(meta: bytes | msgspec.Raw, count: int | None) -> list[str] | None:
    """Return the texts of the first `count` alternatives (None: of all) of all positions.

    `meta` is an SGLang `meta_info` as `ingest.triples` lifts it. None where an entry is not one of two
    regular parts or more.
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
