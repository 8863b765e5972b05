from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from compare.metrics.forced import score_forced
from compare.result import Scores
from ingest.forced import UNSCORED_REASONS
from ingest.pair import Forced, ForcedPosition
from tests.compare.metrics.reports import NO_FORCED, answer, entry, log, sides, token

NAMES = {
    "kl_forced_mean_nats",
    "kl_forced_p99_nats",
    "kl_forced_max_nats",
    "top1_agreement_forced_ratio",
    "perplexity_forced_ratio",
}


def position(p: float, q: float) -> ForcedPosition:
    """Forced token 1 of probability p and q; token 2 has the rest."""
    candidate = sorted([entry(1, q), entry(2, 1 - q)], key=lambda item: -item.logprob)
    return ForcedPosition(1, "t1", log(p), log(q), (entry(1, p), entry(2, 1 - p)), tuple(candidate))


def kl(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def scored(forced: Forced | None, **more: Any) -> Scores:
    scores = Scores()
    score_forced(sides(answer(token(1)), answer(token(1)), forced=forced, **more), scores)
    return scores


def test_whole_distributions_give_the_exact_numbers() -> None:
    pairs = [(0.9, 0.8), (0.7, 0.4), (0.6, 0.55), (0.99, 0.2)]
    scores = scored(Forced(tuple(position(p, q) for p, q in pairs)))
    truth = [kl(p, q) for p, q in pairs]
    assert scores.values["kl_forced_mean_nats"] == pytest.approx(np.mean(truth))
    assert scores.values["kl_forced_max_nats"] == pytest.approx(max(truth))
    assert scores.values["kl_forced_p99_nats"] == pytest.approx(np.percentile(truth, 99))
    assert scores.values["top1_agreement_forced_ratio"] == 0.5
    ratio = math.exp(np.mean([math.log(p / q) for p, q in pairs]))
    assert scores.values["perplexity_forced_ratio"] == pytest.approx(ratio)
    assert scores.unscored == {}


def test_a_forced_token_outside_the_list_counts_with_the_last_ranked() -> None:
    outside = ForcedPosition(1, "t1", log(0.6), None, (entry(1, 0.6),), (entry(2, 0.7), entry(3, 0.1)))
    scores = scored(Forced((outside,)))
    assert scores.values["perplexity_forced_ratio"] == pytest.approx(0.6 / 0.1)
    assert scores.values["top1_agreement_forced_ratio"] == 0.0


def test_an_impossible_forced_token_is_infinite() -> None:
    outside = ForcedPosition(1, "t1", log(0.6), None, (entry(1, 0.6),), (entry(2, 1.0), entry(3, 0.0)))
    scores = scored(Forced((position(0.9, 0.8), outside)))
    assert scores.unscored == dict.fromkeys(NAMES - {"top1_agreement_forced_ratio"}, "infinite")


@pytest.mark.parametrize(
    ("forced", "more", "reason"),
    [
        (None, {}, "not_asked"),
        (NO_FORCED, {}, "unsupported_engine"),
        (Forced(), {}, "no_logprobs"),
        (Forced((position(0.9, 0.8),)), {"reference_body": {"grammar": "x"}}, "constrained"),
    ],
)
def test_why_nothing_is_scored(forced: Forced | None, more: dict[str, Any], reason: str) -> None:
    assert scored(forced, **more).unscored == dict.fromkeys(NAMES, reason)


def test_every_reason_that_ingest_gives_is_passed_on() -> None:
    for reason in UNSCORED_REASONS:
        assert set(scored(Forced(unscored=reason)).unscored.values()) == {reason}
