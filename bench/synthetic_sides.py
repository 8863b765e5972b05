"""What stands beside synthetic pairs: requests, observations, findings, noise and forced pairs, positions,
outcomes, delivered ranges, token use, what served. Made in the store from `pairs`, as narrow as recipes read
them: no texts.

As the pipeline leaves them: a request, two observations and a row of findings a pair; the reference asked
twice for a tenth of the pairs and the candidate for half of those; a forced pair for a fifth of the greedy
ones; one record in eleven with another outcome. Positions of the common prefix are kept for every tenth
greedy pair only: with all of them a day would be ten times as large on disk.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from compare.store import Store

POSITION_TOKENS = 64
"""Positions a pair, in `forced_pairs` and `positions`."""

_KEY = "topic, topic_id, `partition`, `offset`"
_AT = "ingested_at, version"
_ROLES = "['prose', 'prose', 'prose', 'value', 'number', 'key', 'syntax', 'prose']"
_FLOATS = (
    "arrayMap(n -> toNullable(toFloat32({})), arrayMap(n -> cityHash64(n + {}, `offset`, `partition`) % 1000,"
    f" range({POSITION_TOKENS})))"
)
_LISTS = "kl_lower_nats, js_lower_nats, js_upper_nats, probability_change, top1_agreement, role"
_POSITIONS = ", ".join(
    (
        _FLOATS.format("exp(-5 + 3 * n / 1000)", 1),
        _FLOATS.format("n / 9000", 2),
        _FLOATS.format("n / 8000", 2),
        _FLOATS.format("(n - 500) / 5000", 3),
        _FLOATS.format("n > 30", 4),
        f"arrayMap(n -> {_ROLES}[cityHash64(n) % 8 + 1], range({POSITION_TOKENS}))",
    )
)
_ENTROPIES = "reference_entropy_lower_nats, candidate_entropy_lower_nats"
_ERROR = "if(verdict = '{role}_error', {told}, NULL)"
_REPEAT = (
    "kl_forced_mean_nats / 10, kl_prefix_mean_nats / 10, exact_match, edit_similarity, cosine_similarity,"
    " refusal_flip, numbers_differ"
)
_CALL = (
    "INSERT INTO observations (experiment, role, endpoint_name, {key}, attempt_id, request_id, prompt_tokens,"
    " completion_tokens, total_ms, first_token_ms, finish_reason, has_done, failure_kind, failure_status,"
    " failure_message, {at}) SELECT experiment, '{role}{again}', {role}, {key}, attempt_id, request_id,"
    " prompt_tokens, {role}_tokens, {role}_total_ms, {role}_first_token_ms, {role}_finish_reason, true,"
    " {kind}, {status}, {message}, {at}"
)


def _calls(role: str, again: str = "") -> str:
    told = {
        "kind": "['http', 'timeout', 'cut'][`offset` % 3 + 1]",
        "status": "500",
        "message": "concat('no answer after ', toString(`offset` % 50), ' tokens')",
    }
    errors = {name: _ERROR.format(role=role, told=value) for name, value in told.items()}
    return _CALL.format(key=_KEY, at=_AT, role=role, again=again, **errors)


def _repeats(side: str) -> str:
    return (
        f"INSERT INTO noise_pairs (experiment, candidate, side, {_KEY}, attempt_id, request_id, request_hash,"
        " mirrored_at, route, kl_forced_mean_nats, kl_prefix_mean_nats, exact_match, edit_similarity,"
        f" cosine_similarity, refusal_flip, numbers_differ, {_AT}) SELECT experiment, candidate, '{side}',"
        f" {_KEY}, attempt_id, request_id, request_hash, mirrored_at, route, {_REPEAT}, {_AT}"
    )


SIDES = {
    "requests": (
        f"INSERT INTO requests ({_KEY}, request_id, request_hash, mirrored_at, tenant, route, endpoint,"
        " served_model, served_engine, served_engine_version, served_quantization, served_weights_sha256,"
        f" served_config_hash, {_AT}) SELECT {_KEY}, request_id, request_hash, mirrored_at, tenant, route,"
        " endpoint, served_model, 'vllm', if(toHour(ingested_at) < 12, '0.11.0', '0.11.1'),"
        " served_quantization, lower(hex(SHA256(served_model))), lower(hex(MD5(served_model))), " + _AT
    ),
    "reference": _calls("reference"),
    "candidate": _calls("candidate"),
    "reference again": _calls("reference", "_again"),
    "candidate again": _calls("candidate", "_again"),
    # A row for each pair, also without any finding. One pair in ten has some that are no fault.
    "findings": (
        f"INSERT INTO findings (experiment, candidate, {_KEY}, attempt_id, mirrored_at, finding.family,"
        " finding.code, finding.side, finding.message, finding.is_fault, finding.unit, finding.start,"
        f" finding.end, finding.measured, finding.threshold, {_AT})"
        " WITH arrayConcat(candidate_fault_families, reference_fault_families) AS faults,"
        " arrayConcat(faults, if(`offset` % 10 = 0, ['repetition', 'request'], [])) AS families,"
        " arrayMap((family, n) -> n <= length(faults), families, arrayEnumerate(families)) AS flags"
        f" SELECT experiment, candidate, {_KEY}, attempt_id, mirrored_at, families,"
        " arrayMap(family -> concat(family, '_', toString(`offset` % 4)), families),"
        " arrayMap((family, n) -> if(n <= length(candidate_fault_families), 'candidate', 'reference'),"
        " families, arrayEnumerate(families)),"
        " arrayMap(family -> concat('seen at ', toString(`offset` % 500)), families), flags,"
        " arrayMap(family -> 'tokens', families), arrayMap(family -> `offset` % 500, families),"
        " arrayMap(family -> `offset` % 500 + 20, families), arrayMap(family -> 1.5, families),"
        f" arrayMap(family -> 1.0, families), {_AT}"
    ),
    "reference repeats": _repeats("reference"),
    "candidate repeats": _repeats("candidate"),
    "forced_pairs": (
        f"INSERT INTO forced_pairs (experiment, candidate, {_KEY}, attempt_id, request_id, mirrored_at,"
        f" route, served_model, mode, kl_forced_mean_nats, {_LISTS}, {_AT})"
        f" SELECT experiment, candidate, {_KEY}, attempt_id, request_id, mirrored_at, route, served_model,"
        f" mode, kl_forced_mean_nats, {_POSITIONS}, {_AT}"
    ),
    "positions": (
        f"INSERT INTO positions (experiment, candidate, {_KEY}, attempt_id, `index`, {_ENTROPIES}, {_LISTS},"
        f" {_AT}) SELECT experiment, candidate, {_KEY}, attempt_id, range({POSITION_TOKENS}),"
        f" {_FLOATS.format('n / 400', 5)}, {_FLOATS.format('n / 390', 6)}, {_POSITIONS}, {_AT}"
    ),
    "outcomes": (
        f"INSERT INTO outcomes (experiment, {_KEY}, kind, reason, request_id, mirrored_at, {_AT})"
        # Offsets that no pair has.
        " WITH ['sampled_out', 'sampled_out', 'duplicate', 'endpoint', 'modality', 'endpoint_away', 'budget',"
        " 'sampled_out'][cityHash64(`offset`, `partition`) % 8 + 1] AS why"
        " SELECT experiment, topic, topic_id, `partition`, `offset` + 100000000, if(why IN ('endpoint_away',"
        f" 'budget'), 'failed', 'skipped'), why, request_id, mirrored_at, {_AT}"
    ),
}
_WHICH = {
    "reference again": "`offset` % 10 = 0",
    "candidate again": "`offset` % 20 = 0",
    "reference repeats": "`offset` % 10 = 0",
    "candidate repeats": "`offset` % 20 = 0",
    "forced_pairs": "kl_forced_mean_nats IS NOT NULL",
    "positions": "prefix_tokens IS NOT NULL AND `offset` % 10 = 0",
    "outcomes": "`offset` % 10 = 0",
}

_RANGES = (
    "INSERT INTO delivered_ranges (experiment, consumer_group, topic, topic_id, `partition`, first_offset,"
    " end_offset, records, ingested_at, version) SELECT experiment, 'gnomon', any(topic), topic_id,"
    " `partition`, min(`offset`), max(`offset`) + 1, count(), max(ingested_at) AS at,"
    " toUnixTimestamp64Micro(at) FROM {table}"
    " GROUP BY experiment, topic_id, `partition`, toStartOfMinute(ingested_at)"
)
RANGES = tuple(_RANGES.format(table=table) for table in ("pairs", "outcomes"))
"""Statements that fill `delivered_ranges` with what the pairs and outcomes say, also when run again."""

_SMALL = (
    *RANGES,
    "INSERT INTO token_use (experiment, endpoint_name, day, run_id, prompt_tokens, completion_tokens, calls,"
    " ingested_at, version) SELECT experiment, endpoint_name, toDate(ingested_at), 'run-1',"
    " sum(prompt_tokens), sum(completion_tokens), count(), max(ingested_at) AS at, 1 FROM observations"
    " GROUP BY 1, 2, 3",
    "INSERT INTO served (experiment, settings_hash, role, endpoint_name, seen_at, served_hash, model, engine,"
    " version) SELECT experiment, 'aa', 'production', '', min(ingested_at), served_model, served_model,"
    " 'vllm', 1 FROM pairs GROUP BY experiment, served_model",
)


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
    for statement in _SMALL:
        store.command(f"{statement} SETTINGS max_threads = 1")
