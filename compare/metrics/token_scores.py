"""Every token-level score of a batch of pairs: the positions of all pairs are worked out together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.metrics.answer_entropy import EntropySums, score_answer_entropy
from compare.metrics.blocks import Stretch
from compare.metrics.distribution import Floats
from compare.metrics.forced import forced_indices, forced_reason, score_forced
from compare.metrics.pair_summary import PairSummary
from compare.metrics.position_numbers import PairNumbers, SideNumbers, pair_numbers, side_numbers
from compare.metrics.prefix import PrefixPlan, plan_prefix, score_prefix
from compare.metrics.roles import ROLES, roles_of
from compare.metrics.runs import Runs
from compare.metrics.sides import Sides, list_reason, token_reason
from compare.position_scores import PositionScores
from compare.result import Divergence, Scores


@dataclass(frozen=True, slots=True)
class TokenResult:
    """What is shown of a pair beyond its scores."""

    divergence: Divergence | None = None
    positions: PositionScores = PositionScores()
    forced_positions: PositionScores = PositionScores()


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be worked out for one pair. The reasons say why a part is not."""

    sides: Sides
    prefix: PrefixPlan
    forced_reason: str | None
    side_reasons: tuple[str | None, str | None]


def score_tokens(
    batch: Sequence[Sides], all_scores: Sequence[Scores], near_tie_nats: float
) -> list[TokenResult]:
    """Put every prefix, forced and answer-entropy score of a batch, in order.

    Work and memory grow with the number of list entries, never with their product; the arrays of a block
    are bounded (`compare.metrics.blocks`).
    """
    plans = [_plan(sides, near_tie_nats) for sides in batch]
    prefix_stretches = [_prefix_stretch(plan) for plan in plans]
    forced_stretches = [_forced_stretch(plan) for plan in plans]
    sizes = [stretch.end for stretch in prefix_stretches + forced_stretches]
    summary = PairSummary(pair_numbers(prefix_stretches + forced_stretches), sizes)
    entropies = _answer_entropies(plans, summary)
    results = []
    for place, (plan, scores) in enumerate(zip(plans, all_scores, strict=True)):
        score_prefix(plan.prefix, summary, place, scores)
        for name, reason, sums in zip(
            ("reference", "candidate"), plan.side_reasons, entropies[place], strict=True
        ):
            has_vocabulary = plan.sides.vocabulary_size is not None
            score_answer_entropy(name, reason, sums, scores, has_vocabulary=has_vocabulary)
        score_forced(plan.forced_reason, summary, len(plans) + place, scores)
        results.append(_result(plan, summary, place, len(plans) + place))
    return results


def _plan(sides: Sides, near_tie_nats: float) -> _Plan:
    reference = list_reason(sides.reference, sides.reference_body)
    candidate = list_reason(sides.candidate, sides.candidate_body)
    return _Plan(
        sides,
        plan_prefix(sides, reference or candidate, near_tie_nats),
        forced_reason(sides, reference or candidate),
        (
            token_reason(sides.reference, reference, sides.mode),
            token_reason(sides.candidate, candidate, sides.mode),
        ),
    )


def _prefix_stretch(plan: _Plan) -> Stretch:
    sides = plan.sides
    columns = sides.reference.tokens.columns, sides.candidate.tokens.columns
    return Stretch(columns, 0, plan.prefix.positions, sides.vocabulary_size)


def _forced_stretch(plan: _Plan) -> Stretch:
    forced, size = plan.sides.forced, plan.sides.vocabulary_size
    if forced is None or plan.forced_reason is not None:
        return Stretch((), 0, 0, None)
    columns = forced.reference.columns, forced.candidate.columns
    return Stretch(columns, 0, len(forced.reference), size)


def _answer_entropies(plans: Sequence[_Plan], summary: PairSummary) -> list[tuple[EntropySums, EntropySums]]:
    """Return both sides' sums of every pair: the common prefix, which is worked out already, and the rest."""
    rest: list[Stretch] = []
    for plan in plans:
        sides = plan.sides
        for observation, reason in zip((sides.reference, sides.candidate), plan.side_reasons, strict=True):
            start = plan.prefix.positions
            end = start if reason is not None else len(observation.tokens)
            rest.append(Stretch((observation.tokens.columns,), start, end, sides.vocabulary_size))
    found = [(EntropySums(), EntropySums()) for _ in plans]
    prefix = Runs([span.stop - span.start for span in summary.spans])
    numbers = summary.numbers
    for side, part in enumerate((numbers.reference, numbers.candidate)):
        sums = [found[place][side] for place in range(len(plans))]
        _add(sums, prefix, part)
    both = [sums for pair in found for sums in pair]
    _add(both, Runs([stretch.end - stretch.start for stretch in rest]), side_numbers(rest))
    return found


def _add(sums: Sequence[EntropySums], runs: Runs, numbers: SideNumbers) -> None:
    lower, upper = (zip(*runs.sums(values), strict=True) for values in (numbers.lower, numbers.upper))
    for own, span, low, high in zip(sums, runs.slices(), lower, upper, strict=False):
        own.add(low, high, numbers.reason[span])


def _result(plan: _Plan, summary: PairSummary, place: int, forced_place: int) -> TokenResult:
    positions = forced_positions = PositionScores()
    span, forced_span = summary.spans[place], summary.spans[forced_place]
    forced = plan.sides.forced
    if not plan.sides.is_noise and (span.stop > span.start or forced_span.stop > forced_span.start):
        roles = [ROLES[code] for code in roles_of(plan.sides.reference).tolist()]
        index: Sequence[int] = range(span.stop - span.start)
        positions = _positions(summary.numbers.part(span), index, roles[: len(index)])
        if forced is not None and forced_span.stop > forced_span.start:
            index = forced_indices(forced, plan.sides.reference.tokens)
            own = [roles[at] if at < len(roles) else ROLES[0] for at in index]
            forced_positions = _positions(summary.numbers.part(forced_span), index, own)
    return TokenResult(plan.prefix.common.divergence, positions, forced_positions)


def _positions(numbers: PairNumbers, index: Sequence[int], roles: Sequence[str]) -> PositionScores:
    columns = {
        "kl_lower_nats": np.where(numbers.kl_reason == 0, numbers.kl, np.nan),
        "reference_entropy_lower_nats": numbers.reference.lower,
        "reference_entropy_upper_nats": _upper(numbers.reference),
        "candidate_entropy_lower_nats": numbers.candidate.lower,
        "candidate_entropy_upper_nats": _upper(numbers.candidate),
        "js_lower_nats": numbers.js_lower,
        "js_upper_nats": numbers.js_upper,
        "probability_change": numbers.change,
        "top1_agreement": numbers.agreement,
    }
    return PositionScores.of_columns(index, columns, roles)


def _upper(side: SideNumbers) -> Floats:
    """Return a side's upper bounds: none where one of them is missing, and so the vocabulary is larger."""
    is_belied = bool((np.isnan(side.upper) & ~np.isnan(side.lower)).any())
    return np.full_like(side.upper, np.nan) if is_belied else side.upper
