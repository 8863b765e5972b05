"""Numbers on the reference's own tokens: the `*_forced_*` scores (teacher-forced scoring).

Every position has both distributions in the same context, so nothing is lost when the answers part.
The scores are those of llama.cpp's `llama-perplexity --kl-divergence`, from top-k reports.
"""

from __future__ import annotations

import math

import numpy as np

from compare.metrics.agreement import top1_agreement
from compare.metrics.distribution import Positions, forced_reports, normalise, overlap
from compare.metrics.kl import kl_lower
from compare.metrics.prefix import put_kl
from compare.metrics.sides import Sides, first_reason, scored_only
from compare.result import Scores
from ingest.pair import ForcedPosition
from ingest.replay_body import is_constrained

_NAMES = (
    "kl_forced_mean_nats",
    "kl_forced_p99_nats",
    "kl_forced_max_nats",
    "top1_agreement_forced_ratio",
    "perplexity_forced_ratio",
)
_LARGEST_EXPONENT = 700.0


def score_forced(sides: Sides, scores: Scores) -> None:
    """Put the forced scores.

    Unscored as a whole: `not_asked` (not chosen for forced scoring, and every noise pair),
    `constrained`, or the reason why there are no positions.
    """
    forced = sides.forced
    if forced is None:
        reason: str | None = "not_asked"
    elif is_constrained(sides.reference_body) or is_constrained(sides.candidate_body):
        reason = "constrained"
    else:
        reason = forced.unscored or (None if forced.positions else "no_logprobs")
    if reason is not None or forced is None:
        for name in _NAMES:
            scores.skip(name, reason or "not_asked")
        return
    reports = [forced_reports(position) for position in forced.positions]
    reference = normalise([report for report, _ in reports])
    candidate = normalise([report for _, report in reports])
    shared = overlap(reference, candidate)
    values = put_kl("kl_forced", kl_lower(reference, candidate, shared), scores)
    if len(values):
        # Linear interpolation between order statistics, numpy's default.
        scores.put("kl_forced_p99_nats", float(np.quantile(values, 0.99)))
    else:
        scores.skip("kl_forced_p99_nats", scores.unscored["kl_forced_mean_nats"])
    agreement = scored_only(top1_agreement(reference, candidate, shared), shared.reasons)
    if len(agreement):
        scores.put("top1_agreement_forced_ratio", float(agreement.mean()))
    else:
        scores.skip("top1_agreement_forced_ratio", first_reason(shared.reasons))
    _put_perplexity(forced.positions, candidate, scores)


def _put_perplexity(positions: tuple[ForcedPosition, ...], candidate: Positions, scores: Scores) -> None:
    """Put exp(mean(log p - log q)) over the forced tokens.

    A forced token that the candidate's list lacks has at most the last ranked probability; counting it
    so makes the ratio a lower bound, where leaving it out would hide just the worst positions.
    """
    gaps: list[float] = []
    for row, position in enumerate(positions):
        p, q = position.reference_logprob, position.candidate_logprob
        if q is None and candidate.reasons[row] is None:
            bound = 0.0 if candidate.is_exhausted[row] else float(candidate.last_ranked[row])
            q = math.log(bound) if bound > 0.0 else -math.inf
        if p is not None and q is not None and p > -math.inf:
            gaps.append(p - q)
    mean = sum(gaps) / len(gaps) if gaps else math.nan
    if not gaps:
        scores.skip("perplexity_forced_ratio", "no_logprobs")
    elif not mean < _LARGEST_EXPONENT:
        scores.skip("perplexity_forced_ratio", "infinite")
    else:
        scores.put("perplexity_forced_ratio", math.exp(mean))
