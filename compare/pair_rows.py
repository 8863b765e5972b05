"""The rows of one compared pair, table by table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compare.outcomes import ComparedPair
from compare.packed_rows import PairRow
from compare.redact_rows import TABLES, RowRedactor
from compare.result import Scores, Side
from compare.row_values import float32, float64, maybe_text, text, texts, uint32
from compare.severity import severity
from compare.side_rows import (
    Row,
    answer_rows,
    findings_row,
    forced_columns,
    key_columns,
    observation_row,
    observations_of,
    positions_row,
    request_row,
    token_row,
)
from compare.slices import kind_of, language_of_request
from compare.store.native_columns import plain
from ingest.errors import FatalError

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


def pair_rows(compared: ComparedPair, redactor: RowRedactor | None = None) -> tuple[PairRow, ...]:
    """Every row that the pair makes, each through `redactor`, if there is one.

    No text and no number of a record can make this raise; a score that has no column does (FatalError), for
    that is a defect.
    """
    made = list(_rows_of_pair(compared))
    if redactor is None:
        done = as_they_are([(row.table, row.values) for row in made])
    else:
        listed = [(row.table, {name: plain(value) for name, value in row.values.items()}) for row in made]
        done = redactor.of_pair(compared, listed)
    rows = [PairRow(row.table, values, row.once) for row, values in zip(made, done, strict=True)]
    # Packed, an answer cannot be redacted: it is kept where nothing had to be.
    hidden = {row.values["role"] for row in rows if _is_hidden(row)}
    where = compared.pair.mirrored.position
    for role, answer in answer_rows(compared):
        if role not in hidden:
            rows.append(PairRow("reference_answers", answer, (answer["asked_hash"], where)))
    return tuple(rows)


def _rows_of_pair(compared: ComparedPair) -> Iterator[PairRow]:
    where = compared.pair.mirrored.position
    yield PairRow("requests", request_row(compared.pair.mirrored), (where,))
    for role, name, sent_body, observation in observations_of(compared):
        once = (where, role, name)
        row = observation_row(compared, role, name, sent_body, observation)
        yield PairRow("observations", row, once)
        if (tokens := token_row(compared, role, name, observation)) is not None:
            yield PairRow("tokens", tokens, once)
    side_rows = (
        ("positions", positions_row(compared)),
        ("findings", findings_row(compared)),
        ("noise_pairs", noise_row(compared, "reference", compared.comparison.noise)),
        ("noise_pairs", noise_row(compared, "candidate", compared.comparison.candidate_noise)),
        ("forced_pairs", forced_row(compared)),
    )
    yield from (PairRow(table, row) for table, row in side_rows if row is not None)
    yield PairRow("pairs", pair_row(compared))


def _is_hidden(row: PairRow) -> bool:
    return row.table in ("observations", "tokens") and bool(row.values["is_redacted"])


def as_they_are(rows: Sequence[tuple[str, Row]]) -> list[Row]:
    """Rows that nothing is taken out of, each with `is_redacted` where its table has that."""
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
