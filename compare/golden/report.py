"""Golden runs for people and for programs: a short table, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from compare.golden.case import GoldenCase
from compare.golden.checks import kind_of
from compare.golden.run import Changes, GoldenRun
from compare.golden.score import CaseResult
from compare.golden.session import Outcome
from compare.golden.sets import SetSummary
from compare.row_values import json_text
from compare.visible import visible_block, visible_line

MAX_SHOWN = 30
"""Failed cases in the table; all of them are in the JSON and in `golden_results_v1`."""
_ID_WIDTH = 36
_REASON_WIDTH = 160
_SHORT_ID = 12


def told(outcome: Outcome) -> str:
    """One run in a few lines: what came of it, what failed and why, and what changed."""
    run = outcome.run
    lines = [headline(run), *(f"  {visible_line(reason)}" for reason in run.reasons)]
    served = served_words(run)
    if served:
        lines.append(f"  serves: {served}")
    failed = [one for one in outcome.results if not one.is_passed]
    if failed:
        lines += ["", *_table(failed[:MAX_SHOWN])]
        if len(failed) > MAX_SHOWN:
            lines.append(f"and {len(failed) - MAX_SHOWN} more (gnomon golden run --json shows all)")
    if outcome.changes is not None:
        lines += ["", *_changes(outcome.changes, run.baseline_run_id or "")]
    return "\n".join(lines)


def headline(run: GoldenRun) -> str:
    """The run in one line."""
    totals = run.totals
    parts = [
        f"{totals.passed_cases} of {totals.cases} cases passed",
        f"mean score {_number(totals.mean_score)}",
        f"exact {_percent(totals.exact_rate)}",
        f"extraction {_percent(totals.extraction_accuracy)}",
        f"faulty {_percent(totals.faulty_rate)}",
    ]
    where = f"{run.set_name} against {run.endpoint_name}"
    return f"{where}: {run.status.upper()}: {', '.join(parts)} (run {run.run_id[:_SHORT_ID]})"


def served_words(run: GoldenRun) -> str:
    """What served, as far as it was told."""
    served = run.served
    told_of = (served.model, served.engine, served.engine_version, served.quantization, served.model_file)
    return visible_line(", ".join(str(one) for one in told_of if one))


def runs_table(runs: Sequence[GoldenRun]) -> str:
    """Runs, one a line; `*` marks the baseline."""
    lines = [
        f"{'run':<14}{'started, UTC':<21}{'set':<18}{'endpoint':<14}{'by':<10}{'status':<12}{'passed':>9}"
        f"{'mean':>7}{'exact':>9}{'faulty':>9}"
    ]
    for run in runs:
        totals = run.totals
        passed = f"{totals.passed_cases}/{totals.cases}"
        name = run.run_id[:_SHORT_ID] + "*" * run.is_baseline
        lines.append(
            f"{name:<14}{run.started_at:%Y-%m-%d %H:%M:%S}  "
            f"{run.set_name:<18}{run.endpoint_name:<14}{run.started_by:<10}{run.status:<12}"
            f"{passed:>9}{_number(totals.mean_score):>7}{_percent(totals.exact_rate):>9}"
            f"{_percent(totals.faulty_rate):>9}"
        )
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome]) -> str:
    """Runs with their results and changes, as one JSON document."""
    return msgspec.json.format(msgspec.json.encode([_plain(one) for one in outcomes]), indent=2).decode()


def _plain(outcome: Outcome) -> dict[str, Any]:
    run: dict[str, Any] = msgspec.to_builtins(outcome.run)
    run |= {"is_passed": outcome.run.is_passed}
    results = []
    for one in outcome.results:
        row: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(one, answer=None))
        del row["answer"]
        results.append(row | {"answer_text": one.answer.text if one.answer else ""})
    return run | {"results": results, "changes": msgspec.to_builtins(outcome.changes)}


def _table(results: Iterable[CaseResult]) -> list[str]:
    lines = [f"{'case':<{_ID_WIDTH}}  {'score':>6}  why"]
    for one in results:
        reasons = one.reasons or ("unknown",)
        lines.append(
            f"{visible_line(one.case_id, _ID_WIDTH):<{_ID_WIDTH}}  {_number(one.score):>6}  "
            f"{visible_line(reasons[0], _REASON_WIDTH)}"
        )
        lines += [f"{'':<{_ID_WIDTH}}  {'':>6}  {visible_line(more, _REASON_WIDTH)}" for more in reasons[1:3]]
    return lines


def _changes(changes: Changes, baseline: str) -> list[str]:
    moved = [
        f"{one.case_id} {_number(one.before)} to {_number(one.now)}"
        for one in sorted(changes.moved, key=lambda one: -abs((one.before or 0.0) - (one.now or 0.0)))
    ]
    kinds = (
        ("newly failing", changes.newly_failing),
        ("newly passing", changes.newly_passing),
        ("score moved", moved),
        ("new cases", changes.added),
        ("edited cases", changes.edited),
        ("removed cases", changes.removed),
    )
    found = [f"  {what} ({len(which)}): {_some(which)}" for what, which in kinds if which]
    return [f"against the baseline {baseline[:_SHORT_ID]}:", *(found or ["  nothing changed"])]


def _some(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(visible_line(name, 60) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def sets_table(sets: Sequence[SetSummary]) -> str:
    """Sets, one a line."""
    lines = [f"{'set':<24}{'cases':>7}  {'changed, UTC':<21}{'last run':<14}{'status':<12}{'mean':>7}"]
    lines += [
        f"{one.name:<24}{one.cases:>7}  {one.changed_at:%Y-%m-%d %H:%M:%S}  "
        f"{(one.last_run_id or '-')[:_SHORT_ID]:<14}{one.last_status or '-':<12}"
        f"{_number(one.last_mean_score):>7}"
        for one in sets
    ]
    return "\n".join(lines)


def cases_table(cases: Sequence[GoldenCase]) -> str:
    """Cases, one a line."""
    lines = [f"{'case':<{_ID_WIDTH}}  {'expected by':<12}{'checks':<32}{'from':<20}note"]
    for case in cases:
        kinds = ", ".join(dict.fromkeys(kind_of(check) for check in case.checks)) or "score"
        lines.append(
            f"{visible_line(case.case_id, _ID_WIDTH):<{_ID_WIDTH}}  {case.expected_by or '-':<12}{kinds:<32}"
            f"{visible_line(case.source_experiment or case.source, 18):<20}{visible_line(case.note, 60)}"
        )
    return "\n".join(lines)


def case_text(case: GoldenCase) -> str:
    """One case in full."""
    expected = case.expected
    lines = [
        f"case {visible_line(case.case_id)}",
        f"source: {case.source} {visible_line(case.source_experiment)}".rstrip(),
        f"path: {visible_line(case.path)}",
    ]
    named = (("tenant", case.tenant), ("route", case.route), ("note", case.note))
    lines += [f"{name}: {visible_line(value)}" for name, value in named if value]
    lines += [f"check: {visible_line(json_text(msgspec.to_builtins(check)))}" for check in case.checks]
    lines += ["", "request:", visible_block(json.dumps(case.body, indent=2, ensure_ascii=False))]
    if expected is not None:
        lines += ["", f"expected ({case.expected_by}):", visible_block(expected.text)]
        lines += [
            f"{visible_line(call.name)}({visible_line(call.arguments)})" for call in expected.tool_calls
        ]
    return "\n".join(lines)
