"""Golden runs in the store: written once they are over, read for baselines, tables and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from compare.golden.run import GoldenRun, Known, Totals
from compare.golden.score import CaseResult
from compare.row_values import float32, json_text, maybe_text, microseconds, text, uint32
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.redact import Redactor, Taken
from ingest.served import Served

_SERVED = tuple(field.name for field in msgspec.structs.fields(Served))
_TOTALS = tuple(field.name for field in msgspec.structs.fields(Totals))
_PLAIN = (
    "set_name",
    "run_id",
    "set_hash",
    "experiment",
    "settings_hash",
    "role",
    "endpoint_name",
    "started_by",
    "started_at",
    "finished_at",
    "status",
    "reasons",
    "least_mean_score",
    "served_hash",
    "baseline_run_id",
    "newly_failing",
    "newly_passing",
)
_COLUMNS = (*_PLAIN, "is_baseline", *_TOTALS, *_SERVED)
_LEAST_PREFIX = 4


def write_run(store: Store, run: GoldenRun, results: Sequence[CaseResult], redactor: Redactor | None) -> None:
    """Store a run: its results first, so that a run that can be read is whole. Raises as the store."""
    now = datetime.now(UTC)
    rows = [_result_row(run, one, now, redactor) for one in results]
    token = f"golden {run.run_id}"
    if rows:
        values = [tuple(row.values()) for row in rows]
        store.insert("golden_results", tuple(rows[0]), values, dedup_token=f"{token} results")
    row = {name: getattr(run, name) for name in _PLAIN}
    row |= {"reasons": [text(reason) for reason in run.reasons], "is_passed": run.is_passed}
    row |= msgspec.structs.asdict(run.totals)
    row |= {
        name: text(value) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(run.served).items()
    }
    row |= {"context_tokens": uint32(run.served.context_tokens), "version": microseconds(now)}
    store.insert("golden_runs", tuple(row), [tuple(row.values())], dedup_token=token)


def read_runs(
    store: Store,
    set_name: str | None = None,
    *,
    experiment: str | None = None,
    endpoint_name: str | None = None,
    limit: int = 100,
) -> list[GoldenRun]:
    """Return the last runs, the newest first. Raises what the store raises."""
    wanted = {"set_name": set_name, "experiment": experiment, "endpoint_name": endpoint_name}
    given = {name: value for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"{name} = {{{name}:String}}" for name in given) or "1"
    return _read(store, f"{where} ORDER BY started_at DESC, run_id DESC LIMIT {limit:d}", given)


def find_run(store: Store, run_id: str) -> GoldenRun:
    """Return the run with this id, or whose id begins with it.

    Raises FatalError where there is none or several, and what the store raises.
    """
    found = []
    if len(run_id) >= _LEAST_PREFIX:
        found = _read(store, "startsWith(run_id, {run_id:String}) LIMIT 2", {"run_id": run_id})
    if len(found) != 1:
        raise FatalError(f"{'several golden runs have' if found else 'no golden run has'} the id {run_id}")
    return found[0]


def baseline_of(store: Store, set_name: str) -> str | None:
    """Return the id of a set's baseline, None without one. Raises what the store raises."""
    rows = store.query(
        "SELECT argMax(run_id, promoted_at) FROM golden_baselines WHERE set_name = {set_name:String}"
        " HAVING count() > 0",
        {"set_name": set_name},
    ).rows
    return str(rows[0][0]) if rows else None


def read_known(store: Store, run_id: str, set_name: str) -> dict[str, Known]:
    """Return what is kept of a run's answered cases, by id. Raises what the store raises."""
    rows = store.query(
        "SELECT case_id, case_hash, is_passed, score FROM golden_results_v1"
        " WHERE set_name = {set_name:String} AND run_id = {run_id:String} AND status != 'away'",
        {"set_name": set_name, "run_id": run_id},
    ).rows
    return {str(case_id): Known(str(digest), bool(passed), score) for case_id, digest, passed, score in rows}


def _read(store: Store, tail: str, parameters: Mapping[str, Any]) -> list[GoldenRun]:
    rows = store.query(f"SELECT {', '.join(_COLUMNS)} FROM golden_runs_v1 WHERE {tail}", parameters).rows
    return [_run(dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def _run(row: dict[str, Any]) -> GoldenRun:
    totals = Totals(**{name: row.pop(name) for name in _TOTALS})
    served = Served(**{name: row.pop(name) for name in _SERVED})
    return GoldenRun(
        **row
        | {
            "totals": totals,
            "served": served,
            "reasons": tuple(row["reasons"]),
            "is_baseline": bool(row["is_baseline"]),
        }
    )


def _result_row(run: GoldenRun, one: CaseResult, now: datetime, redactor: Redactor | None) -> dict[str, Any]:
    answer, reasons = one.answer, list(one.reasons)
    said: dict[str, Any] = {
        "text": answer.text if answer else "",
        "tool_calls": [msgspec.to_builtins(call) for call in answer.tool_calls] if answer else [],
    }
    is_redacted = False
    if redactor is not None:
        taken = Taken()
        made = redactor.texts(redactor.named(said, "answer", taken) or {}, taken)
        kept = [redactor.message(reason, taken) for reason in reasons]
        is_redacted = (made, kept) != (said, reasons)
        said, reasons = {"text": made.get("text") or "", "tool_calls": made.get("tool_calls") or []}, kept
    timings = answer.timings if answer else None
    return {
        "set_name": run.set_name,
        "run_id": run.run_id,
        "case_id": text(one.case_id),
        "case_hash": one.case_hash,
        "experiment": run.experiment,
        "endpoint_name": run.endpoint_name,
        "status": one.status,
        "is_passed": one.is_passed,
        "score": one.score,
        "cosine_similarity": one.cosine_similarity,
        "edit_similarity": one.edit_similarity,
        "field_agreement": one.field_agreement,
        "is_exact": one.is_exact,
        "is_faulty": one.is_faulty,
        "fault_families": list(one.fault_families),
        "fields_expected": one.fields_expected,
        "fields_right": one.fields_right,
        "failed_checks": list(one.failed_checks),
        "reasons": [text(reason) for reason in reasons],
        "verdict": one.verdict,
        "answer_text": text(said["text"]),
        "answer_tool_calls": json_text(said["tool_calls"]),
        "finish_reason": maybe_text(answer.finish_reason) if answer else None,
        "prompt_tokens": uint32(answer.prompt_tokens) if answer else None,
        "completion_tokens": uint32(answer.completion_tokens) if answer else None,
        "total_ms": float32(timings.total_ms) if timings else None,
        "first_token_ms": float32(timings.first_token_ms) if timings else None,
        "failure_kind": str(answer.failure.kind) if answer and answer.failure else None,
        "is_redacted": is_redacted,
        "ingested_at": now,
        "version": microseconds(now),
    }
