"""What a metric is tested against: its baseline, or a declared tolerance.

A baseline is the first comparable pairs of an experiment and candidate, or those of a time that a person
chose. From it come a one-sided bound at 1 - 0.05/M (an upper one of a rate or a rank, a lower one of a
mean), and two widths that say how much healthy traffic moves by itself, both free of what chance alone
would show:

- *swing*: twice the standard deviation between hours. Where fewer than 24 different hours were seen, the mix
  of the traffic may still swing in a way that no one has seen; how far it can move the whole goes by how much
  the slices differ: 1.5 of the largest standard deviation between the slices of a dimension is the least.
- *spread* of a dimension: twice the standard deviation between its slices. It widens the bound of a slice
  that uses the whole's baseline because it has too few pairs of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import numpy as np
from scipy.special import ndtri

from compare.alerts.binomial import lower_bound, upper_bound
from compare.alerts.edetector import MAX_P1, ONE
from compare.alerts.learning import Moments, Part, moments_of
from compare.alerts.metrics import BY_NAME, SERIES_FACTOR, Kind
from compare.alerts.sketch import Ranks, Sketch, numbers

CONFIDENCE_LOST = 0.05
"""Chance, over all M series together, that a baseline's bound lies on the wrong side of the truth."""
WIDTHS = 2.0
"""Standard deviations that the swing and a spread are wide: a sine leaves its mean by 1.4."""
UNSEEN_WIDTHS = 1.5
"""The same for a swing that nobody has seen: two halves of the traffic that swing between 80 : 20 and 20 : 80
move the mean by 1.5 of the deviation between them at either end, where the baseline may have been taken."""
HOURS_OF_A_DAY = 24
MAX_RANK = 0.95
"""A mean rank that may be so high leaves nothing to bet."""
SliceKey = tuple[str, str]
"""(dimension, value)."""


class MetricBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """One metric's baseline. While `is_open`, pairs are still being added to the series' own parts.

    `version` counts up; an open one has that of the closed one before it, 0 if there was none. times are Unix
    milliseconds of the first and last pair. `swing` and `spreads` are in units of x, or of the rank.
    """

    metric: str
    version: int = 0
    chosen_by: Literal["program", "person"] = "program"
    is_open: bool = True
    from_ms: int | None = None
    to_ms: int | None = None
    whole: Part = Part()
    swing: float = 0.0
    spreads: dict[str, float] = {}
    own: dict[str, dict[str, Part]] = {}
    """By dimension and slice, the parts with enough pairs of their own."""


def deviation_between(groups: Iterable[Moments]) -> float:
    """The standard deviation of the means behind these groups, beyond what chance makes of equal ones.

    The method of moments of a one-way random-effects analysis of variance (Searle, Casella and
    McCulloch, *Variance Components*, 1992, section 3.6), 0 where it is negative or there are not two groups.
    """
    kept = [group for group in groups if group.n]
    n = sum(group.n for group in kept)
    if len(kept) < 2 or n <= len(kept):
        return 0.0
    mean = sum(group.n * group.mean for group in kept) / n
    between = sum(group.n * (group.mean - mean) ** 2 for group in kept)
    within = sum(group.n * group.variance for group in kept) / (n - len(kept))
    weight = n - sum(group.n**2 for group in kept) / n
    return math.sqrt(max(between - (len(kept) - 1) * within, 0.0) / weight)


def closed(
    before: MetricBaseline, parts: Mapping[SliceKey, Part], *, min_pairs: int, from_ms: int, to_ms: int
) -> MetricBaseline:
    """The baseline of these parts, the next version after `before`. Raises ValueError if the whole
    experiment's holds nothing.
    """
    whole = parts.get(("experiment", ""), Part())
    if not whole.moments.n:
        raise ValueError(f"baseline of {before.metric} holds no pair")
    ranks = None if whole.sketch is None else Ranks(whole.sketch)
    spreads: dict[str, float] = {}
    own: dict[str, dict[str, Part]] = {}
    for dimension in BY_NAME[before.metric].dimensions[1:]:
        inside = {value: part for (name, value), part in sorted(parts.items()) if name == dimension}
        spreads[dimension] = WIDTHS * deviation_between(_in_ranks(part, ranks) for part in inside.values())
        enough = {value: _bare(part) for value, part in inside.items() if part.moments.n >= min_pairs}
        if enough:
            own[dimension] = enough
    if ranks is None:
        hours = list(whole.hours.values())
    else:
        hours = [
            moments_of(ranks.of(numbers(held).astype(np.float64))) for held in whole.hour_values.values()
        ]
    swing = WIDTHS * deviation_between(hours)
    if len(hours) < HOURS_OF_A_DAY:
        swing = max(swing, UNSEEN_WIDTHS / WIDTHS * max(spreads.values(), default=0.0))
    return msgspec.structs.replace(
        before,
        version=before.version + 1,
        chosen_by="program",
        is_open=False,
        from_ms=from_ms,
        to_ms=to_ms,
        whole=_bare(whole),
        swing=swing,
        spreads=spreads,
        own=own,
    )


def _in_ranks(part: Part, ranks: Ranks | None) -> Moments:
    if ranks is None or part.sketch is None:
        return part.moments
    held = Ranks(part.sketch)
    return moments_of(ranks.of(np.repeat(held.values, held.weights)))


def _bare(part: Part) -> Part:
    """Without the hours, which the swing has taken in."""
    return Part(part.moments, sketch=part.sketch)


def part_for(baseline: MetricBaseline, dimension: str, value: str) -> tuple[Part, bool]:
    """The part that a slice is tested against, and whether it is the slice's own."""
    own = baseline.own.get(dimension, {}).get(value)
    return (own, True) if own is not None else (baseline.whole, dimension == "experiment")


def tolerated(baseline: MetricBaseline, dimension: str, value: str) -> float | None:
    """What a slice's detector tolerates, or None where it leaves nothing to bet on."""
    kind = BY_NAME[baseline.metric].kind
    part, is_own = part_for(baseline, dimension, value)
    width = baseline.swing + (0.0 if is_own else baseline.spreads.get(dimension, 0.0))
    bound = bound_of(kind, part)
    if kind == "bounded_mean":
        return bound - width if bound - width > 0 else None
    return bound + width if bound + width < (MAX_RANK if kind == "rank" else MAX_P1) else None


def bound_of(kind: Kind, part: Part, series: int = SERIES_FACTOR) -> float:
    """One-sided bound, at confidence 1 - 0.05/M, of what is behind a baseline; `series` is M.

    Rates, and means of values that are all 0 or 1: exact (Clopper and Pearson 1934). Other means: the
    empirical Bernstein bound (Maurer and Pontil 2009, theorem 4), which holds for any x in [0, 1]. Ranks:
    the mean mid-rank of further values of the same distribution is 1/2 with a standard deviation of at most
    1/sqrt(12 n) over the choice of the baseline, taken as normal, and the sketch's own error comes on top.
    Raises ValueError on an empty part.
    """
    n, error = part.moments.n, CONFIDENCE_LOST / series
    if n < 1:
        raise ValueError("baseline of no pairs")
    if kind == "rank":
        sketch = part.sketch or Sketch()
        return 0.5 + float(ndtri(1 - error)) / math.sqrt(12 * n) + sketch.error / n
    if kind != "bounded_mean":
        return upper_bound(part.moments.sum_x // ONE, n, error)
    if part.moments.sum_x == part.moments.sum_xx:
        return lower_bound(part.moments.sum_x // ONE, n, error)
    log_term = math.log(2 / error)
    variance = part.moments.variance * n / max(n - 1, 1)
    return max(
        part.moments.mean - math.sqrt(2 * variance * log_term / n) - 7 * log_term / (3 * max(n - 1, 1)),
        0.0,
    )
