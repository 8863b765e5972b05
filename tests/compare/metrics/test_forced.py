from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from compare.result import Scores
from ingest.forced import UNSCORED_REASONS
from ingest.pair import Forced
from ingest.tokens import Token
from tests.compare.metrics import reports
from tests.compare.metrics.reports import NO_FORCED, answer, entry, forced, log, token

NAMES = {
    "kl_forced_mean_nats",
    "kl_forced_p99_nats",
    "kl_forced_max_nats",
    "top1_agreement_forced_ratio",
    "perplexity_forced_ratio",
    "js_forced_lower_mean_nats",
    "js_forced_upper_mean_nats",
    "probability_change_forced_mean",
    "probability_change_forced_rms",
    "probability_change_forced_p1",
    "probability_change_forced_p99",
}


def listed(logprob: float | None, *entries: tuple[int, float]) -> Token:
    """Forced token 1 with the list that a side has there."""
    top = sorted((entry(*item) for item in entries), key=lambda item: -item.logprob)
    return Token("t1", logprob, None, 1, tuple(top), len(top))


def position(p: float, q: float) -> tuple[Token, Token]:
    """Forced token 1 of probability p and q; token 2 has the rest."""
    return listed(log(p), (1, p), (2, 1 - p)), listed(log(q), (1, q), (2, 1 - q))


def kl(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def scored(given: Forced | None, **more: Any) -> Scores:
    scores, _ = reports.scored(answer(token(1)), answer(token(1)), forced=given, **more)
    values = {name: value for name, value in scores.values.items() if "forced" in name}
    return Scores(values, {name: why for name, why in scores.unscored.items() if "forced" in name})


def test_whole_distributions_give_the_exact_numbers() -> None:
    pairs = [(0.9, 0.8), (0.7, 0.4), (0.6, 0.55), (0.99, 0.2)]
    scores = scored(forced(*(position(p, q) for p, q in pairs)))
    truth = [kl(p, q) for p, q in pairs]
    assert scores.values["kl_forced_mean_nats"] == pytest.approx(np.mean(truth))
    assert scores.values["kl_forced_max_nats"] == pytest.approx(max(truth))
    assert scores.values["kl_forced_p99_nats"] == pytest.approx(np.percentile(truth, 99))
    assert scores.values["top1_agreement_forced_ratio"] == 0.5
    ratio = math.exp(np.mean([math.log(p / q) for p, q in pairs]))
    assert scores.values["perplexity_forced_ratio"] == pytest.approx(ratio)
    assert scores.unscored == {}


def test_a_forced_token_outside_the_list_counts_with_the_last_ranked() -> None:
    scores = scored(forced((listed(log(0.6), (1, 0.6)), listed(None, (2, 0.7), (3, 0.1)))))
    assert scores.values["perplexity_forced_ratio"] == pytest.approx(0.6 / 0.1)
    assert scores.values["top1_agreement_forced_ratio"] == 0.0


def test_an_impossible_forced_token_is_infinite() -> None:
    outside = listed(log(0.6), (1, 0.6)), listed(None, (2, 1.0), (3, 0.0))
    scores = scored(forced(position(0.9, 0.8), outside))
    infinite = {name for name in NAMES if name.startswith("kl_") or name == "perplexity_forced_ratio"}
    assert scores.unscored == dict.fromkeys(infinite, "infinite")


@pytest.mark.parametrize(
    ("given", "more", "reason"),
    [
        (None, {}, "not_asked"),
        (NO_FORCED, {}, "unsupported_engine"),
        (Forced(), {}, "no_logprobs"),
        (forced(position(0.9, 0.8)), {"reference_body": {"grammar": "x"}}, "constrained"),
    ],
)
def test_why_nothing_is_scored(given: Forced | None, more: dict[str, Any], reason: str) -> None:
    assert scored(given, **more).unscored == dict.fromkeys(NAMES, reason)


def test_every_reason_that_ingest_gives_is_passed_on() -> None:
    for reason in UNSCORED_REASONS:
        assert set(scored(Forced(unscored=reason)).unscored.values()) == {reason}
