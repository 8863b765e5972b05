import pytest
from scipy.stats import binom

from compare.alerts.baseline import Baseline, upper_rate


@pytest.mark.parametrize(("pairs", "faulty"), [(2000, 0), (2000, 4), (50, 7)])
def test_bound_is_where_so_few_faults_become_improbable(pairs: int, faulty: int) -> None:
    bound = upper_rate(Baseline(pairs, faulty), 4)
    assert binom.cdf(faulty, pairs, bound) == pytest.approx(0.05 / 4, rel=1e-6)


def test_no_fault_has_a_closed_form() -> None:
    # (1 - p)^n = 0.05 / M
    assert upper_rate(Baseline(2000, 0), 4) == pytest.approx(1 - (0.05 / 4) ** (1 / 2000))


def test_all_faulty_is_one() -> None:
    assert upper_rate(Baseline(10, 10), 4) == 1.0


@pytest.mark.parametrize(("pairs", "faulty"), [(0, 0), (3, 4)])
def test_refuses_what_cannot_be(pairs: int, faulty: int) -> None:
    with pytest.raises(ValueError, match="baseline of"):
        upper_rate(Baseline(pairs, faulty), 4)
