"""Token-level numbers on the common prefix: the `*_prefix_*` scores.

They are a survivor sample: a worse model leaves the common path earlier, so its prefix KL can even
fall. Decisions, alerts and calibration rest on the `*_forced_*` scores.
"""

from __future__ import annotations

from dataclasses import dataclass

from compare.metrics.agreement import top1_agreement
from compare.metrics.distribution import Floats, Positions, overlap
from compare.metrics.divergence import common_prefix
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.metrics.kl import KlBounds, kl_lower
from compare.metrics.sides import Sides, first_reason, scored_only
from compare.result import Divergence, PositionScore, Scores
from ingest.pair import Mode
from ingest.replay_body import is_constrained

_DISTRIBUTION_NAMES = (
    "kl_prefix_mean_nats",
    "kl_prefix_max_nats",
    "entropy_shift_prefix_nats",
    "top1_agreement_prefix_ratio",
)


@dataclass(frozen=True, slots=True)
class PrefixResult:
    """What is shown of a pair beyond its scores."""

    divergence: Divergence | None = None
    positions: tuple[PositionScore, ...] = ()


def score_prefix(
    sides: Sides, answers: tuple[Positions, Positions], scores: Scores, near_tie_nats: float
) -> PrefixResult:
    """Put the prefix scores. `answers` are both answers' reports, one row a token.

    Under constrained decoding the chosen tokens still say where the answers part; the distributions
    say nothing.
    """
    reason = _reason(sides)
    common = None if reason else common_prefix(sides.reference, sides.candidate, near_tie_nats)
    if common is not None:
        reason = common.reason
    if reason is not None or common is None:
        for name in ("prefix_tokens", *_DISTRIBUTION_NAMES):
            scores.skip(name, reason or "no_logprobs")
        return PrefixResult()
    scores.put("prefix_tokens", float(common.tokens))
    if is_constrained(sides.reference_body) or is_constrained(sides.candidate_body):
        for name in _DISTRIBUTION_NAMES:
            scores.skip(name, "constrained")
        return PrefixResult(common.divergence)
    reference, candidate = (side.head(common.positions) for side in answers)
    shared = overlap(reference, candidate)
    bounds = kl_lower(reference, candidate, shared)
    put_kl("kl_prefix", bounds, scores)
    if any(reason is None for reason in shared.reasons):
        agreement = scored_only(top1_agreement(reference, candidate, shared), shared.reasons)
        scores.put("top1_agreement_prefix_ratio", float(agreement.mean()))
    else:
        scores.skip("top1_agreement_prefix_ratio", first_reason(shared.reasons))
    # Entropy needs no token identity, so it has its own reasons.
    reasons = tuple(a or b for a, b in zip(reference.reasons, candidate.reasons, strict=True))
    lowers = entropy_lower(reference), entropy_lower(candidate)
    shift = scored_only(lowers[1] - lowers[0], reasons)
    if len(shift):
        scores.put("entropy_shift_prefix_nats", float(shift.mean()))
    else:
        scores.skip("entropy_shift_prefix_nats", first_reason(reasons))
    return PrefixResult(common.divergence, _for_display(sides, reference, candidate, bounds, lowers))


def put_kl(prefix: str, bounds: KlBounds, scores: Scores) -> Floats:
    """Put `<prefix>_mean_nats` and `<prefix>_max_nats`; return the scored positions' bounds.

    One infinite position makes both infinite, which is said, not averaged away.
    """
    values = scored_only(bounds.nats, bounds.reasons)
    if "infinite" in bounds.reasons or not len(values):
        reason = "infinite" if "infinite" in bounds.reasons else first_reason(bounds.reasons)
        scores.skip(f"{prefix}_mean_nats", reason)
        scores.skip(f"{prefix}_max_nats", reason)
        return values[:0]
    scores.put(f"{prefix}_mean_nats", float(values.mean()))
    scores.put(f"{prefix}_max_nats", float(values.max()))
    return values


def _reason(sides: Sides) -> str | None:
    if not sides.have_answers:
        return "no_answer"
    if sides.mode is not Mode.GREEDY:
        return "sampled"
    if sides.prompt_differs:
        return "prompt_differs"
    if not sides.reference.tokens or not sides.candidate.tokens:
        return "no_logprobs"
    return None


def _for_display(
    sides: Sides, reference: Positions, candidate: Positions, bounds: KlBounds, lowers: tuple[Floats, Floats]
) -> tuple[PositionScore, ...]:
    kl = _or_none(bounds.nats, bounds.reasons)
    size = sides.vocabulary_size
    columns: list[list[float | None]] = []
    for side, lower in zip((reference, candidate), lowers, strict=True):
        columns.append(_or_none(lower, side.reasons))
        columns.append(
            [None] * len(side) if size is None else _or_none(entropy_upper(side, size), side.reasons)
        )
    return tuple(PositionScore(index, *row) for index, row in enumerate(zip(kl, *columns, strict=True)))


def _or_none(values: Floats, reasons: tuple[str | None, ...]) -> list[float | None]:
    return [value if reason is None else None for value, reason in zip(values.tolist(), reasons, strict=True)]
