"""The rank test that is made for each slice, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from compare.alerts.descriptive import mann_whitney_p


@pytest.mark.parametrize("levels", [2, 5, 1_000_000])
@pytest.mark.parametrize(("n", "m"), [(5, 5), (7, 400), (300, 250)])
def test_the_p_value_is_that_of_scipy_with_and_without_ties(levels: int, n: int, m: int) -> None:
    rng = np.random.default_rng(n * m + levels)
    for shift in (0.0, 0.3):
        one, other = (np.floor((rng.random(size) + more) * levels) for size, more in ((n, shift), (m, 0.0)))
        expected = stats.mannwhitneyu(one, other, method="asymptotic").pvalue
        assert mann_whitney_p(one, other) == pytest.approx(float(expected), rel=1e-12)


def test_samples_of_one_value_do_not_differ() -> None:
    assert mann_whitney_p(np.ones(5), np.ones(9)) == 1.0
