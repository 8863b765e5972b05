"""Mean entropy bounds of each side over its own answer."""

from __future__ import annotations

from compare.metrics.distribution import Positions, normalise, report_of
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.metrics.sides import Sides, first_reason, scored_only, token_reason
from compare.result import Scores


def answer_positions(sides: Sides) -> tuple[Positions, Positions]:
    """Return both answers' reports in normal form, one row a token."""
    reference, candidate = (
        normalise([report_of(token) for token in side.tokens]) for side in (sides.reference, sides.candidate)
    )
    return reference, candidate


def score_answer_entropy(sides: Sides, positions: tuple[Positions, Positions], scores: Scores) -> None:
    """Put `entropy_<side>_lower_nats` and `_upper_nats`: means over the side's scored positions."""
    for name, observation, body, own in (
        ("reference", sides.reference, sides.reference_body, positions[0]),
        ("candidate", sides.candidate, sides.candidate_body, positions[1]),
    ):
        lower_name, upper_name = f"entropy_{name}_lower_nats", f"entropy_{name}_upper_nats"
        reason = token_reason(observation, body, sides.mode)
        if reason is None and not own.is_scored.any():
            reason = first_reason(own.reasons)
        if reason is not None:
            scores.skip(lower_name, reason)
            scores.skip(upper_name, reason)
            continue
        scores.put(lower_name, float(scored_only(entropy_lower(own), own.reasons).mean()))
        if sides.vocabulary_size is None:
            scores.skip(upper_name, "no_vocabulary_size")
        else:
            upper = entropy_upper(own, sides.vocabulary_size)
            scores.put(upper_name, float(scored_only(upper, own.reasons).mean()))
