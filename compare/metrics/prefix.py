"""Token-level numbers on the common prefix: the `*_prefix_*` scores.

They are a survivor sample: a worse model leaves the common path earlier, so its prefix KL can even
fall. Decisions, alerts and calibration rest on the `*_forced_*` scores.
"""

from __future__ import annotations

from dataclasses import dataclass

from compare.metrics.divergence import CommonPrefix, common_prefix
from compare.metrics.pair_summary import PairSummary, put_or_skip
from compare.metrics.sides import Sides
from compare.result import Divergence, Scores
from ingest.pair import Mode

CHANGE_PERCENTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95}
_DISTRIBUTION_NAMES = (
    "divergence_gap_nats",
    "kl_prefix_mean_nats",
    "kl_prefix_max_nats",
    "js_prefix_lower_mean_nats",
    "js_prefix_upper_mean_nats",
    "entropy_shift_prefix_nats",
    "top1_agreement_prefix_ratio",
    "probability_change_prefix_mean",
    "probability_change_prefix_rms",
    *(f"probability_change_prefix_{label}" for label in CHANGE_PERCENTILES),
)


@dataclass(frozen=True, slots=True)
class PrefixPlan:
    """How far two answers go together; why nothing is scored, or nothing of the distributions."""

    common: CommonPrefix
    reason: str | None
    list_reason: str | None

    @property
    def positions(self) -> int:
        """How many positions have distributions to compare."""
        return 0 if self.reason or self.list_reason else self.common.positions


def plan_prefix(sides: Sides, list_reason: str | None, near_tie_nats: float) -> PrefixPlan:
    """Find the common prefix. Where the lists say nothing (`list_reason`) the chosen tokens still tell it."""
    reason = _reason(sides)
    if reason is not None:
        return PrefixPlan(CommonPrefix(), reason, None)
    common = common_prefix(sides.reference, sides.candidate, near_tie_nats)
    return PrefixPlan(common, common.reason, list_reason)


def score_prefix(plan: PrefixPlan, summary: PairSummary, place: int, scores: Scores) -> None:
    """Put the prefix scores; the pair's positions are those of `place` in the summary."""
    if plan.reason is not None:
        for name in ("prefix_tokens", *_DISTRIBUTION_NAMES):
            scores.skip(name, plan.reason)
        return
    scores.put("prefix_tokens", float(plan.common.tokens))
    if plan.list_reason is not None:
        for name in _DISTRIBUTION_NAMES:
            scores.skip(name, plan.list_reason)
        return
    _put_gap(plan.common.divergence, scores)
    summary.put(place, "prefix", {}, CHANGE_PERCENTILES, scores)
    reason = summary.side_reason[summary.spans[place]]
    put_or_skip("entropy_shift_prefix_nats", summary.shift[place], reason, scores)


def _put_gap(divergence: Divergence | None, scores: Scores) -> None:
    """Put the gap that decides whether the parting is a near tie."""
    if divergence is None:
        scores.skip("divergence_gap_nats", "no_divergence")
        return
    gaps = (divergence.reference_gap_nats, divergence.candidate_gap_nats)
    known = [abs(gap) for gap in gaps if gap is not None]
    if len(known) < len(gaps):
        scores.skip("divergence_gap_nats", "gap_unknown")
    else:
        scores.put("divergence_gap_nats", max(known))


def _reason(sides: Sides) -> str | None:
    if not sides.have_answers:
        return "no_answer"
    if sides.mode is not Mode.GREEDY:
        return "sampled"
    if sides.prompt_differs:
        return "prompt_differs"
    if not len(sides.reference.tokens) or not len(sides.candidate.tokens):
        return "no_logprobs"
    return None
