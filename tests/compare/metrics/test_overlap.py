from __future__ import annotations

import numpy as np
import pytest

from compare.metrics.overlap import WIDE, overlap
from ingest.alternative import Alternative
from tests.compare.metrics.reports import Report, positions


@pytest.mark.parametrize("width", [1, 2, 20, WIDE, WIDE + 1, 3 * WIDE])
@pytest.mark.parametrize("by", ["id", "bytes"])
def test_shared_tokens_are_those_of_a_set(width: int, by: str) -> None:
    """Lists of any width and both ways of telling tokens apart, against Python's sets."""
    random = np.random.default_rng(width)
    lists = [
        [
            random.choice(2 * width, int(random.integers(1, width + 1)), replace=False).tolist()
            for _ in range(2)
        ]
        for _ in range(12)
    ]

    def listed(numbers: list[int]) -> Report:
        each = -8.0 - np.log(width)
        entries = [Alternative("", each, str(n).encode(), n if by == "id" else None) for n in numbers]
        return Report(entries, len(entries))

    reference, candidate = (positions([listed(pair[side]) for pair in lists]) for side in range(2))
    shared = overlap(reference, candidate)
    for place, (one, other) in enumerate(lists):
        assert shared.is_shared[: len(one), place].tolist() == [n in set(other) for n in one]
        assert shared.is_shared_candidate[: len(other), place].tolist() == [n in set(one) for n in other]
        held = shared.candidate_logprob[: len(one), place] > -np.inf
        assert held.tolist() == [n in set(other) for n in one]
