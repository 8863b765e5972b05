"""How bad a pair is for the candidate, from 0 to 1: for ranking, never for a decision.

Each thing that speaks against the candidate has a share s in [0, 1]; together they make

    severity = 1 - product of (1 - s).

So it is 0 where nothing speaks against it, it never falls when one of them grows, and no number of small
ones reaches one large one at once. `docs/metrics.md` lists the shares; what is unscored has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from compare.result import Family, Scores, Verdict, VerdictKind

FAMILY_SHARES: dict[Family, float] = {
    Family.LOGITS: 0.8,
    Family.REPETITION: 0.7,
    Family.GARBAGE: 0.7,
    Family.EMPTY: 0.7,
    Family.JSON: 0.6,
    Family.TOOLCALL: 0.6,
    Family.LANGUAGE: 0.5,
    Family.SSE: 0.5,
    Family.UTF8: 0.4,
    Family.TRUNCATION: 0.4,
}
"""A fault family that the candidate alone shows. How much of an answer such a fault costs its reader."""

VERDICT_SHARES: dict[VerdictKind, float] = {
    VerdictKind.CANDIDATE_ERROR: 0.9,
    VerdictKind.CANDIDATE_WORSE: 0.2,
    VerdictKind.BOTH_FAULTY: 0.1,
    VerdictKind.DIVERGED: 0.1,
}
"""Kinds that are not listed have none; a fault's weight is its family's."""

KL_SHARE = 0.6
KL_HALF_NATS = 0.1
"""A mean KL of this makes half of the share; published 8B models: 0.05 at 3.9 bits, 0.16 at 3.4."""

EDIT_SHARE = 0.2
COSINE_SHARE = 0.3
SCHEMA_SHARE = 0.6
FIELD_SHARE = 0.4
TOOL_NAME_SHARE = 0.6
TOOL_ARGUMENTS_SHARE = 0.4
NUMBERS_SHARE = 0.2
KEYS_SHARE = 0.2
REFUSAL_SHARE = 0.5
LATENCY_SHARE = 0.2
LATENCY_FREE_RATIO = 2.0
"""Slower by less is what two runs of one model differ by."""


def severity(scores: Scores, verdict: Verdict) -> float:
    """Return the severity of a pair in [0, 1]."""
    left = 1.0
    for share in _shares(scores, verdict):
        left *= 1.0 - share
    return 1.0 - left


def _shares(scores: Scores, verdict: Verdict) -> Iterator[float]:
    values = scores.values
    yield VERDICT_SHARES.get(verdict.kind, 0.0)
    for family in verdict.candidate_only:
        yield FAMILY_SHARES.get(family, 0.0)
    yield KL_SHARE * _divergence(scores)
    yield EDIT_SHARE * (1.0 - values.get("edit_similarity", 1.0))
    yield COSINE_SHARE * min(1.0, 1.0 - values.get("cosine_similarity", 1.0))
    yield SCHEMA_SHARE * _schema_regression(values)
    yield FIELD_SHARE * (1.0 - values.get("field_agreement", 1.0))
    yield TOOL_NAME_SHARE * (1.0 - values.get("tool_name_agreement", 1.0))
    yield TOOL_ARGUMENTS_SHARE * (1.0 - values.get("tool_arguments_agreement", 1.0))
    for name, share in (("numbers_differ", NUMBERS_SHARE), ("keys_differ", KEYS_SHARE)):
        count = values.get(name, 0.0)
        yield share * count / (count + 1.0)
    yield REFUSAL_SHARE * values.get("refusal_flip", 0.0)
    ratio = values.get("latency_ratio", 0.0)
    yield LATENCY_SHARE * max(0.0, 1.0 - LATENCY_FREE_RATIO / ratio) if ratio > 0.0 else 0.0


def _divergence(scores: Scores) -> float:
    """Return x / (x + half) of the forced mean KL, else of the common prefix's; 1 where it is infinite."""
    for name in ("kl_forced_mean_nats", "kl_prefix_mean_nats"):
        if name in scores.values:
            return scores.values[name] / (scores.values[name] + KL_HALF_NATS)
        if scores.unscored.get(name) == "infinite":
            return 1.0
    return 0.0


def _schema_regression(values: dict[str, float]) -> float:
    """Return 1 where the reference is valid and the candidate is not, by schema, else as JSON."""
    for kind in ("schema_valid", "valid_json"):
        reference, candidate = values.get(f"reference_is_{kind}"), values.get(f"candidate_is_{kind}")
        if reference is not None and candidate is not None:
            return max(0.0, reference - candidate)
    return 0.0
