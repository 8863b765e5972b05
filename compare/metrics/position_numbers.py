"""Every number of every position, for the positions of a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.metrics.agreement import top1_agreement
from compare.metrics.blocks import Block, Stretch, blocks_of
from compare.metrics.distribution import Codes, Floats, Ints, Positions, normalise
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.metrics.js import js_bounds
from compare.metrics.kl import kl_lower
from compare.metrics.overlap import overlap
from compare.metrics.probability import ChosenTokens, log_ratio, probability_change


@dataclass(frozen=True, slots=True)
class SideNumbers:
    """(n,) one side's entropy bounds in nats, NaN where there is none, and why (POSITION_REASONS)."""

    lower: Floats
    upper: Floats
    """NaN also where the size of the vocabulary is not known, or stated too small for the list."""
    reason: Codes

    def part(self, rows: slice) -> SideNumbers:
        """Return some positions."""
        return SideNumbers(self.lower[rows], self.upper[rows], self.reason[rows])


@dataclass(frozen=True, slots=True)
class PairNumbers:
    """(n,) what both sides say of positions that share their context; NaN where there is no number."""

    reference: SideNumbers
    candidate: SideNumbers
    kl: Floats
    kl_reason: Codes
    js_lower: Floats
    js_upper: Floats
    agreement: Floats
    """1 where both lists lead with one token, else 0."""
    reason: Codes
    """Why there is no JS and no agreement: those of KL but for `infinite`."""
    change: Floats
    """The candidate's probability of the reference's chosen token minus the reference's own."""
    log_ratio: Floats
    """The logarithm of the reference's over the candidate's, infinite where the candidate excludes it."""

    def part(self, rows: slice) -> PairNumbers:
        """Return some positions."""
        return PairNumbers(
            self.reference.part(rows),
            self.candidate.part(rows),
            self.kl[rows],
            self.kl_reason[rows],
            self.js_lower[rows],
            self.js_upper[rows],
            self.agreement[rows],
            self.reason[rows],
            self.change[rows],
            self.log_ratio[rows],
        )


def side_numbers(stretches: Sequence[Stretch]) -> SideNumbers:
    """Work out the positions of stretches of one side, behind each other."""
    blocks = [_side(normalise(block.sides[0]), block.vocabulary_size) for block in blocks_of(stretches)]
    return _join_sides(blocks)


def pair_numbers(stretches: Sequence[Stretch]) -> PairNumbers:
    """Work out the positions of stretches of two sides, behind each other."""
    blocks = [_pair(block) for block in blocks_of(stretches)]
    if len(blocks) == 1:
        return blocks[0]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(block, name) for block in blocks]) if blocks else np.zeros(0)

    def codes(name: str) -> Codes:
        return joined(name).astype(np.uint8)

    return PairNumbers(
        _join_sides([block.reference for block in blocks]),
        _join_sides([block.candidate for block in blocks]),
        joined("kl"),
        codes("kl_reason"),
        joined("js_lower"),
        joined("js_upper"),
        joined("agreement"),
        codes("reason"),
        joined("change"),
        joined("log_ratio"),
    )


def _pair(block: Block) -> PairNumbers:
    reference, candidate = (normalise(columns) for columns in block.sides)
    shared = overlap(reference, candidate)
    kl = kl_lower(reference, candidate, shared)
    js = js_bounds(reference, candidate, shared)
    chosen = ChosenTokens(block.sides[0], reference, candidate, shared)
    return PairNumbers(
        _side(reference, block.vocabulary_size),
        _side(candidate, block.vocabulary_size),
        _scored(kl.nats, kl.reason),
        kl.reason,
        _scored(js.lower, shared.reason),
        _scored(js.upper, shared.reason),
        _scored(top1_agreement(reference, candidate, shared), shared.reason),
        shared.reason,
        _scored(probability_change(chosen, candidate), shared.reason),
        _scored(log_ratio(chosen, candidate), shared.reason),
    )


def _side(positions: Positions, vocabulary_size: Ints) -> SideNumbers:
    lower = _scored(entropy_lower(positions), positions.reason)
    if not vocabulary_size.any():
        return SideNumbers(lower, np.full_like(lower, np.nan), positions.reason)
    upper = _scored(entropy_upper(positions, vocabulary_size), positions.reason)
    return SideNumbers(
        lower, np.where((vocabulary_size > 0) & (upper < np.inf), upper, np.nan), positions.reason
    )


def _join_sides(sides: Sequence[SideNumbers]) -> SideNumbers:
    if not sides:
        return SideNumbers(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.uint8))
    return SideNumbers(
        np.concatenate([side.lower for side in sides]),
        np.concatenate([side.upper for side in sides]),
        np.concatenate([side.reason for side in sides]),
    )


def _scored(values: Floats, reason: Codes) -> Floats:
    return np.where(reason == 0, values, np.nan)
