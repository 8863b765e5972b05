from __future__ import annotations

import numpy as np
import pytest

from compare.metrics.distribution import POSITION_REASONS
from compare.metrics.runs import Runs, first_reason, percentiles


def test_summaries_skip_what_is_no_number_and_know_empty_runs() -> None:
    runs = Runs([2, 0, 3, 1, 0])
    values = np.array([1.0, 3.0, np.nan, -2.0, -4.0, np.nan])
    assert runs.means(values) == [2.0, None, -3.0, None, None]
    assert runs.largest(values) == [3.0, None, -2.0, None, None]
    assert runs.sums(values) == ([4.0, 0.0, -6.0, 0.0, 0.0], [2, 0, 2, 0, 0])
    assert [(span.start, span.stop) for span in runs.slices()] == [(0, 2), (2, 2), (2, 5), (5, 6), (6, 6)]


def test_no_runs_and_only_empty_ones() -> None:
    assert Runs([]).means(np.zeros(0)) == []
    assert Runs([0, 0]).largest(np.zeros(0)) == [None, None]


@pytest.mark.parametrize("count", [1, 2, 3, 100, 517])
def test_percentiles_are_those_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    shares = [0.0, 0.01, 0.05, 0.5, 0.95, 0.99, 1.0]
    assert percentiles(values, shares) == pytest.approx(np.quantile(values, shares))


def test_the_first_reason_of_several() -> None:
    codes = np.array([0, POSITION_REASONS.index("not_finite"), 1], dtype=np.uint8)
    assert first_reason(codes) == "not_finite"
    assert first_reason(codes[:1]) == first_reason(codes[:0]) == "no_logprobs"
