from __future__ import annotations

import subprocess
import sys

import pytest
from scipy.stats import binomtest

from compare.alerts.binomial import chance_of_at_least, lower_bound, upper_bound

COUNTS = [
    (0, 1),
    (1, 1),
    (0, 40),
    (1, 40),
    (7, 40),
    (40, 40),
    (3, 100_000),
    (900, 100_000),
    (60_000, 100_000),
]


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_bounds_against_scipy(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(confidence_level=0.95, method="exact")
    assert lower_bound(k, n, 0.025) == pytest.approx(expected.low, rel=1e-9)
    assert upper_bound(k, n, 0.025) == pytest.approx(expected.high, rel=1e-9)


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize("rate", [0.001, 0.02, 0.5])
def test_p_value_against_scipy(k: int, n: int, rate: float) -> None:
    expected = binomtest(k, n, rate, alternative="greater").pvalue
    assert chance_of_at_least(k, n, rate) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_the_service_imports_no_scipy_stats_and_no_metrics() -> None:
    code = (
        "import sys, compare.run\n"
        "print(*({'scipy.stats', 'compare.score', 'json_repair', 'torch', 'openvino'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
