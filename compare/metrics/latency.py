"""Latency and speed of each side, as the client saw them."""

from __future__ import annotations

from compare.metrics.sides import Sides
from compare.result import Scores
from ingest.observation import MAX_LOGPROB_TOKENS, Observation


def score_latency(sides: Sides, scores: Scores) -> None:
    """Put total and first-token milliseconds, tokens a second of each side, and the ratio of totals."""
    for name, observation in (("reference", sides.reference), ("candidate", sides.candidate)):
        total, first, speed = f"{name}_total_ms", f"{name}_first_token_ms", f"{name}_tokens_per_s"
        reason = _reason(observation)
        if reason is not None or observation.timings is None:
            for score in (total, first, speed):
                scores.skip(score, reason or "no_timings")
            continue
        timings = observation.timings
        scores.put(total, timings.total_ms)
        if timings.first_token_ms is None:
            scores.skip(first, "not_streamed")
        else:
            scores.put(first, timings.first_token_ms)
        tokens = _token_count(observation)
        if tokens is None:
            scores.skip(speed, "no_token_count")
        else:
            scores.put(speed, tokens * 1000.0 / timings.total_ms)
    reason = _reason(sides.reference) or _reason(sides.candidate)
    if reason is not None:
        scores.skip("latency_ratio", reason)
    else:
        scores.put("latency_ratio", scores.values["candidate_total_ms"] / scores.values["reference_total_ms"])


def _reason(observation: Observation) -> str | None:
    if not observation.has_answer:
        return "no_answer"
    if observation.timings is None or observation.timings.total_ms <= 0.0:
        return "no_timings"
    return None


def _token_count(observation: Observation) -> int | None:
    """Return the usage's count, else the number of listed tokens if the list is whole."""
    if observation.completion_tokens is not None:
        return observation.completion_tokens
    count = len(observation.tokens)
    return count if 0 < count < MAX_LOGPROB_TOKENS else None
