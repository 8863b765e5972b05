from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from compare.metrics.embedding import CosineResult, TextEncoder
from compare.metrics.spec import METRICS
from compare.result import Scores
from compare.score import score_pairs
from ingest.alternative import Alternative
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.pair import Forced, Mode, ResponsePair
from ingest.settings import CompareSettings
from ingest.tokens import Token, Tokens
from tests.compare.metrics.reports import NO_FORCED, TIMED, answer, entry, forced, pair, token

SPECS = {spec.name: spec for spec in METRICS}
SETTINGS = CompareSettings()
JSON_BODY = {
    "messages": [],
    "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
}


class CountingEncoder(TextEncoder):
    """Counts batches instead of loading a model."""

    def __init__(self) -> None:
        super().__init__("none")
        self.batches: list[list[tuple[str, str]]] = []

    def encode_pairs(self, pairs: Any) -> list[CosineResult]:
        self.batches.append(list(pairs))
        return [CosineResult(0.5, 0.25) for _ in pairs]


def check(scores: Scores) -> None:
    """Every metric exactly once; values finite and in range; reasons those that are declared."""
    assert sorted([*scores.values, *scores.unscored]) == sorted(SPECS)
    for name, value in scores.values.items():
        spec = SPECS[name]
        assert math.isfinite(value)
        assert spec.low is None or value >= spec.low
        assert spec.high is None or value <= spec.high
    for name, reason in scores.unscored.items():
        assert reason in SPECS[name].unscored


def odd_observations() -> list[Observation]:
    """Answers of every kind, healthy and not."""
    nan_list = Token("x", None, None, 1, (Alternative("x", math.nan, None, 1),), 1)
    gone = Token("x", None, None, 1, (Alternative("x", -math.inf, None, 1),), 1)
    return [
        answer(token(1, (2, 0.05)), token(3, (4, 0.1)), timings=TIMED, completion_tokens=3),
        answer(token(1, (2, 0.0), p=1.0), token(4, (3, 0.2), p=0.8), text="", timings=TIMED),
        answer(token(2, (1, 0.4), p=0.5), text='{"code": 41, "x": [1, 2]}'),
        answer(token(1, (1, 0.05)), text="I'm sorry, but I can't."),
        answer(nan_list, gone, text="\u5df4\u9ece"),
        answer(Token("x", -0.1), text="no identity"),
        answer(token(1, (2, 0.8), p=0.9), text='{"code": 42'),
        answer(Token("x", -0.1, None, 1), text="no lists"),
        Observation(text="no tokens", timings=TIMED),
        Observation(tool_calls=(ToolCall("f", "{}"),)),
        Observation(failure=Failure(FailureKind.CUT_STREAM, "cut"), text="half", tokens=Tokens([token(1)])),
    ]


def forced_of_all_kinds() -> list[Forced | None]:
    def one(logprob: float | None, *top: Alternative) -> Token:
        return Token("a", logprob, None, 1, top, len(top))

    whole = one(-0.1, entry(1, 0.9), entry(2, 0.1)), one(-0.5, entry(1, 0.6), entry(2, 0.4))
    endless = one(-0.1, entry(1, 0.9)), one(None, entry(2, 1.0), entry(3, 0.0))
    return [None, NO_FORCED, forced(whole), forced(whole, endless), forced((one(None), one(None)))]


def all_pairs() -> list[ResponsePair]:
    odd, kinds = odd_observations(), forced_of_all_kinds()
    made = []
    for number, (a, b) in enumerate((a, b) for a in odd for b in odd):
        more: dict[str, Any] = {"forced": kinds[number % len(kinds)]}
        if number % 4 == 1:
            more["mode"] = (Mode.AS_SENT, Mode.MIRRORED)[number % 8 // 5]
        if number % 3 == 1:
            more["body"] = JSON_BODY
        if number % 5 == 1:
            more["prompt_differs"] = True
        if number % 7 == 1:
            more["vocabulary_size"] = None
        if number % 2:
            more["reference_again"] = odd[number % len(odd)]
            more["candidate_again"] = odd[(number + 3) % len(odd)]
        made.append(pair(a, b, **more))
    return made


@pytest.mark.parametrize("encoder", [None, CountingEncoder()])
def test_every_metric_is_scored_or_unscored_for_every_pair(encoder: TextEncoder | None) -> None:
    pairs = all_pairs()
    results = score_pairs(pairs, encoder, SETTINGS)
    assert len(results) == len(pairs) == 121
    for made, result in zip(pairs, results, strict=True):
        check(result.scores)
        assert (result.noise is None) == (made.reference_again is None)
        assert (result.candidate_noise is None) == (made.candidate_again is None)
        for noise in (result.noise, result.candidate_noise):
            if noise is not None:
                check(noise)
    scored = {name for result in results for name in result.scores.values}
    missing = set() if encoder else {"cosine_similarity", "cosine_min_similarity"}
    assert scored == set(SPECS) - missing


def test_noise_goes_through_the_same_code() -> None:
    a, b = answer(token(1), token(2), timings=TIMED), answer(token(1), token(3), text="no", timings=TIMED)
    noisy = score_pairs([pair(a, a, reference_again=b, candidate_again=a)], None, SETTINGS)[0]
    plain = score_pairs([pair(a, b)], None, SETTINGS)[0]
    assert noisy.noise is not None
    assert noisy.candidate_noise is not None
    assert noisy.noise.values == plain.scores.values
    assert noisy.candidate_noise.values["exact_match"] == 1.0
    assert noisy.candidate_noise.values["kl_prefix_max_nats"] == 0.0
    assert noisy.noise.unscored["kl_forced_mean_nats"] == "not_asked"


def test_the_encoder_sees_the_batch_at_once_and_only_answers() -> None:
    encoder = CountingEncoder()
    a, b = answer(text="a"), answer(text="b")
    failed = Observation(failure=Failure(FailureKind.HTTP_ERROR, "boom", 500))
    pairs = [pair(a, b, reference_again=b), pair(a, failed), pair(b, a)]
    results = score_pairs(pairs, encoder, SETTINGS)
    assert encoder.batches == [[("a", "b"), ("a", "b"), ("b", "a")]]
    assert results[0].scores.values["cosine_similarity"] == 0.5
    assert results[0].scores.values["cosine_min_similarity"] == 0.25
    assert results[1].scores.unscored["cosine_similarity"] == "no_answer"


def test_without_an_encoder_the_cosine_says_why() -> None:
    scores = score_pairs([pair(answer(), answer())], None, SETTINGS)[0].scores
    assert scores.unscored["cosine_similarity"] == "embeddings_off"


def test_identical_observations_differ_in_nothing() -> None:
    one = answer(token(1, (2, 0.05)), token(3, (4, 0.1)), text='{"a": 1}', timings=TIMED)
    found = score_pairs([pair(one, one), pair(one, one, body=JSON_BODY)], CountingEncoder(), SETTINGS)
    values = found[0].scores.values
    assert values["kl_prefix_mean_nats"] == values["kl_prefix_max_nats"] == 0.0
    assert values["entropy_shift_prefix_nats"] == 0.0
    assert values["top1_agreement_prefix_ratio"] == values["exact_match"] == values["edit_similarity"] == 1.0
    assert values["numbers_differ"] == values["keys_differ"] == values["refusal_flip"] == 0.0
    assert values["latency_ratio"] == values["length_ratio"] == 1.0
    assert found[0].divergence is None
    assert found[1].scores.values["field_agreement"] == 1.0
    assert found[1].differing_paths == ()


def test_the_order_of_alternatives_does_not_matter() -> None:
    random = np.random.default_rng(4)
    a = answer(token(1, (2, 0.06), (3, 0.03)), token(4, (5, 0.08)))
    b = answer(token(1, (3, 0.05), (7, 0.02)), token(5, (4, 0.4), p=0.5))

    def turned(side: Observation) -> Observation:
        tokens = []
        for item in side.tokens:
            order = random.permutation(len(item.top))
            tokens.append(msgspec.structs.replace(item, top=tuple(item.top[i] for i in order)))
        return msgspec.structs.replace(side, tokens=Tokens(tokens))

    plain = score_pairs([pair(a, b)], None, SETTINGS)[0].scores.values
    for _ in range(5):
        again = score_pairs([pair(turned(a), turned(b))], None, SETTINGS)[0].scores.values
        assert again == pytest.approx(plain)


def test_near_tie_follows_the_setting() -> None:
    a, b = answer(token(1, (2, 0.4), p=0.5)), answer(token(2, (1, 0.4), p=0.5))
    for limit, expected in ((0.25, True), (0.2, False)):
        settings = CompareSettings(near_tie_nats=limit)
        divergence = score_pairs([pair(a, b)], None, settings)[0].divergence
        assert divergence is not None
        assert divergence.is_near_tie is expected


def test_fields_that_differ_are_named() -> None:
    a, b = answer(text='{"a": 1, "b": 2}'), answer(text='{"a": 1, "b": 3}')
    result = score_pairs([pair(a, b, body=JSON_BODY)], None, SETTINGS)[0]
    assert result.differing_paths == ("$.b",)
    assert replace(result).scores.values["field_agreement"] == 0.5


def test_no_pairs() -> None:
    assert score_pairs([], None, SETTINGS) == []
