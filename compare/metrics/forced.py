"""Numbers on the reference's own tokens: the `*_forced_*` scores (teacher-forced scoring).

Every position has both distributions in the same context, so nothing is lost when the answers part.
The scores are those of llama.cpp's `llama-perplexity --kl-divergence`, from top-k reports.
"""

from __future__ import annotations

import math

import numpy as np

from compare.metrics.pair_summary import PairSummary
from compare.metrics.sides import Sides
from compare.result import Scores
from ingest.pair import Forced
from ingest.tokens import Tokens

KL_PERCENTILES = {"p99": 0.99}
CHANGE_PERCENTILES = {"p1": 0.01, "p99": 0.99}
_NAMES = (
    "kl_forced_mean_nats",
    "kl_forced_max_nats",
    *(f"kl_forced_{label}_nats" for label in KL_PERCENTILES),
    "js_forced_lower_mean_nats",
    "js_forced_upper_mean_nats",
    "top1_agreement_forced_ratio",
    "probability_change_forced_mean",
    "probability_change_forced_rms",
    *(f"probability_change_forced_{label}" for label in CHANGE_PERCENTILES),
    "perplexity_forced_ratio",
)
_LARGEST_EXPONENT = 700.0


def forced_reason(sides: Sides, list_reason: str | None) -> str | None:
    """Return why a pair has no forced scores as a whole.

    `not_asked` (not chosen for forced scoring, and every noise pair), why the lists say nothing
    (`list_reason`), or the reason why there are no positions.
    """
    forced = sides.forced
    if forced is None:
        return "not_asked"
    return list_reason or forced.unscored or (None if len(forced.reference) else "no_logprobs")


def score_forced(reason: str | None, summary: PairSummary, place: int, scores: Scores) -> None:
    """Put the forced scores; the pair's positions are those of `place` in the summary.

    The perplexity ratio is exp(mean(log p - log q)) over the forced tokens. A forced token that the
    candidate's list lacks has at most the last ranked probability; counting it so makes the ratio a
    lower bound, where leaving it out would hide just the worst positions.
    """
    if reason is not None:
        for name in _NAMES:
            scores.skip(name, reason)
        return
    summary.put(place, "forced", KL_PERCENTILES, CHANGE_PERCENTILES, scores)
    mean = summary.log_ratio[place]
    if mean is None:
        scores.skip("perplexity_forced_ratio", "no_logprobs")
    elif not mean < _LARGEST_EXPONENT:
        scores.skip("perplexity_forced_ratio", "infinite")
    else:
        scores.put("perplexity_forced_ratio", math.exp(mean))


def forced_indices(forced: Forced, answer: Tokens) -> list[int]:
    """Return where the forced tokens stand in the reference's answer.

    They are its tokens in their order, but for some that were passed over; two tokens of one id are told
    apart by that order alone, the first fit being taken.
    """
    ids = forced.reference.columns.id
    own = answer.columns.id
    if len(ids) <= len(own) and np.array_equal(own[: len(ids)], ids):
        return list(range(len(ids)))
    places: list[int] = []
    listed, place = own.tolist(), 0
    for token_id in ids.tolist():
        try:
            place = listed.index(token_id, place) + 1
        except ValueError:
            place += 1  # the answer lacks it: as good a place as any
        places.append(place - 1)
    return places
