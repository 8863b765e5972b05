"""Synthetic pairs, column-wise: the cardinalities, NULLs and tails of real ones.

Three experiments, 12 routes, 200 tenants of a heavy-tailed share, 6 models, 12 Kafka partitions; one pair in
seven has forced scores; KL is log-normal. What the pipeline leaves empty for most pairs is empty here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compare.store.native_columns import Column, Lists, Words

VERDICTS = {
    "match": 0.42,
    "equivalent": 0.33,
    "diverged": 0.20,
    "candidate_worse": 0.015,
    "reference_worse": 0.007,
    "both_faulty": 0.013,
    "candidate_error": 0.005,
    "reference_error": 0.003,
    "both_error": 0.002,
    "unscored": 0.005,
}
FAMILIES = ("repetition", "json", "garbage", "truncation", "toolcall", "language")
LANGUAGES = ("en", "de", "fr", "es", "zh", "ja", "pt", "ru", "hi", "")
EXPERIMENTS = ("nightly", "canary", "int4-eval")
PARTITIONS = 12

Floats = NDArray[np.float64]


def pair_columns(first: int, count: int, start: datetime, seconds: float) -> dict[str, Column]:
    """Columns of `pairs` for the pairs `first` to `first + count`, taken up evenly over `seconds` from
    `start`; the same arguments give the same pairs.
    """
    rng = np.random.default_rng(first)
    number = np.arange(first, first + count)
    at = np.int64(start.timestamp() * 1000) + (np.arange(count) * (seconds * 1000 / count)).astype(np.int64)
    verdict = rng.choice(len(VERDICTS), count, p=list(VERDICTS.values()))
    is_greedy = rng.random(count) < 0.8
    is_forced = is_greedy & (rng.random(count) < 0.18)
    is_json = rng.random(count) < 0.25
    diverges = verdict > 0
    families = rng.integers(0, len(FAMILIES), count)
    candidate_only, reference_only, both = verdict == 3, verdict == 4, verdict == 5
    skew = rng.random(count)

    def flat(word: str) -> Words:
        return Words([word], np.zeros(count, "u1"))

    def one_of(words: tuple[str, ...], draw: Any) -> Words:
        return Words(words, np.minimum((draw * len(words)).astype("i4"), len(words) - 1))

    def score(values: Floats, present: NDArray[np.bool_]) -> Column:
        return np.ma.masked_array(values.astype("f4"), mask=~present)

    def log_normal(mean: float, sigma: float) -> Floats:
        return np.exp(rng.normal(mean, sigma, count))

    def shown(where: NDArray[np.bool_]) -> Lists:
        return Lists(np.cumsum(where), (Words(FAMILIES, families[where]),))

    def bytes_of(width: int) -> NDArray[np.uint8]:
        return np.frombuffer(rng.bytes(width * count), dtype="u1").reshape(count, width)

    def hexes(digits: int, prefix: bytes) -> NDArray[np.uint8]:
        text = np.frombuffer(rng.bytes(count * digits // 2).hex().encode(), dtype="u1")
        before = np.tile(np.frombuffer(prefix, dtype="u1"), (count, 1))
        return np.hstack((before, text.reshape(count, digits)))

    everywhere = np.ones(count, bool)
    total_ms = log_normal(7, 0.8)
    candidate_ms = total_ms * log_normal(-0.5, 0.4)
    uuids = bytes_of(16)
    shown_tokens = np.where(diverges, rng.integers(0, 1000, count), -1)
    reasons = Words(("the texts are the same", "edit_similarity under 0.9"), diverges.astype("u1"))
    unscored = np.where(is_forced, 1, 3)
    unscored_ends = np.cumsum(unscored)
    position = np.arange(unscored_ends[-1]) - np.repeat(unscored_ends - unscored, unscored)
    return {
        "experiment": Words(EXPERIMENTS, np.searchsorted([6, 9], number % 10, side="right")),
        "candidate": flat("q4"),
        "reference": flat("full"),
        "topic": flat("gnomon.mirror"),
        "topic_id": flat("6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        "partition": number % PARTITIONS,
        "offset": number // PARTITIONS,
        "attempt_id": uuids,
        "request_id": hexes(24, b"chatcmpl-"),
        "request_hash": hexes(32, b""),
        "mirrored_at": at - rng.integers(200, 4200, count),
        "ingested_at": at,
        "is_clock_suspect": np.zeros(count, "u1"),
        "tenant": one_of(tuple(f"tenant-{n}" for n in range(200)), skew**3),
        "route": one_of(tuple(f"route-{n}" for n in range(12)), rng.random(count) ** 2),
        "endpoint": flat("/v1/chat/completions"),
        "language": one_of(LANGUAGES, rng.random(count) ** 3),
        "kind": Words(("json", "chat", "tools"), np.where(is_json, 0, 1 + (skew < 0.1))),
        "served_model": one_of(tuple(f"model-{n}" for n in range(6)), rng.random(count)),
        "served_quantization": flat("awq-int4"),
        "mode": Words(("greedy", "as_sent"), np.where(is_greedy, 0, 1)),
        "changes": Lists(
            2 * np.arange(1, count + 1), (Words(("seed=0", "temperature=0"), np.tile([0, 1], count)),)
        ),
        "is_prompt_different": np.zeros(count, "u1"),
        "verdict": Words(tuple(VERDICTS), verdict),
        "is_regression": (verdict == 3) | (verdict == 6),
        "reasons": Lists(np.arange(1, count + 1), (reasons,)),
        "probable_cause": Words(("", "sampler", "unknown"), np.where(verdict < 3, 0, 1 + families % 2)),
        "severity": score(np.where(diverges, rng.random(count) ** 2, 0.0), everywhere),
        "candidate_only_families": shown(candidate_only),
        "reference_only_families": shown(reference_only),
        "candidate_fault_families": shown(candidate_only | both),
        "reference_fault_families": shown(reference_only | both),
        "is_candidate_only_fault": candidate_only,
        "is_reference_only_fault": reference_only,
        "divergence_position": np.ma.masked_array(rng.geometric(0.03, count), mask=~(diverges & is_greedy)),
        "divergence_reference_token": Words([f" token-{t}" for t in range(1000)], shown_tokens),
        "divergence_candidate_token": Words([f" other-{t}" for t in range(1000)], shown_tokens),
        "divergence_reference_gap_nats": score(log_normal(-1, 1), diverges & is_greedy),
        "divergence_candidate_gap_nats": score(log_normal(-1, 1), diverges & is_greedy),
        "is_near_tie": np.ma.masked_array(rng.random(count) < 0.4, mask=~(diverges & is_greedy)),
        **{
            name: score(log_normal(mean, 1.6), is_greedy)
            for name, mean in {
                "kl_prefix_mean_nats": -5,
                "kl_prefix_max_nats": -2,
                "js_prefix_lower_mean_nats": -6,
                "js_prefix_upper_mean_nats": -5.5,
                "prefix_tokens": 4,
                "entropy_reference_lower_nats": -1.2,
                "entropy_reference_upper_nats": -1.1,
                "entropy_candidate_lower_nats": -1.2,
                "entropy_candidate_upper_nats": -1.1,
                "probability_change_prefix_rms": -4,
            }.items()
        },
        **{
            name: score(rng.normal(0, 0.05, count), is_greedy)
            for name in (
                "entropy_shift_prefix_nats",
                "probability_change_prefix_mean",
                "probability_change_prefix_p5",
                "probability_change_prefix_p50",
                "probability_change_prefix_p95",
            )
        },
        "top1_agreement_prefix_ratio": score(1 - rng.random(count) ** 4, is_greedy),
        **{
            name: score(log_normal(mean, 1.5), is_forced)
            for name, mean in {
                "kl_forced_mean_nats": -4.5,
                "kl_forced_p99_nats": -2,
                "kl_forced_max_nats": -1,
                "js_forced_lower_mean_nats": -6,
                "js_forced_upper_mean_nats": -5.5,
                "probability_change_forced_rms": -4,
            }.items()
        },
        "probability_change_forced_mean": score(rng.normal(0, 0.05, count), is_forced),
        "top1_agreement_forced_ratio": score(1 - 0.3 * rng.random(count) ** 4, is_forced),
        "perplexity_forced_ratio": np.ma.masked_array(log_normal(0.01, 0.05), mask=~is_forced),
        "exact_match": score((verdict == 0).astype(float), everywhere),
        "edit_similarity": score(np.where(diverges, 1 - rng.random(count) ** 2, 1.0), everywhere),
        "cosine_similarity": score(np.where(diverges, 1 - 0.6 * rng.random(count) ** 3, 1.0), skew < 0.97),
        "cosine_min_similarity": score(
            np.where(diverges, 1 - 0.8 * rng.random(count) ** 2, 1.0), skew < 0.97
        ),
        "numbers_differ": score((rng.random(count) < 0.05).astype(float), everywhere),
        "keys_differ": score((rng.random(count) < 0.02).astype(float), is_json),
        "refusal_flip": score(np.zeros(count), everywhere),
        "length_ratio": np.ma.masked_array(log_normal(0, 0.3), mask=~everywhere),
        "field_agreement": score(1 - rng.random(count) ** 6, is_json),
        "reference_is_valid_json": score((rng.random(count) < 0.995).astype(float), is_json),
        "candidate_is_valid_json": score((rng.random(count) < 0.98).astype(float), is_json),
        "reference_is_schema_valid": score((rng.random(count) < 0.99).astype(float), is_json),
        "candidate_is_schema_valid": score((rng.random(count) < 0.97).astype(float), is_json),
        "is_structure_enforced": np.ma.masked_array(families % 2 == 0, mask=~is_json),
        "reference_total_ms": score(total_ms, everywhere),
        "candidate_total_ms": score(candidate_ms, everywhere),
        "reference_first_token_ms": score(log_normal(5, 0.5), everywhere),
        "candidate_first_token_ms": score(log_normal(4.7, 0.5), everywhere),
        "reference_tokens_per_s": score(log_normal(4, 0.3), everywhere),
        "candidate_tokens_per_s": score(log_normal(4.4, 0.3), everywhere),
        "latency_ratio": np.ma.masked_array(candidate_ms / total_ms, mask=~everywhere),
        "unscored": Lists(
            unscored_ends,
            (
                Words(("field_agreement", "kl_forced_mean_nats", "kl_forced_max_nats"), position),
                Words(("no_json", "not_asked"), np.minimum(position, 1)),
            ),
        ),
        "reference_tokens": np.ma.masked_array(log_normal(5, 0.8).astype("u4"), mask=~everywhere),
        "candidate_tokens": np.ma.masked_array(log_normal(5, 0.8).astype("u4"), mask=~everywhere),
        "prompt_tokens": np.ma.masked_array(log_normal(6, 1.2).astype("u4"), mask=~everywhere),
        "reference_finish_reason": flat("stop"),
        "candidate_finish_reason": Words(("stop", "length"), (rng.random(count) < 0.05).astype("u1")),
        "version": at * 1000,
    }


def answer_columns(first: int, count: int, start: datetime) -> dict[str, Column]:
    """Columns of `observations` for one side of the pairs: answers of 1 to 2 KB of words."""
    rng = np.random.default_rng(first)
    number = np.arange(first, first + count)
    lengths = rng.integers(3, 9, 20_000)
    vocabulary = np.array([bytes(rng.integers(97, 123, size, dtype="u1")) for size in lengths], dtype=object)
    # Zipf, as words are.
    drawn = np.minimum(rng.zipf(1.3, count * 240) - 1, len(vocabulary) - 1).reshape(count, 240)
    sizes = rng.integers(160, 240, count)
    at = np.full(count, int(start.timestamp() * 1000))
    return {
        "experiment": Words(EXPERIMENTS, np.zeros(count, "u1")),
        "topic_id": Words(["6f9619ff-8b86-d011-b42d-00c04fc964ff"], np.zeros(count, "u1")),
        "partition": number % PARTITIONS,
        "offset": number // PARTITIONS,
        "role": Words(["candidate"], np.zeros(count, "u1")),
        "text": [b" ".join(vocabulary[row[:size]]) for row, size in zip(drawn, sizes, strict=True)],
        "ingested_at": at,
        "version": at * 1000,
    }
