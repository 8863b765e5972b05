"""What the golden and rollback page asks: runs of golden sets, one run's cases, and how a rollback stands."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pandas as pd

from compare.golden.run import Known, changes_since
from compare.golden.score import CaseResult
from compare.rollback.decisions import Decision, Evaluation, read_decisions
from dashboards.asked import Asked, frame, records
from dashboards.questions.summary import Series

MOST_RUNS = 500
MOST_CASES = 5_000
MOST_CHANGES = 200

CHANGES = ("newly_failing", "newly_passing", "moved", "added", "edited", "removed", "same")
"""What became of a case since the baseline, in the order in which they are shown."""

_RUN_COLUMNS = (
    "set_name, run_id, experiment, role, endpoint_name, started_by, started_at, finished_at, status,"
    " is_baseline, reasons, cases, answered_cases, passed_cases, exact_rate, mean_score, extraction_accuracy,"
    " faulty_rate, least_mean_score, baseline_run_id, newly_failing, newly_passing, model, engine,"
    " engine_version, quantization, model_file"
)
_OF_SERIES = "experiment = {experiment:String} AND (endpoint_name = {candidate:String} OR role = 'reference')"
_CASE_COLUMNS = (
    "case_id, case_hash, status, is_passed, score, cosine_similarity, edit_similarity, field_agreement,"
    " is_exact, is_faulty, fault_families, fields_expected, fields_right, failed_checks, verdict, total_ms"
)


def sets(asked: Asked, series: Series) -> list[str]:
    """The sets that were run against this candidate or its reference, the one of the newest run first."""
    rows = asked.query(
        f"SELECT set_name FROM golden_runs_v1 WHERE {_OF_SERIES}"
        " GROUP BY set_name ORDER BY max(started_at) DESC, set_name",
        series.parameters(),
    ).rows
    return [str(row[0]) for row in rows]


def kept_cases(asked: Asked) -> list[tuple[str, int]]:
    """Each golden set of the store with its number of cases. Raises TextHidden for a role without texts."""
    rows = asked.query(
        "SELECT set_name, count() FROM golden_cases_v1 GROUP BY set_name ORDER BY set_name"
    ).rows
    return [(str(name), int(count)) for name, count in rows]


def runs(
    asked: Asked, series: Series, set_name: str, start: datetime | None, end: datetime | None
) -> pd.DataFrame:
    """The newest runs of the set that began in the range, and its baseline at any time; oldest first."""
    within, bounds = "", dict[str, Any]()
    if start is not None:
        within += " AND started_at >= {start:DateTime64(3, 'UTC')}"
        bounds["start"] = f"{start.timestamp():.3f}"
    if end is not None:
        within += " AND started_at < {end:DateTime64(3, 'UTC')}"
        bounds["end"] = f"{end.timestamp():.3f}"
    found = frame(
        asked,
        f"SELECT {_RUN_COLUMNS} FROM golden_runs_v1 WHERE set_name = {{set:String}}"
        f" AND (is_baseline OR ({_OF_SERIES}{within})) ORDER BY started_at DESC LIMIT {{most:UInt32}}",
        {**series.parameters(), **bounds, "set": set_name, "most": MOST_RUNS},
    )
    return found.sort_values("started_at", ignore_index=True)


def cases(asked: Asked, run: pd.Series, baseline_id: str) -> pd.DataFrame:
    """The cases of one run, those that changed since the baseline first: `change`, one of CHANGES, and
    `score_before`. Without a baseline (an empty id) every change is `same`.

    Raises TextHidden for a role without texts: the view holds the answers.
    """
    now = _results(asked, run["set_name"], run["run_id"])
    if not baseline_id or baseline_id == run["run_id"]:
        return now.assign(change="same", score_before=None).sort_values(
            ["is_passed", "case_id"], ignore_index=True
        )
    before = _results(asked, run["set_name"], baseline_id)
    before = before[before["status"] != "away"]
    known = {
        str(row["case_id"]): Known(str(row["case_hash"]), bool(row["is_passed"]), _number(row["score"]))
        for row in records(before)
    }
    results = [
        CaseResult(
            case_id=str(row["case_id"]),
            case_hash=str(row["case_hash"]),
            status=row["status"],
            score=_number(row["score"]),
        )
        for row in records(now)
    ]
    found = changes_since(known, results)
    change = {one.case_id: "moved" for one in found.moved}
    for name in ("newly_failing", "newly_passing", "added", "edited", "removed"):
        change |= dict.fromkeys(getattr(found, name), name)
    gone = before[before["case_id"].isin(found.removed)]
    both = pd.concat([one for one in (now, gone) if not one.empty] or [now], ignore_index=True)
    both["change"] = [change.get(str(name), "same") for name in both["case_id"]]
    both["score_before"] = [
        known[name].score if name in known else None for name in both["case_id"].astype(str)
    ]
    both["place"] = both["change"].map(CHANGES.index)
    return both.sort_values(["place", "is_passed", "case_id"], ignore_index=True)


def case(asked: Asked, set_name: str, case_id: str) -> dict[str, Any] | None:
    """The case as it is now: its request, the expected answer, where it came from; None if it was removed."""
    rows = asked.query(
        "SELECT body, expected_text, expected_tool_calls, expected_finish_reason, expected_by, checks, note,"
        " request_id, route, source, source_experiment, source_topic_id, source_partition, source_offset,"
        " is_redacted FROM golden_cases_v1"
        " WHERE set_name = {set:String} AND case_id = {case:String} LIMIT 1",
        {"set": set_name, "case": case_id},
    ).dicts()
    return rows[0] if rows else None


def answer(asked: Asked, set_name: str, run_id: str, case_id: str) -> dict[str, Any] | None:
    """The answer to one case in one run: answer_text, answer_tool_calls, reasons, finish_reason and more."""
    rows = asked.query(
        "SELECT answer_text, answer_tool_calls, finish_reason, reasons, failed_checks, fault_families, score,"
        " failure_kind FROM golden_results_v1 WHERE set_name = {set:String} AND run_id = {run:String}"
        " AND case_id = {case:String} LIMIT 1",
        {"set": set_name, "run": run_id, "case": case_id},
    ).dicts()
    return rows[0] if rows else None


def evaluation(asked: Asked, series: Series) -> Evaluation | None:
    """The last look at the candidate's rollback conditions, None before the first."""
    columns = ", ".join(name for name in Evaluation.__struct_fields__ if name != "version")
    rows = asked.query(
        f"SELECT {columns} FROM rollback_state_v1 WHERE experiment = {{experiment:String}}"
        " AND candidate = {candidate:String} LIMIT 1",
        series.parameters(),
    ).dicts()
    return msgspec.convert(rows[0], Evaluation) if rows else None


def decisions(asked: Asked, series: Series) -> list[Decision]:
    """Calls, their ends, and changes of a condition, newest first."""
    return read_decisions(asked, series.experiment, series.candidate, limit=MOST_CHANGES)


def since(known: list[Decision], letter: str, state: str) -> datetime | None:
    """Since when condition `A`, `B` or `C` is in this state; None if no change to it is kept.

    `known`: of `decisions`, newest first.
    """
    began = None
    for one in known:
        if getattr(one, f"condition_{letter.lower()}") != state:
            break
        began = one.decided_at
    return began


def _results(asked: Asked, set_name: str, run_id: str) -> pd.DataFrame:
    return frame(
        asked,
        f"SELECT {_CASE_COLUMNS} FROM golden_results_v1 WHERE set_name = {{set:String}}"
        " AND run_id = {run:String} ORDER BY case_id LIMIT {most:UInt32}",
        {"set": set_name, "run": run_id, "most": MOST_CASES},
    )


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
