"""The first position where the chosen tokens differ (design, section 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compare.metrics.distribution import same_token
from compare.result import Divergence
from ingest.observation import MAX_LOGPROB_TOKENS, Observation
from ingest.tokens import Token

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
    for index, (a, b) in enumerate(zip(reference.tokens, candidate.tokens, strict=False)):
        same = same_token(a, b)
        if same is None:
            # The positions before it share their context all the same; behind it nothing is known.
            return CommonPrefix(index, index, reason=None if index else "no_token_identity")
        if not same:
            gaps = _gap(a, b), _gap(b, a)
            is_near_tie = all(gap is not None and abs(gap) < near_tie_nats for gap in gaps)
            return CommonPrefix(
                index, index + 1, Divergence(index, a.text, b.text, gaps[0], gaps[1], is_near_tie)
            )
    common = min(len(reference.tokens), len(candidate.tokens))
    return CommonPrefix(common, common, _end_on_one_side(reference, candidate, common))


def _end_on_one_side(reference: Observation, candidate: Observation, common: int) -> Divergence | None:
    """Return the divergence where one answer goes on after the other's last token."""
    if len(reference.tokens) == len(candidate.tokens):
        return None
    if len(reference.tokens) == common:
        ended, texts = reference, (END, candidate.tokens[common].text)
    else:
        ended, texts = candidate, (reference.tokens[common].text, END)
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


def _gap(chosen: Token, other: Token) -> float | None:
    """Return log p(chosen) - log p(other) in the list of `chosen`, None where it lacks either."""
    own, theirs = _logprob_in(chosen, chosen), _logprob_in(chosen, other)
    return None if own is None or theirs is None else own - theirs


def _logprob_in(holder: Token, token: Token) -> float | None:
    for entry in holder.top:
        if same_token(entry, token) and math.isfinite(entry.logprob):
            return entry.logprob
    own = holder.logprob
    return own if holder is token and own is not None and math.isfinite(own) else None
