"""Since when: a change for the worse, or none."""

from __future__ import annotations

import numpy as np
import pytest

from compare.alerts.evidence_read import Sample
from compare.alerts.gather import _start
from compare.alerts.metrics import Kind


def sample(values: list[float], before: int) -> Sample:
    count = len(values)
    return Sample(
        times_ms=np.arange(count),
        taken_ms=np.arange(count),
        values=np.array(values),
        is_reference_only=np.zeros(count, dtype=np.bool_),
        slices={},
        before=before,
    )


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("regression_rate", 0.0, 1.0),
        ("candidate_only_excess", -1.0, 1.0),
        ("bounded_mean", 0.9, 0.3),
        ("rank", 0.1, 2.0),
    ],
)
def test_the_change_is_the_one_for_the_worse(kind: Kind, good: float, bad: float) -> None:
    worse = _start(sample([good] * 40 + [bad] * 8, 44), kind)
    assert worse is not None
    assert worse.index == 40
    assert _start(sample([bad] * 40 + [good] * 8, 44), kind) is None


def test_traffic_that_was_bad_from_the_first_pair_has_no_change() -> None:
    assert _start(sample([1.0, 0.0, 1.0, 0.0, 1.0] * 8 + [0.0] * 8, 44), "regression_rate") is None
