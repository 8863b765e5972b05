from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy.stats import rankdata

from compare.alerts.sketch import SLICE_CAPACITY, Ranks, Sketch, extended


def brute_force(values: np.ndarray[tuple[int], np.dtype[np.float64]], x: float) -> float:
    single, one = values.astype(np.float32), np.float32(x)
    return float((single < one).mean() + (single == one).mean() / 2)


def test_few_values_are_ranked_exactly() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 50, 2000).astype(np.float64)
    ranks = Ranks(extended(Sketch(), values))
    for x in (-1.0, 0.0, 7.0, 7.5, 49.0, 60.0):
        assert ranks.of(np.asarray([x]))[0] == pytest.approx(brute_force(values, x))
    # Mid-ranks of the sample in itself: scipy's ranks, less a half, over n.
    assert ranks.of(values) == pytest.approx((rankdata(values) - 0.5) / 2000)


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
@pytest.mark.parametrize("capacity", [16, SLICE_CAPACITY])
def test_rank_error_is_within_what_it_states(order: str, capacity: int) -> None:
    values = np.random.default_rng(2).lognormal(size=30_000)
    if order != "random":
        values = np.sort(values)[:: 1 if order == "ascending" else -1]
    sketch = extended(Sketch(capacity), values)
    assert sketch.n == 30_000
    assert int(Ranks(sketch).weights.sum()) == 30_000
    # About n / capacity a level, and not all of what was seen.
    assert 0 < sketch.error <= 30_000 / capacity * len(sketch.levels)
    assert sum(map(len, sketch.levels)) / 4 <= capacity * len(sketch.levels)
    x = np.quantile(values, np.linspace(0.01, 0.99, 99))
    truth = np.asarray([brute_force(values, one) for one in x])
    assert np.abs(Ranks(sketch).of(x) - truth).max() <= (sketch.error + 0.5) / 30_000


def test_any_cut_into_chunks_gives_the_same_sketch() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=5000)
    whole = extended(Sketch(64), values)
    pieces, start = Sketch(64), 0
    while start < values.size:
        end = start + int(rng.integers(1, 300))
        pieces = extended(pieces, values[start:end])
        pieces = msgspec.json.decode(msgspec.json.encode(pieces), type=Sketch)
        start = end
    assert pieces == whole


def test_ratio_beyond_32_bits_is_the_largest() -> None:
    sketch = extended(Sketch(), np.asarray([1.0, 2.0, 1e300]))
    assert Ranks(sketch).of(np.asarray([1e39, 3.0])) == pytest.approx([2.5 / 3, 2 / 3])
