"""Since when: the most likely start of a change in a sequence of pairs, and a 95 % set of starts.

Each pair is of one of C classes (faulty or not; which interval its score is in). Before its start the pairs
follow one distribution, from then on another; both are unknown. For a start at pair k (the first that is
changed, counted from 0) the log-likelihood is l(k) = L(counts before k) + L(counts from k), where

    L(n_1 .. n_C) = sum ln G(n_c + 1/2) - ln G(n + C/2)

is the multinomial likelihood with its parameters integrated over Jeffreys' prior (Krichevsky and Trofimov
1981; for change points Smith 1975, Biometrika 62): that costs a side of few pairs the freedom to fit
itself. The estimate is the k >= 1 with the largest l, the earliest of equals; the set holds every k with
l(best) - l(k) <= c (Siegmund 1988, "Confidence sets in change-point problems", Int. Statistical Review 56).

c = -ln(1 - sqrt(0.95)) = 3.68: with known parameters, the likelihood ratio of a later start against the
true one is a martingale with mean 1 in the pairs after it, and of an earlier start in the pairs before it,
apart from each other. Each exceeds e^c at any time with a chance of at most e^-c (Ville 1939), so the true
start is outside with a chance of at most 1 - (1 - e^-c)^2 = 5 %. That the integrated likelihood keeps this
is measured by simulation (`tests/compare/alerts/test_change_point.py`).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

CONFIDENCE = 0.95
LOG_RATIO = -math.log(1.0 - math.sqrt(CONFIDENCE))
QUANTILES = (0.05, 0.2, 0.5, 0.8, 0.95)
"""Where scores are cut into classes."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ChangePoint(msgspec.Struct, frozen=True):
    """Indices of pairs, from 0: the first changed one, and the least and the greatest that it may be.

    `size` is how many starts the 95 % set holds; it may have gaps.
    """

    index: int
    earliest: int
    latest: int
    size: int


def change_point(classes: Ints) -> ChangePoint:
    """Find the start in a sequence of classes 0, 1, ... Raises ValueError for fewer than two pairs."""
    n = len(classes)
    if n < 2:
        raise ValueError(f"a change point of {n} pairs")
    before = np.zeros((int(classes.max()) + 1, n - 1))
    for label in range(len(before)):
        np.cumsum(classes[:-1] == label, out=before[label])
    total = np.bincount(classes, minlength=len(before)).astype(np.float64)[:, None]
    sizes = np.arange(1, n, dtype=np.float64)
    likelihood = _integrated(before, sizes) + _integrated(total - before, n - sizes)
    best = float(likelihood.max())
    inside = np.flatnonzero(likelihood >= best - LOG_RATIO) + 1
    # Rounding must not choose between starts that are equally likely.
    index = int(np.argmax(likelihood >= best - 1e-9)) + 1
    return ChangePoint(index, int(inside[0]), int(inside[-1]), len(inside))


def classes_of(scores: Floats) -> Ints:
    """Cut scores at `QUANTILES` of all of them; a score that equals a cut has a class of its own.

    Classes and not the scores: these have heavy tails and pile up at their bounds, where no simple
    likelihood fits (a normal one's sets held the true start in 63 % of runs, of 95 %).
    """
    cuts = np.unique(np.quantile(scores, QUANTILES, method="inverted_cdf"))
    cut = np.searchsorted(cuts, scores, "left") + np.searchsorted(cuts, scores, "right")
    _, classes = np.unique(cut, return_inverse=True)
    return np.asarray(classes, dtype=np.int64)


def _integrated(counts: Floats, sizes: Floats) -> Floats:
    """L of each column of counts, shape (classes, starts), but for a constant."""
    terms: Floats = gammaln(counts + 0.5).sum(axis=0) - gammaln(sizes + len(counts) / 2.0)
    return terms
