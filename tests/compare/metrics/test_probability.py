from __future__ import annotations

import math

import numpy as np
import pytest

from ingest.alternative import Alternative
from ingest.tokens import Token
from tests.compare.metrics.reports import answer, entry, forced, log, scored, token


def changes(*pairs: tuple[Token, Token]) -> list[float | None]:
    """The change at forced positions, as it is shown."""
    _, result = scored(answer(token(1)), answer(token(1)), forced=forced(*pairs))
    return result.forced_positions.numbers("probability_change")


def listed(logprob: float | None, *entries: tuple[int, float], token_id: int | None = 1) -> Token:
    return Token("x", logprob, None, token_id, tuple(entry(*item) for item in entries), len(entries))


def test_the_change_is_that_of_the_references_token() -> None:
    # Greedy or not: token 1 is what the reference chose, on either side.
    found = changes(
        (listed(log(0.6), (1, 0.6), (2, 0.4)), listed(log(0.2), (2, 0.8), (1, 0.2))),
        (listed(log(0.1), (2, 0.9), (1, 0.1)), listed(log(0.7), (1, 0.7), (2, 0.3))),
    )
    assert found == pytest.approx([-0.4, 0.6])


@pytest.mark.parametrize(
    ("p", "candidate", "change"),
    [
        # The candidate lists 0.7 and 0.1: anything else has at most 0.1.
        (0.6, [(2, 0.7), (3, 0.1)], 0.1 - 0.6),
        (0.05, [(2, 0.7), (3, 0.1)], 0.0),
        # Only 0.02 is unseen.
        (0.6, [(2, 0.9), (3, 0.08)], 0.02 - 0.6),
        # Nothing is: the list ends with an impossible token.
        (0.6, [(2, 0.9), (3, 0.05), (4, 0.0)], -0.6),
    ],
)
def test_a_token_outside_the_list_counts_with_the_least_change(
    p: float, candidate: list[tuple[int, float]], change: float
) -> None:
    assert changes((listed(log(p), (1, p)), listed(None, *candidate))) == pytest.approx([change])


def test_an_appended_token_is_known() -> None:
    candidate = Token("x", log(0.01), None, 1, (entry(2, 0.9), entry(3, 0.05)), 2)
    assert changes((listed(log(0.5), (1, 0.5)), candidate)) == pytest.approx([0.01 - 0.5])


def test_a_token_whose_probability_the_reference_does_not_say_has_none() -> None:
    assert changes((listed(None, (2, 0.5)), listed(log(0.5), (1, 0.5)))) == [None]
    nameless = Token("x", log(0.5), None, None, (entry(2, 0.5),), 1)
    assert changes((nameless, listed(log(0.5), (1, 0.5)))) == [None]


def test_bytes_tell_the_token_where_lists_have_no_ids() -> None:
    def by_bytes(p: float, q: float) -> Token:
        top = (Alternative("a", log(p), b"a"), Alternative("b", log(q), b"b"))
        return Token("a", log(p), b"a", 7, top, 2)

    assert changes((by_bytes(0.6, 0.4), by_bytes(0.5, 0.45))) == pytest.approx([-0.1])


def test_summaries_are_those_of_numpy() -> None:
    random = np.random.default_rng(2)
    p, q = random.uniform(0.05, 0.95, (2, 150))
    pairs = [
        (listed(log(a), (1, a), (2, 1 - a)), listed(log(b), (1, b), (2, 1 - b)))
        for a, b in zip(p, q, strict=True)
    ]
    scores, _ = scored(answer(token(1)), answer(token(1)), forced=forced(*pairs))
    found = {
        name: scores.values[f"probability_change_forced_{name}"] for name in ("mean", "rms", "p1", "p99")
    }
    change = q - p
    assert found["mean"] == pytest.approx(change.mean())
    assert found["rms"] == pytest.approx(math.sqrt((change**2).mean()))
    assert [found["p1"], found["p99"]] == pytest.approx(np.percentile(change, [1, 99]).tolist())
    reference, candidate = answer(*(a for a, _ in pairs)), answer(*(b for _, b in pairs))
    values = scored(reference, candidate)[0].values
    prefix = [values[f"probability_change_prefix_{name}"] for name in ("mean", "p5", "p50", "p95")]
    assert prefix == pytest.approx([change.mean(), *np.percentile(change, [5, 50, 95])])
    assert values["probability_change_prefix_rms"] == pytest.approx(found["rms"])


def test_equal_sides_change_nothing() -> None:
    scores, _ = scored(answer(token(1), token(2)), answer(token(1), token(2)))
    change = [value for name, value in scores.values.items() if name.startswith("probability_change")]
    assert change == [0.0] * 5
