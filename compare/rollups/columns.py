"""What a rollup holds: its dimensions, and each number with the expression over `pairs_v1` that makes it."""

from __future__ import annotations

from compare.alerts.source import COUNTED
from compare.result import VerdictKind

DIMENSIONS = ("route", "tenant", "language", "kind", "prompt_length", "served_model", "verdict")
"""One value a pair. The whole traffic is the dimension `all`, with an empty value."""

FAMILY_DIMENSIONS = {
    "candidate_family": "candidate_fault_families",
    "reference_family": "reference_fault_families",
    "candidate_only_family": "candidate_only_families",
    "reference_only_family": "reference_only_families",
}
"""Any number of values a pair, also none: the dimension, and the array that holds them."""

_SCHEMA = "reference_is_schema_valid = 1 AND candidate_is_schema_valid IS NOT NULL"
_SCHEMA_LOST = "reference_is_schema_valid = 1 AND candidate_is_schema_valid = 0"

COUNTS = {
    "pairs": "count()",
    "regressions": "countIf(is_regression)",
    "candidate_only_faults": "countIf(is_candidate_only_fault)",
    "reference_only_faults": "countIf(is_reference_only_fault)",
    "counted_pairs": f"countIf({COUNTED})",
    "counted_regressions": f"countIf(is_regression AND {COUNTED})",
    "counted_candidate_only_faults": f"countIf(is_candidate_only_fault AND {COUNTED})",
    "counted_reference_only_faults": f"countIf(is_reference_only_fault AND {COUNTED})",
    **{f"{kind.value}_pairs": f"countIf(verdict = '{kind.value}')" for kind in VerdictKind},
    "exact_pairs": "countIf(exact_match = 1)",
    "schema_pairs": f"countIf({_SCHEMA})",
    "schema_regressions": f"countIf({_SCHEMA_LOST})",
    "enforced_schema_pairs": f"countIf({_SCHEMA} AND is_structure_enforced)",
    "enforced_schema_regressions": f"countIf({_SCHEMA_LOST} AND is_structure_enforced)",
}
"""`counted` pairs are those that may move an alert's rate."""

DIGESTED = (
    "kl_forced_mean_nats",
    "cosine_similarity",
    "edit_similarity",
    "severity",
    "latency_ratio",
    "reference_total_ms",
    "candidate_total_ms",
)
"""Kept with quantile states."""

SUMMED = (
    *DIGESTED,
    "top1_agreement_forced_ratio",
    "field_agreement",
    "reference_tokens",
    "candidate_tokens",
    "prompt_tokens",
)
"""Kept as a sum and the number of pairs that have the value."""

LEVELS = (0.01, 0.05, 0.5, 0.9, 0.95, 0.99)
LEVELS_SQL = ", ".join(f"{level:g}" for level in LEVELS)


def aggregates() -> dict[str, str]:
    """Column of `rollup_hourly` to the expression over columns of `pairs_v1`, in the table's order."""
    made = dict(COUNTS)
    for name in SUMMED:
        made[f"{name}_pairs"] = f"count({name})"
        made[f"{name}_sum"] = f"ifNull(sum(toFloat64({name})), 0)"
    for name in DIGESTED:
        # `If` because a state of a Nullable column is of another type than one of a plain column.
        value = f"toFloat32(assumeNotNull({name})), {name} IS NOT NULL"
        made[f"{name}_state"] = f"quantilesTDigestStateIf({LEVELS_SQL})({value})"
    return made
