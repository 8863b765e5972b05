"""What stands beside synthetic pairs: requests, observations, findings, noise and forced pairs, positions,
outcomes, delivered ranges. Made in the store from `pairs`, as narrow as recipes read them: no texts.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from compare.store import Store

POSITION_TOKENS = 64
"""Positions a pair, in `forced_pairs` and `positions`."""

_KEY = "topic, topic_id, `partition`, `offset`"
_AT = "ingested_at, version"
_ROLES = "['prose', 'prose', 'prose', 'value', 'number', 'key', 'syntax', 'prose']"
_POSITIONS = (
    f"arrayMap(n -> toNullable(toFloat32(exp(-5 + 3 * (cityHash64(n, `offset`) % 1000 / 1000)))),"
    f" range({POSITION_TOKENS})), arrayMap(n -> toNullable(toFloat32((cityHash64(`offset`, n) % 1000 - 500)"
    f" / 5000)), range({POSITION_TOKENS})), arrayMap(n -> {_ROLES}[cityHash64(n) % 8 + 1],"
    f" range({POSITION_TOKENS}))"
)
_LISTS = "kl_lower_nats, probability_change, role"

SIDES = {
    "requests": (
        f"INSERT INTO requests ({_KEY}, request_id, request_hash, mirrored_at, tenant, route, endpoint,"
        f" served_model, served_engine, served_quantization, {_AT})"
        f" SELECT {_KEY}, request_id, request_hash, mirrored_at, tenant, route, endpoint, served_model,"
        f" 'vllm', served_quantization, {_AT}"
    ),
    **{
        f"observations of the {role}": (
            f"INSERT INTO observations (experiment, role, endpoint_name, {_KEY}, attempt_id, request_id,"
            f" prompt_tokens, completion_tokens, total_ms, failure_kind, failure_status, failure_message,"
            f" {_AT}) SELECT experiment, '{role}', {role}, {_KEY}, attempt_id, request_id, prompt_tokens,"
            f" {role}_tokens, {role}_total_ms, if(verdict = '{role}_error', 'http', NULL),"
            f" if(verdict = '{role}_error', 500, NULL), if(verdict = '{role}_error', 'boom', NULL), {_AT}"
        )
        for role in ("reference", "candidate")
    },
    "findings": (
        f"INSERT INTO findings (experiment, candidate, {_KEY}, attempt_id, mirrored_at, finding.family,"
        " finding.code, finding.side, finding.message, finding.is_fault, finding.unit, finding.start,"
        f" finding.end, finding.measured, finding.threshold, {_AT})"
        f" SELECT experiment, candidate, {_KEY}, attempt_id, mirrored_at, candidate_fault_families,"
        " candidate_fault_families, ['candidate'], ['seen'], [true], [''], [0], [0], [NULL], [NULL],"
        f" {_AT}"
    ),
    "noise_pairs": (
        f"INSERT INTO noise_pairs (experiment, candidate, side, {_KEY}, attempt_id, request_id,"
        " request_hash, mirrored_at, route, kl_forced_mean_nats, kl_prefix_mean_nats, exact_match,"
        f" edit_similarity, cosine_similarity, refusal_flip, numbers_differ, {_AT})"
        f" SELECT experiment, candidate, 'reference', {_KEY}, attempt_id, request_id, request_hash,"
        " mirrored_at, route, kl_forced_mean_nats / 10, kl_prefix_mean_nats / 10, exact_match,"
        f" edit_similarity, cosine_similarity, refusal_flip, numbers_differ, {_AT}"
    ),
    "forced_pairs": (
        f"INSERT INTO forced_pairs (experiment, candidate, {_KEY}, attempt_id, request_id, mirrored_at,"
        f" route, served_model, mode, kl_forced_mean_nats, {_LISTS}, {_AT})"
        f" SELECT experiment, candidate, {_KEY}, attempt_id, request_id, mirrored_at, route, served_model,"
        f" mode, kl_forced_mean_nats, {_POSITIONS}, {_AT}"
    ),
    "positions": (
        f"INSERT INTO positions (experiment, candidate, {_KEY}, attempt_id, {_LISTS}, {_AT})"
        f" SELECT experiment, candidate, {_KEY}, attempt_id, {_POSITIONS}, {_AT}"
    ),
    "outcomes": (
        f"INSERT INTO outcomes (experiment, {_KEY}, kind, reason, request_id, mirrored_at, {_AT})"
        # Offsets that no pair has.
        " SELECT experiment, topic, topic_id, `partition`, `offset` + 100000000, if(`offset` % 3 = 0,"
        f" 'failed', 'skipped'), 'synthetic', request_id, mirrored_at, {_AT}"
    ),
    "delivered_ranges": (
        "INSERT INTO delivered_ranges (experiment, consumer_group, topic, topic_id, `partition`,"
        f" first_offset, end_offset, records, {_AT}) SELECT experiment, 'gnomon', {_KEY}, `offset` + 100,"
        f" 100, {_AT}"
    ),
}
_WHICH = {
    "findings": "notEmpty(candidate_fault_families)",
    "noise_pairs": "`offset` % 100 = 0",
    "forced_pairs": "kl_forced_mean_nats IS NOT NULL",
    "positions": "prefix_tokens IS NOT NULL AND `offset` % 10 = 0",
    "outcomes": "`offset` % 50 = 0",
    "delivered_ranges": "`offset` % 100 = 0",
}


def fill_sides(store: Store, start: datetime) -> None:
    """Fill the side tables for the pairs of the 24 hours from `start`, an hour a statement."""
    for name, insert in SIDES.items():
        for hour in range(24):
            store.command(
                f"{insert} FROM pairs WHERE ingested_at >= {{first:DateTime64(3, 'UTC')}}"
                " AND ingested_at < {first:DateTime64(3, 'UTC')} + INTERVAL 1 HOUR"
                f" AND {_WHICH.get(name, '1')} SETTINGS max_threads = 1, max_block_size = 8192,"
                " min_insert_block_size_rows = 65536, min_insert_block_size_bytes = 67108864",
                {"first": start + timedelta(hours=hour)},
            )
