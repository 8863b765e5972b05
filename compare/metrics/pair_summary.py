"""The scores that common-prefix and forced positions have alike, from the numbers of their positions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from compare.metrics.distribution import INFINITE, Codes
from compare.metrics.position_numbers import PairNumbers
from compare.metrics.runs import Runs, first_reason, percentiles
from compare.result import Scores


class PairSummary:
    """Summaries of k pairs, each of `sizes[i]` positions of `numbers`."""

    def __init__(self, numbers: PairNumbers, sizes: Sequence[int]) -> None:
        self.numbers = numbers
        runs = Runs(sizes)
        self.spans = runs.slices()
        self._kl_mean, self._kl_max = runs.means(numbers.kl), runs.largest(numbers.kl)
        self._js_lower, self._js_upper = runs.means(numbers.js_lower), runs.means(numbers.js_upper)
        self._agreement = runs.means(numbers.agreement)
        self._change, self._square = runs.means(numbers.change), runs.means(numbers.change**2)
        self._infinite = runs.largest((numbers.kl_reason == INFINITE).astype(np.float64))
        reasons = np.where(numbers.reference.reason > 0, numbers.reference.reason, numbers.candidate.reason)
        self.side_reason: Codes = reasons
        """(n,) why the two entropies of a position cannot be compared; it needs no token identity."""
        self.shift = runs.means(numbers.candidate.lower - numbers.reference.lower)
        self.log_ratio = runs.means(numbers.log_ratio)

    def put(
        self,
        place: int,
        kind: str,
        kl_shares: Mapping[str, float],
        shares: Mapping[str, float],
        scores: Scores,
    ) -> None:
        """Put `kl_<kind>_*`, `js_<kind>_*`, `top1_agreement_<kind>_ratio` and `probability_change_<kind>_*`.

        `kl_shares` and `shares` name the percentiles of KL and of the probability change to put.
        """
        span = self.spans[place]
        self._put_kl(place, kind, kl_shares, scores)
        reason = self.numbers.reason[span]
        put_or_skip(f"js_{kind}_lower_mean_nats", self._js_lower[place], reason, scores)
        put_or_skip(f"js_{kind}_upper_mean_nats", self._js_upper[place], reason, scores)
        put_or_skip(f"top1_agreement_{kind}_ratio", self._agreement[place], reason, scores)
        change, square = self._change[place], self._square[place]
        name = f"probability_change_{kind}"
        put_or_skip(f"{name}_mean", change, reason, scores)
        put_or_skip(f"{name}_rms", None if square is None else math.sqrt(square), reason, scores)
        values = self.numbers.change[span]
        values = values[~np.isnan(values)]
        found = percentiles(values, list(shares.values())) if len(values) else [None] * len(shares)
        for label, value in zip(shares, found, strict=True):
            put_or_skip(f"{name}_{label}", value, reason, scores)

    def _put_kl(self, place: int, kind: str, shares: Mapping[str, float], scores: Scores) -> None:
        """One infinite position makes mean, percentiles and maximum infinite: said, not averaged away."""
        span = self.spans[place]
        names = [f"kl_{kind}_{label}_nats" for label in ("mean", "max", *shares)]
        if self._infinite[place]:
            for name in names:
                scores.skip(name, "infinite")
            return
        values = self.numbers.kl[span]
        values = values[~np.isnan(values)] if shares else values[:0]
        found = percentiles(values, list(shares.values())) if len(values) else [None] * len(shares)
        reason = self.numbers.kl_reason[span]
        for name, value in zip(names, (self._kl_mean[place], self._kl_max[place], *found), strict=True):
            put_or_skip(name, value, reason, scores)


def put_or_skip(name: str, value: float | None, reason: Codes, scores: Scores) -> None:
    """Put a value, or the first reason of its positions where there is none."""
    if value is None:
        scores.skip(name, first_reason(reason))
    else:
        scores.put(name, value)
