from __future__ import annotations

import pytest

from compare.metrics.latency import score_latency
from compare.result import Scores
from ingest.observation import Failure, FailureKind, Observation, Timings
from tests.compare.metrics.reports import TIMED, sides


def test_each_side_and_the_ratio() -> None:
    scores = Scores()
    reference = Observation(timings=TIMED, completion_tokens=30)
    score_latency(sides(reference, Observation(timings=Timings(500.0), completion_tokens=25)), scores)
    assert scores.values == {
        "reference_total_ms": 200.0,
        "reference_first_token_ms": 50.0,
        "reference_tokens_per_s": pytest.approx(150.0),
        "candidate_total_ms": 500.0,
        "candidate_tokens_per_s": pytest.approx(50.0),
        "latency_ratio": 2.5,
    }
    assert scores.unscored == {"candidate_first_token_ms": "not_streamed"}


def test_time_to_a_failure_is_no_latency() -> None:
    scores = Scores()
    failed = Observation(timings=TIMED, failure=Failure(FailureKind.HTTP_ERROR, "boom", 500))
    score_latency(sides(Observation(), failed), scores)
    assert scores.values == {}
    assert scores.unscored["reference_total_ms"] == "no_timings"
    assert scores.unscored["candidate_total_ms"] == "no_answer"
    assert scores.unscored["latency_ratio"] == "no_timings"


def test_without_a_count_there_is_no_speed() -> None:
    scores = Scores()
    score_latency(sides(Observation(timings=TIMED), Observation(timings=TIMED)), scores)
    assert scores.unscored["reference_tokens_per_s"] == "no_token_count"
