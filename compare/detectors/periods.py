"""Finds periodic stretches (loops) in a sequence, in near-linear time whatever the input.

A sequence is a string whose characters are the symbols: the text itself, or tokens mapped to one
private character each by `as_symbols`. One search serves both.

Method. Anchors stand every `stride` symbols (every `coarse_stride` before the last `tail` symbols, where
only long stretches matter). At an anchor, each later occurrence of the few symbols that start there (a
gram) proposes a period, and comparing the sequence with itself shifted by that period, at first over
the least length that would count, tells whether and how far it repeats. If a gram is so common that
its occurrences run out of turns, a longer gram is tried. An accepted stretch is skipped as a whole. So
the work at an anchor is bounded by `max_period` and constants, and the whole is linear in the length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_HITS = 6
_AT_ONCE = 64
_FIRST_SYMBOL = 0x10000  # above the surrogates: every symbol is a valid code point of its own


class Run(NamedTuple):
    """A half-open stretch [start, end) in which every symbol equals the one `period` before it."""

    start: int
    end: int
    period: int

    @property
    def length(self) -> int:
        """Symbols in the stretch."""
        return self.end - self.start

    @property
    def repeats(self) -> float:
        """How many periods fit: 3.5 means three copies and half a fourth."""
        return self.length / self.period


class Shape(NamedTuple):
    """Which stretches count. All lengths are in symbols.

    Accepted: at least `min_repeats` copies and `min_length` symbols; or a period of at least
    `long_period` with at least `long_repeats` copies, since a long unit does not recur by chance.
    """

    max_period: int
    min_repeats: float
    min_length: int
    long_period: int
    long_repeats: float
    grams: tuple[int, ...] = (8, 32, 128, 512)
    stride: int = 8
    coarse_stride: int = 64
    tail: int = 8192

    def least(self, period: int) -> int:
        """The least length of a stretch of this period that counts."""
        repeats = self.long_repeats if period >= self.long_period else self.min_repeats
        return max(self.min_length, math.ceil(repeats * period))

    def accepts(self, run: Run) -> bool:
        """Whether the stretch counts."""
        return run.length >= self.least(run.period)


def find_runs(symbols: str, shape: Shape) -> list[Run]:
    """Return the accepted stretches in order of their end. They may overlap."""
    marks = _marks(symbols, shape.grams[0])
    ordered = np.sort(marks)
    repeated = frozenset(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    if not repeated:
        return []
    runs: list[Run] = []
    anchor, fine_from, last = 0, len(symbols) - shape.tail, len(symbols) - shape.grams[0]
    while anchor < last:
        is_fine = anchor >= fine_from
        stride, end = (shape.stride, last) if is_fine else (shape.coarse_stride, min(fine_from, last))
        ahead = marks[anchor : min(end, anchor + _AT_ONCE * stride) : stride].tolist()
        # Most anchors of sane text are passed here: what starts at them comes once.
        for place in [anchor + n * stride for n, mark in enumerate(ahead) if mark in repeated]:
            if (run := _run_at(symbols, place, shape, stride)) is not None:
                runs.append(run)
                anchor = max(run.end, place + stride)
                break
        else:
            anchor += len(ahead) * stride
    return runs


def as_symbols(items: Iterable[object]) -> str:
    """Map equal items to equal characters, so that tokens can be searched as a string."""
    numbers: dict[object, str] = {}
    return "".join([numbers.setdefault(item, chr(_FIRST_SYMBOL + len(numbers))) for item in items])


def _marks(symbols: str, gram: int) -> NDArray[np.unsignedinteger]:
    """A number for each symbol: where `gram` symbols are the same as elsewhere, so are their numbers.

    It is made of the low bytes of the first eight (or four, ...) symbols; other grams may share it.
    """
    codes = np.frombuffer(symbols.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    size = next(size for size in (8, 4, 2, 1) if size <= gram)
    count = max(codes.size - size + 1, 0)
    return np.ndarray((count,), dtype=f"<u{size}", buffer=codes.astype(np.uint8), strides=(1,)).copy()


def _run_at(symbols: str, anchor: int, shape: Shape, stride: int) -> Run | None:
    tried: set[int] = set()
    for gram in shape.grams:
        if anchor + gram >= len(symbols):
            return None
        needle = symbols[anchor : anchor + gram]
        limit = min(len(symbols), anchor + shape.max_period + gram)
        hit = symbols.find(needle, anchor + 1, limit)
        hits = 0
        while hit != -1 and hits < _MAX_HITS:
            period = hit - anchor
            if period not in tried:
                tried.add(period)
                # A stretch that counts began at most a stride ago, so this much of it lies ahead.
                ahead = max(1, shape.least(period) - period - stride)
                if symbols[anchor : anchor + ahead] == symbols[hit : hit + ahead]:
                    run = _extend(symbols, anchor, period)
                    if shape.accepts(run):
                        return run
            hits += 1
            hit = symbols.find(needle, hit + 1, limit)
        if hit == -1:
            return None  # every period was tried: a longer gram has no other occurrences
    return None


def _extend(symbols: str, anchor: int, period: int) -> Run:
    ahead = _common(symbols, anchor, anchor + period, 1)
    behind = _common(symbols, anchor, anchor + period, -1)
    return Run(anchor - behind, anchor + period + ahead, period)


def _common(symbols: str, left: int, right: int, direction: int) -> int:
    """How many symbols agree from `left` and `right` on (or back, for -1), by doubling slices."""
    room = len(symbols) - right if direction == 1 else left
    agreed, step, is_narrowing = 0, 16, False
    while agreed < room:
        size = min(step, room - agreed)
        if direction == 1:
            i, j = left + agreed, right + agreed
        else:
            i, j = left - agreed - size, right - agreed - size
        if symbols[i : i + size] == symbols[j : j + size]:
            agreed += size
            if not is_narrowing:
                step *= 2
        elif size == 1:
            break
        else:
            is_narrowing, step = True, size // 2
    return agreed
