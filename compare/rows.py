"""A frozen batch as rows of the store, table by table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from compare.outcomes import Batch, ComparedPair, DeliveredRange, OtherOutcome
from compare.redact_rows import TABLES, RowRedactor
from compare.result import Scores, Side
from compare.row_values import float32, float64, maybe_text, microseconds, text, texts, uint32
from compare.severity import severity
from compare.side_rows import (
    Row,
    answer_rows,
    findings_row,
    forced_columns,
    key_columns,
    observation_row,
    observations_of,
    position_columns,
    positions_row,
    request_row,
    token_row,
)
from compare.slices import kind_of, language_of_request
from ingest.errors import FatalError
from ingest.shape_guess import guess_shape

# Every score has a column of its name in `pairs` and `noise_pairs`; ratios may leave Float32's range.
SCORE_COLUMNS = (
    "kl_prefix_mean_nats",
    "kl_prefix_max_nats",
    "js_prefix_lower_mean_nats",
    "js_prefix_upper_mean_nats",
    "prefix_tokens",
    "divergence_gap_nats",
    "entropy_reference_lower_nats",
    "entropy_reference_upper_nats",
    "entropy_candidate_lower_nats",
    "entropy_candidate_upper_nats",
    "entropy_shift_prefix_nats",
    "top1_agreement_prefix_ratio",
    "probability_change_prefix_mean",
    "probability_change_prefix_rms",
    "probability_change_prefix_p5",
    "probability_change_prefix_p50",
    "probability_change_prefix_p95",
    "kl_forced_mean_nats",
    "kl_forced_p99_nats",
    "kl_forced_max_nats",
    "js_forced_lower_mean_nats",
    "js_forced_upper_mean_nats",
    "top1_agreement_forced_ratio",
    "probability_change_forced_mean",
    "probability_change_forced_rms",
    "probability_change_forced_p1",
    "probability_change_forced_p99",
    "perplexity_forced_ratio",
    "exact_match",
    "edit_similarity",
    "cosine_similarity",
    "cosine_min_similarity",
    "numbers_differ",
    "keys_differ",
    "refusal_flip",
    "length_ratio",
    "field_agreement",
    "reference_is_valid_json",
    "candidate_is_valid_json",
    "reference_is_schema_valid",
    "candidate_is_schema_valid",
    "tool_name_agreement",
    "tool_arguments_agreement",
    "reference_values_in_prompt",
    "candidate_values_in_prompt",
    "reference_total_ms",
    "candidate_total_ms",
    "reference_first_token_ms",
    "candidate_first_token_ms",
    "reference_tokens_per_s",
    "candidate_tokens_per_s",
    "latency_ratio",
)
MAX_PATHS = 50
MAX_PATH_CHARACTERS = 200
_FORCED_SCORES = tuple(name for name in SCORE_COLUMNS if "_forced_" in name)
_FLOAT64_SCORES = frozenset({"perplexity_forced_ratio", "length_ratio", "latency_ratio"})


class TableRows(NamedTuple):
    """Rows of one table, in the order of `columns`."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def rows_of(
    batch: Batch, stored_at: datetime | None = None, redactor: RowRedactor | None = None
) -> dict[str, TableRows]:
    """Every row that the batch makes, by table; tables without rows are left out.

    Each row goes through `redactor`, if there is one. `stored_at` (now, if not given) dates the
    delivered ranges. No text and no number of a record can make this raise; a score that has no column
    does (FatalError), for that is a defect.
    """
    now = stored_at or datetime.now(UTC)
    tables: dict[str, list[Row]] = {}
    seen: set[tuple[Any, ...]] = set()

    def put(table: str, row: Row, *, once: tuple[Any, ...] = ()) -> None:
        # What several candidates share is written once.
        if not once or (table, *once) not in seen:
            seen.add((table, *once))
            tables.setdefault(table, []).append(row)

    for compared in batch.pairs:
        made = list(_pair_rows(compared))
        rows = [(table, row) for table, row, _ in made]
        done = redactor.of_pair(compared, rows) if redactor else _as_they_are(rows)
        for (table, _, once), row in zip(made, done, strict=True):
            put(table, row, once=once)
        # Packed, an answer cannot be redacted: it is kept where nothing had to be.
        hidden = {
            row["role"] for (table, _, _), row in zip(made, done, strict=True) if _is_hidden(table, row)
        }
        for role, row in answer_rows(compared):
            if role not in hidden:
                put("reference_answers", row, once=(row["asked_hash"], compared.pair.mirrored.position))
    for outcome in batch.others:
        rows = [("outcomes", outcome_row(batch.experiment, outcome))]
        if outcome.kind == "dead_letter":
            rows.append(("dead_letters", dead_letter_row(batch.experiment, outcome)))
        done = redactor.of_outcome(outcome, rows) if redactor else _as_they_are(rows)
        for (table, _), row in zip(rows, done, strict=True):
            put(table, row)
    for delivered in batch.ranges:
        put("delivered_ranges", range_row(batch.experiment, delivered, now))
    return {name: _as_table(rows) for name, rows in tables.items()}


def _pair_rows(compared: ComparedPair) -> Iterator[tuple[str, Row, tuple[Any, ...]]]:
    """Table, row, and what names the row where several candidates share it."""
    where = compared.pair.mirrored.position
    yield "requests", request_row(compared.pair.mirrored), (where,)
    for role, name, sent_body, observation in observations_of(compared):
        once = (where, role, name)
        yield "observations", observation_row(compared, role, name, sent_body, observation), once
        if (tokens := token_row(compared, role, name, observation)) is not None:
            yield "tokens", tokens, once
    side_rows = (
        ("positions", positions_row(compared)),
        ("findings", findings_row(compared)),
        ("noise_pairs", noise_row(compared, "reference", compared.comparison.noise)),
        ("noise_pairs", noise_row(compared, "candidate", compared.comparison.candidate_noise)),
        ("forced_pairs", forced_row(compared)),
    )
    yield from ((table, row, ()) for table, row in side_rows if row is not None)
    yield "pairs", pair_row(compared), ()


def _is_hidden(table: str, row: Row) -> bool:
    return table in ("observations", "tokens") and bool(row["is_redacted"])


def _as_they_are(rows: Sequence[tuple[str, Row]]) -> list[Row]:
    return [row | {"is_redacted": False} if table in TABLES else row for table, row in rows]


def pair_row(compared: ComparedPair) -> Row:
    """One row of `pairs`."""
    pair, comparison, mirrored = compared.pair, compared.comparison, compared.pair.mirrored
    verdict, divergence = comparison.verdict, comparison.divergence
    faults = {side: _fault_families(compared, side) for side in ("reference", "candidate")}
    # A side that answered with an error is as faulty as one that answered badly.
    is_reference_faulty = bool(faults["reference"]) or pair.reference.failure is not None
    is_candidate_faulty = bool(faults["candidate"]) or pair.candidate.failure is not None
    return {
        **key_columns(compared),
        "reference": pair.reference_name,
        **_request_columns(compared),
        "language": language_of_request(mirrored.body),
        "kind": kind_of(mirrored.body),
        "is_clock_suspect": mirrored.is_clock_suspect,
        "served_quantization": text(mirrored.served_by.quantization or ""),
        "changes": texts(pair.plan.changes),
        "is_prompt_different": pair.prompt_differs,
        "verdict": verdict.kind.value,
        "is_regression": verdict.is_regression,
        "reasons": texts(verdict.reasons),
        "probable_cause": text(verdict.probable_cause),
        "severity": float32(severity(comparison.scores, verdict)),
        "candidate_only_families": [family.value for family in verdict.candidate_only],
        "reference_only_families": [family.value for family in verdict.reference_only],
        "candidate_fault_families": faults["candidate"],
        "reference_fault_families": faults["reference"],
        "is_candidate_only_fault": is_candidate_faulty and not is_reference_faulty,
        "is_reference_only_fault": is_reference_faulty and not is_candidate_faulty,
        "divergence_position": uint32(divergence.position) if divergence else None,
        "divergence_reference_token": text(divergence.reference_token) if divergence else None,
        "divergence_candidate_token": text(divergence.candidate_token) if divergence else None,
        "divergence_reference_gap_nats": float32(divergence.reference_gap_nats) if divergence else None,
        "divergence_candidate_gap_nats": float32(divergence.candidate_gap_nats) if divergence else None,
        "is_near_tie": divergence.is_near_tie if divergence else None,
        **_score_columns(comparison.scores),
        "is_structure_enforced": comparison.is_structure_enforced,
        "differing_paths": _some_paths(comparison.differing_paths),
        "tags": texts(comparison.tags),
        "reference_tokens": uint32(pair.reference.completion_tokens),
        "candidate_tokens": uint32(pair.candidate.completion_tokens),
        "prompt_tokens": uint32(pair.reference.prompt_tokens),
        "reference_finish_reason": maybe_text(pair.reference.finish_reason),
        "candidate_finish_reason": maybe_text(pair.candidate.finish_reason),
        "reference_failure_kind": pair.reference.failure.kind.value if pair.reference.failure else None,
        "candidate_failure_kind": pair.candidate.failure.kind.value if pair.candidate.failure else None,
    }


def noise_row(compared: ComparedPair, side: Side, scores: Scores | None) -> Row | None:
    """One row of `noise_pairs`, or None where that side was asked once."""
    if scores is None:
        return None
    return {**key_columns(compared), "side": side, **_request_columns(compared), **_score_columns(scores)}


def forced_row(compared: ComparedPair) -> Row | None:
    """One row of `forced_pairs`, or None where the plan did not ask for it."""
    tokens = forced_columns(compared)
    if tokens is None:
        return None
    scores = _score_columns(compared.comparison.scores)
    shared = _request_columns(compared)
    return {
        **key_columns(compared),
        **{name: shared[name] for name in ("request_id", "mirrored_at", "route", "served_model", "mode")},
        **{name: scores[name] for name in _FORCED_SCORES},
        **tokens,
    }


def outcome_row(experiment: str, outcome: OtherOutcome) -> Row:
    """One row of `outcomes`."""
    return {
        "experiment": experiment,
        **position_columns(outcome.position),
        "kind": outcome.kind,
        "reason": text(outcome.reason),
        "detail": text(outcome.detail),
        "request_id": text(outcome.request_id),
        "mirrored_at": outcome.mirrored_at,
        "ingested_at": outcome.ingested_at,
        "version": microseconds(outcome.ingested_at),
    }


def dead_letter_row(experiment: str, outcome: OtherOutcome) -> Row:
    """One row of `dead_letters`, with the record's bytes exactly as they came."""
    row, raw = outcome_row(experiment, outcome), outcome.raw
    del row["kind"]
    return {
        **row,
        "source": "record",
        "kafka_timestamp_ms": raw.timestamp_ms if raw else None,
        "key": raw.key if raw else None,
        "value": raw.value if raw else None,
        "headers": [(text(name), value) for name, value in raw.headers] if raw else [],
        "schema_guess": guess_shape(raw.value) if raw else "",
        "replayed_at": None,
    }


def range_row(experiment: str, delivered: DeliveredRange, now: datetime) -> Row:
    """One row of `delivered_ranges`."""
    return {
        "experiment": experiment,
        "consumer_group": text(delivered.group),
        "topic": text(delivered.topic),
        "topic_id": text(delivered.topic_id),
        "partition": delivered.partition,
        "first_offset": delivered.first_offset,
        "end_offset": delivered.end_offset,
        "records": delivered.records,
        "lost_retention": delivered.lost,
        "ingested_at": now,
        "version": delivered.version or microseconds(now),
    }


def _request_columns(compared: ComparedPair) -> Row:
    mirrored = compared.pair.mirrored
    return {
        "request_id": text(mirrored.request_id),
        "request_hash": mirrored.request_hash,
        "mirrored_at": mirrored.mirrored_at,
        "tenant": text(mirrored.tenant),
        "route": text(mirrored.route),
        "endpoint": text(mirrored.endpoint),
        "served_model": text(mirrored.served_model),
        "mode": compared.pair.plan.mode.value,
    }


def _score_columns(scores: Scores) -> Row:
    unknown = sorted(set(scores.values) - set(SCORE_COLUMNS))
    if unknown:
        raise FatalError(
            f"score {unknown[0]} has no column in table pairs: add a migration and SCORE_COLUMNS"
        )
    unscored = {text(name): text(reason) for name, reason in scores.unscored.items()}
    columns: Row = {}
    for name in SCORE_COLUMNS:
        value = scores.values.get(name)
        columns[name] = float64(value) if name in _FLOAT64_SCORES else float32(value)
        if value is not None and columns[name] is None:
            unscored[name] = "out_of_range"
    return {**columns, "unscored": unscored}


def _some_paths(paths: tuple[str, ...]) -> list[str]:
    """Return the first paths, each cut, and how many more there are: keys of JSON may be of any length."""
    kept = [text(path[:MAX_PATH_CHARACTERS]) for path in paths[:MAX_PATHS]]
    return [*kept, f"and {len(paths) - MAX_PATHS} more"] if len(paths) > MAX_PATHS else kept


def _fault_families(compared: ComparedPair, side: str) -> list[str]:
    findings = compared.comparison.findings
    return sorted({finding.family.value for finding in findings if finding.side == side and finding.is_fault})


def _as_table(rows: list[Row]) -> TableRows:
    columns = tuple(rows[0])
    return TableRows(columns, [tuple(row[name] for name in columns) for row in rows])
