from __future__ import annotations

import math

import pytest

from compare.metrics.divergence import END, common_prefix
from ingest.observation import MAX_LOGPROB_TOKENS, Observation
from ingest.tokens import Token, Tokens
from tests.compare.metrics.reports import answer, token


def test_gaps_in_each_sides_own_distribution() -> None:
    reference = answer(token(1), token(2, (3, 0.4), p=0.5))
    candidate = answer(token(1), token(3, (2, 0.1), p=0.8))
    common = common_prefix(reference, candidate, 0.25)
    assert (common.tokens, common.positions) == (1, 2)
    divergence = common.divergence
    assert divergence is not None
    assert (divergence.position, divergence.reference_token, divergence.candidate_token) == (1, "t2", "t3")
    assert divergence.reference_gap_nats == pytest.approx(math.log(0.5 / 0.4))
    assert divergence.candidate_gap_nats == pytest.approx(math.log(0.8 / 0.1))
    assert not divergence.is_near_tie


def test_near_tie_needs_both_gaps_small() -> None:
    def near(second: float) -> bool:
        reference = answer(token(2, (3, 0.42), p=0.5))
        divergence = common_prefix(reference, answer(token(3, (2, second), p=0.5)), 0.25).divergence
        assert divergence is not None
        return divergence.is_near_tie

    # ln(0.5/0.42) = 0.17, ln(0.5/0.4) = 0.22, ln(0.5/0.38) = 0.27
    assert near(0.4)
    assert not near(0.38)


def test_a_token_that_the_list_lacks_has_no_gap() -> None:
    divergence = common_prefix(answer(token(2)), answer(token(3, (2, 0.0), p=1.0)), 0.25).divergence
    assert divergence is not None
    assert divergence.reference_gap_nats is None
    assert divergence.candidate_gap_nats is None


@pytest.mark.parametrize("is_reference_short", [True, False])
def test_an_end_on_one_side_is_a_divergence(is_reference_short: bool) -> None:
    short, long = answer(token(1)), answer(token(1), token(2))
    pair = (short, long) if is_reference_short else (long, short)
    common = common_prefix(*pair, 0.25)
    assert (common.tokens, common.positions) == (1, 1)
    assert common.divergence is not None
    texts = common.divergence.reference_token, common.divergence.candidate_token
    assert texts == ((END, "t2") if is_reference_short else ("t2", END))
    assert common.divergence.position == 1
    assert not common.divergence.is_near_tie


def test_a_cut_list_of_tokens_is_no_end() -> None:
    cut = answer(token(1), completion_tokens=40)
    assert common_prefix(cut, answer(token(1), token(2)), 0.25).divergence is None
    full = Observation(tokens=Tokens([token(1)] * MAX_LOGPROB_TOKENS))
    longer = Observation(tokens=Tokens([token(1)] * (MAX_LOGPROB_TOKENS + 1)))
    assert common_prefix(full, longer, 0.25).divergence is None


def test_equal_answers_do_not_diverge() -> None:
    common = common_prefix(answer(token(1), token(2)), answer(token(1), token(2)), 0.25)
    assert (common.tokens, common.positions, common.divergence) == (2, 2, None)


@pytest.mark.parametrize("is_reference_plain", [True, False])
def test_a_token_without_identity_ends_the_prefix_before_it(is_reference_plain: bool) -> None:
    plain = Observation(tokens=Tokens([token(1), token(2), Token("t3", -0.1), token(4)]))
    known = answer(token(1), token(2), token(3), token(5))
    pair = (plain, known) if is_reference_plain else (known, plain)
    common = common_prefix(*pair, 0.25)
    assert (common.tokens, common.positions) == (2, 2)
    assert (common.divergence, common.reason) == (None, None)


def test_text_alone_does_not_tell_tokens_apart() -> None:
    plain = Observation(tokens=Tokens([Token("x", -0.1)]))
    assert common_prefix(plain, plain, 0.25).reason == "no_token_identity"
    bytes_only = Observation(tokens=Tokens([Token("\ufffd", -0.1, b"\xe4")]))
    other = Observation(tokens=Tokens([Token("\ufffd", -0.1, b"\xe5")]))
    assert common_prefix(bytes_only, other, 0.25).divergence is not None
