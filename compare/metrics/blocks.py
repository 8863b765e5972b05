"""Cuts the positions of many answers into blocks that numpy works on at once.

A block is large enough that the cost of a call is spread over many positions, and small enough that its
arrays stay in the processor's cache; so memory is bounded whatever the batch holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from compare.metrics.distribution import Ints, Keys
from ingest.tokens import NO_ID, NO_KEY, TokenColumns

BLOCK_CELLS = 1 << 16
"""List entries of one side in a block, padding counted: 512 KiB an array."""


class Stretch(NamedTuple):
    """Positions [start, end) of the answers of one or more sides, side by side.

    Position i of one side has the same context as position i of the others.
    """

    sides: tuple[TokenColumns, ...]
    start: int
    end: int
    vocabulary_size: int | None


class Block(NamedTuple):
    """Consecutive positions of one or more stretches, joined."""

    sides: tuple[TokenColumns, ...]
    vocabulary_size: Ints
    """(n,) 0 where it is not known."""


def blocks_of(stretches: Sequence[Stretch], cells: int = BLOCK_CELLS) -> Iterator[Block]:
    """Yield blocks that hold every position of the stretches, in order."""
    parts: list[Stretch] = []
    positions, widest = 0, 1
    for stretch in stretches:
        start, end = stretch.start, stretch.end
        if start >= end:
            continue
        width = max(_widest(side, start, end) for side in stretch.sides)
        while start < end:
            widest = max(widest, width)
            room = cells // widest - positions
            if room <= 0 and parts:
                yield _joined(parts)
                parts, positions, widest = [], 0, 1
                continue
            stop = min(end, start + max(room, 1))
            parts.append(stretch._replace(start=start, end=stop))
            positions += stop - start
            start = stop
    if parts:
        yield _joined(parts)


def _widest(columns: TokenColumns, start: int, end: int) -> int:
    bounds = columns.start[start : end + 1]
    return max(int((bounds[1:] - bounds[:-1]).max()), 1)


def _joined(parts: Sequence[Stretch]) -> Block:
    sides = tuple(
        _join([(part.sides[side], part.start, part.end) for part in parts])
        for side in range(len(parts[0].sides))
    )
    sizes = [part.vocabulary_size or 0 for part in parts]
    return Block(sides, np.repeat(np.array(sizes, dtype=np.int64), [part.end - part.start for part in parts]))


def _join(parts: Sequence[tuple[TokenColumns, int, int]]) -> TokenColumns:
    """Lay stretches of columns behind each other.

    Where every token of them has an id nobody looks at the keys: then all are NO_KEY, in one place of memory.
    """
    ends: list[Ints] = [np.zeros(1, dtype=np.int64)]
    spans: list[tuple[TokenColumns, slice]] = []
    entries = 0
    for columns, start, end in parts:
        first, last = int(columns.start[start]), int(columns.start[end])
        ends.append(columns.start[start + 1 : end + 1] + (entries - first))
        entries += last - first
        spans.append((columns, slice(first, last)))
    ids = np.concatenate([columns.id[start:end] for columns, start, end in parts])
    top_ids = np.concatenate([columns.top_id[span] for columns, span in spans])
    if ids.min(initial=0) > NO_ID and top_ids.min(initial=0) > NO_ID:
        keys: Keys = np.broadcast_to(np.uint64(NO_KEY), len(ids))
        top_keys: Keys = np.broadcast_to(np.uint64(NO_KEY), len(top_ids))
    else:
        keys = np.concatenate([columns.key[start:end] for columns, start, end in parts])
        top_keys = np.concatenate([columns.top_key[span] for columns, span in spans])
    return TokenColumns(
        logprob=np.concatenate([columns.logprob[start:end] for columns, start, end in parts]),
        id=ids,
        key=keys,
        ranked=np.concatenate([columns.ranked[start:end] for columns, start, end in parts]),
        start=np.concatenate(ends),
        top_logprob=np.concatenate([columns.top_logprob[span] for columns, span in spans]),
        top_id=top_ids,
        top_key=top_keys,
    )
