"""Probabilities where other dialects have logprobs."""

from __future__ import annotations

import math

PROBABILITY_SLACK = 1e-3
"""A probability may exceed 1 by this much through rounding."""


def log_of(probability: float | None) -> float | None:
    """Return a probability's natural logarithm, -inf for 0, NaN for what is no probability, None for None."""
    if probability is None:
        return None
    if probability == 0.0:
        return -math.inf
    if not 0.0 < probability <= 1.0 + PROBABILITY_SLACK:
        return math.nan
    return min(0.0, math.log(probability))
