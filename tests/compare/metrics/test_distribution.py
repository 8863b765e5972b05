from __future__ import annotations

import math

import pytest

from compare.metrics.distribution import normalise
from compare.metrics.overlap import overlap
from ingest.alternative import Alternative
from ingest.tokens import Token, Tokens
from tests.compare.metrics.reports import Report, positions, report


def test_unseen_mass_and_last_ranked() -> None:
    found = positions([report((1, 0.5), (2, 0.3), appended=[(9, 0.01)])])
    assert found.reasons == (None,)
    assert found.unseen[0] == pytest.approx(0.19)
    assert found.last_ranked[0] == pytest.approx(0.3)
    assert found.unseen_bound[0] == pytest.approx(0.19)
    assert found.known[0] == 3


def test_impossible_ranked_entry_means_that_nothing_is_unseen() -> None:
    found = positions([report((1, 0.6), (2, 0.3), (3, 0.0)), report((1, 0.6), appended=[(3, 0.0)])])
    assert found.unseen.tolist() == pytest.approx([0.0, 0.4])
    assert found.is_exhausted.tolist() == [True, False]
    assert found.known.tolist() == [2, 1]


def test_a_sum_over_one_by_rounding_leaves_nothing_unseen() -> None:
    found = positions([report((1, 0.7), (2, 0.3002))])
    assert found.reasons == (None,)
    assert found.unseen[0] == 0.0


@pytest.mark.parametrize(
    ("entries", "ranked", "reason"),
    [
        ([], 0, "no_logprobs"),
        ([(1, 0.0)], 1, "not_finite"),
        ([(1, -0.7), (1, -1.2)], 2, "duplicate_tokens"),
        ([(1, -0.2), (2, -0.05)], 2, "not_normalised"),
        ([(1, 5000.0)], 1, "not_normalised"),
        ([(1, -math.inf), (2, -math.inf)], 2, "all_impossible"),
        ([(1, -2.0), (2, -0.5)], 1, "inconsistent_list"),
        ([(1, -0.5), (2, -100.0)], 2, "inconsistent_list"),
    ],
)
def test_reasons(entries: list[tuple[int, float]], ranked: int, reason: str) -> None:
    if reason == "not_finite":
        entries = [(1, math.nan)]
    made = tuple(Alternative("x", logprob, None, token_id) for token_id, logprob in entries)
    assert positions([Report(made, ranked)]).reasons == (reason,)


def test_duplicates_by_bytes_where_there_are_no_ids() -> None:
    def listed(first: bytes | None, second: bytes | None) -> Report:
        return Report((Alternative("a", -0.7, first), Alternative("a", -1.2, second)), 2)

    rows = [listed(b"a", b"a"), listed(b"a", b"b"), listed(None, None)]
    assert positions(rows).reasons == ("duplicate_tokens", None, None)


def test_the_sampled_token_is_known_mass_but_never_the_bound() -> None:
    top = (Alternative("a", math.log(0.6), None, 1), Alternative("b", math.log(0.2), None, 2))
    sampled = Token("c", math.log(0.05), None, 3, top, 2)
    found = normalise(Tokens([sampled]).columns)
    assert found.unseen[0] == pytest.approx(0.15)
    assert found.last_ranked[0] == pytest.approx(0.2)
    listed = Token("b", math.log(0.2), None, 2, top, 2)
    assert normalise(Tokens([listed]).columns).length.tolist() == [2]


def test_overlap_falls_back_to_bytes_position_by_position() -> None:
    by_id = report((1, 0.5), (2, 0.3))
    by_bytes = Report((Alternative("a", -0.7, b"a"), Alternative("b", -1.0, b"b")), 2)
    turned = Report((Alternative("b", -0.7, b"b"), Alternative("c", -1.0, b"c")), 2)
    text_only = Report((Alternative("a", -0.7), Alternative("b", -1.0)), 2)
    left = positions([by_id, by_bytes, text_only])
    right = positions([report((2, 0.5), (7, 0.3)), turned, text_only])
    shared = overlap(left, right)
    assert shared.reasons == (None, None, "no_token_identity")
    assert shared.is_shared.T.tolist() == [[False, True], [False, True], [False, False]]
    assert shared.is_shared_candidate.T.tolist() == [[True, False], [True, False], [False, False]]
    assert shared.candidate_logprob[1].tolist() == pytest.approx([math.log(0.5), -0.7, -math.inf])


def test_overlap_refuses_lists_of_different_length() -> None:
    with pytest.raises(ValueError, match="1 reference positions against 0"):
        overlap(positions([report((1, 0.5))]), positions([]))
