"""The first position where the chosen tokens differ (design, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from compare.result import Divergence
from ingest.observation import MAX_LOGPROB_TOKENS, Observation
from ingest.tokens import NO_ID, NO_KEY, TokenColumns

END = "<end>"
"""Stands for the token of the side that had ended."""


@dataclass(frozen=True, slots=True)
class CommonPrefix:
    """How far two answers go together.

    `tokens` leading tokens are the same. The first `positions` positions share their context and have
    a token on both sides: `tokens`, and the diverging one unless a side had ended. `reason` says why
    the tokens cannot be compared.
    """

    tokens: int = 0
    positions: int = 0
    divergence: Divergence | None = None
    reason: str | None = None


def common_prefix(reference: Observation, candidate: Observation, near_tie_nats: float) -> CommonPrefix:
    """Walk both answers to their first difference.

    Tokens are told apart by id, else by bytes. A token with neither ends the prefix before it, without
    a divergence; if it is the first one the reason is `no_token_identity`. A near tie has both
    gaps known and under `near_tie_nats`: 0.25 is twice the step of a bf16 logit between 16 and 32.
    """
    a, b = reference.tokens.columns, candidate.tokens.columns
    common = min(len(a.id), len(b.id))
    index = _same_until(a, b, common)
    if index < common:
        if not _is_told(a, b, index):
            # The positions before it share their context all the same; behind it nothing is known.
            return CommonPrefix(index, index, reason=None if index else "no_token_identity")
        gaps = _gap(a, b, index), _gap(b, a, index)
        is_near_tie = all(gap is not None and abs(gap) < near_tie_nats for gap in gaps)
        texts = reference.tokens.texts[index], candidate.tokens.texts[index]
        return CommonPrefix(index, index + 1, Divergence(index, *texts, gaps[0], gaps[1], is_near_tie))
    return CommonPrefix(common, common, _end_on_one_side(reference, candidate, common))


def _same_until(a: TokenColumns, b: TokenColumns, common: int) -> int:
    """Return how many leading tokens are surely the same."""
    ids_a, ids_b = a.id[:common], b.id[:common]
    is_same = (ids_a == ids_b) & (ids_a != NO_ID)
    first = _first_false(is_same)
    if first == common:
        return common
    # Only where an id is missing do the bytes decide.
    keys_a = a.key[:common]
    by_key = ((ids_a == NO_ID) | (ids_b == NO_ID)) & (keys_a == b.key[:common]) & (keys_a != NO_KEY)
    return _first_false(is_same | by_key)


def _first_false(values: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    place = int(np.argmin(values)) if len(values) else 0
    return len(values) if not len(values) or values[place] else place


def _is_told(a: TokenColumns, b: TokenColumns, index: int) -> bool:
    has_ids = a.id[index] != NO_ID and b.id[index] != NO_ID
    return bool(has_ids or (a.key[index] != NO_KEY and b.key[index] != NO_KEY))


def _end_on_one_side(reference: Observation, candidate: Observation, common: int) -> Divergence | None:
    """Return the divergence where one answer goes on after the other's last token."""
    if len(reference.tokens) == len(candidate.tokens):
        return None
    if len(reference.tokens) == common:
        ended, texts = reference, (END, candidate.tokens.texts[common])
    else:
        ended, texts = candidate, (reference.tokens.texts[common], END)
    if _is_cut(ended):
        return None
    # The list at the end's own position is not sent, so neither gap is known.
    return Divergence(common, texts[0], texts[1], None, None, False)


def _is_cut(observation: Observation) -> bool:
    """Whether tokens are missing at the end though the answer went on."""
    count = len(observation.tokens)
    # One more may be counted than is listed: the end token.
    is_short = observation.completion_tokens is not None and observation.completion_tokens > count + 1
    return count >= MAX_LOGPROB_TOKENS or is_short


def _gap(holder: TokenColumns, other: TokenColumns, index: int) -> float | None:
    """Return log p(chosen) - log p(other's token) in the list of `holder`, None where it lacks either."""
    own = _logprob_in(holder, index, holder)
    if own is None:
        own = float(holder.logprob[index])
    theirs = _logprob_in(holder, index, other)
    return None if theirs is None or not math.isfinite(own) else own - theirs


def _logprob_in(holder: TokenColumns, index: int, other: TokenColumns) -> float | None:
    """Return the logprob that a list gives another's chosen token, None where it lacks it."""
    token_id, key = int(other.id[index]), int(other.key[index])
    span = slice(int(holder.start[index]), int(holder.start[index + 1]))
    for entry_id, entry_key, logprob in zip(
        holder.top_id[span].tolist(),
        holder.top_key[span].tolist(),
        holder.top_logprob[span].tolist(),
        strict=True,
    ):
        if token_id != NO_ID and entry_id != NO_ID:
            is_same = token_id == entry_id
        else:
            is_same = key != NO_KEY and key == entry_key
        if is_same and math.isfinite(logprob):
            return float(logprob)
    return None
