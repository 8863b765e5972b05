"""The alert of a golden set: what scheduled runs say becomes an alert like any other (compare/alerts).

The decision rests on what is stored alone, so it can be made again after a kill: the same runs give the same
id and version, and a version that is written again replaces itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from compare.alerts.alert import Alert, Severity
from compare.alerts.alert_log import COLUMNS, write_alerts
from compare.alerts.binomial import lower_bound, upper_bound
from compare.golden.condition import condition_a
from compare.golden.run import GoldenRun
from compare.golden.run_log import read_runs
from compare.store.client import Store
from ingest.settings_golden import GoldenSettings

METRIC = "golden_mean_score"
DIMENSION = "golden_set"
_RUNS = 100
_NAMED = 5


def raise_alerts(
    store: Store, settings: GoldenSettings, experiment: str, set_name: str, endpoint: str, *, in_a_row: int
) -> list[Alert]:
    """Store the next version of the set's alert, if one is due; return it. Raises what the store raises.

    `in_a_row` is `rollback.golden_runs`: condition A is the same here and there.
    """
    runs = read_runs(store, set_name, experiment=experiment, endpoint_name=endpoint, limit=_RUNS)
    scheduled = [run for run in runs if run.started_by == "schedule"]
    last = _last_alert(store, experiment, set_name, endpoint)
    alert = next_alert(scheduled, last, settings, in_a_row=in_a_row)
    if alert is None:
        return []
    if alert.state == "firing":
        failing = _failing(store, scheduled[0])
        alert = msgspec.structs.replace(alert, summary=alert.summary + failing)
    write_alerts(store, [alert])
    return [alert]


def next_alert(
    runs: Sequence[GoldenRun], last: Alert | None, settings: GoldenSettings, *, in_a_row: int
) -> Alert | None:
    """The next version of the alert of a set and endpoint, None where nothing is to be said.

    `runs` are the scheduled runs, newest first; incomplete ones say nothing. It fires when the newest mean
    score is under `warn_mean_score`, becomes critical when condition A holds (`in_a_row` runs), and is
    resolved when the mean is back. Pure.
    """
    scored = [run for run in runs if run.status != "incomplete" and run.totals.mean_score is not None]
    if not scored:
        return None
    newest, mean = scored[0], scored[0].totals.mean_score
    assert mean is not None
    open_alert = last if last is not None and last.state == "firing" else None
    if last is not None and newest.finished_at <= (last.resolved_at or last.fired_at):
        # It was raised, or resolved, on this run or a later one.
        return None
    is_low = mean < settings.warn_mean_score
    found = condition_a(list(scored), least=settings.fail_mean_score, in_a_row=in_a_row)
    met_by = len(found.runs) if found.is_met else 0
    if open_alert is None:
        return _fired(scored, settings, met_by) if is_low else None
    if not is_low:
        return msgspec.structs.replace(
            open_alert,
            version=open_alert.version + 1,
            state="resolved",
            resolved_at=newest.finished_at,
            statistic=mean,
            summary=f"resolved {newest.finished_at:%Y-%m-%d %H:%M:%S} UTC, mean score {mean:.3f}: "
            f"{open_alert.summary}",
        )
    if met_by and open_alert.severity == "warning":
        fired = _fired(scored, settings, met_by)
        return msgspec.structs.replace(
            fired,
            alert_id=open_alert.alert_id,
            group_key=open_alert.group_key,
            version=open_alert.version + 1,
            started_at=open_alert.started_at,
        )
    return None


def _fired(scored: Sequence[GoldenRun], settings: GoldenSettings, met_by: int) -> Alert:
    """The alert of the newest run; `met_by` runs make condition A, 0 where it does not hold."""
    severity: Severity = "critical" if met_by else "warning"
    run, totals = scored[0], scored[0].totals
    low = []
    for one in scored:
        if one.totals.mean_score is None or one.totals.mean_score >= settings.warn_mean_score:
            break
        low.append(one)
    parts = [run.experiment, run.endpoint_name, run.set_name, low[-1].run_id]
    alert_id = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]
    failed = totals.answered_cases - totals.passed_cases
    faulty = round((totals.faulty_rate or 0.0) * totals.answered_cases)
    mean = totals.mean_score or 0.0
    why = f", {len(low)} runs in a row" if len(low) > 1 else ""
    summary = (
        f"{run.experiment}: candidate {run.endpoint_name}: golden set {run.set_name}: mean score {mean:.3f} "
        f"is under {settings.warn_mean_score}{why}; {failed} of {totals.answered_cases} cases failed "
        f"(run {run.run_id[:12]})"
    )
    if met_by:
        runs = f"{met_by} runs in a row" if met_by > 1 else "a run"
        summary += f"; condition A: {runs} under {settings.fail_mean_score}"
    return Alert(
        alert_id=alert_id,
        version=1,
        state="firing",
        severity=severity,
        group_key=alert_id,
        category="golden",
        kind="golden",
        experiment=run.experiment,
        candidate=run.endpoint_name,
        metric=METRIC,
        dimension=DIMENSION,
        slice=run.set_name,
        started_at=low[-1].started_at,
        fired_at=run.finished_at,
        pairs_folded=totals.answered_cases,
        pairs_since_start=totals.answered_cases,
        candidate_faults=faulty,
        reference_faults=0,
        statistic=mean,
        threshold=settings.warn_mean_score,
        tolerated=settings.fail_mean_score,
        observed_rate=totals.faulty_rate or 0.0,
        observed_low=lower_bound(faulty, totals.answered_cases, 0.025),
        observed_high=upper_bound(faulty, totals.answered_cases, 0.025),
        test_name="",
        test_p_value=1.0,
        summary=summary,
    )


def _last_alert(store: Store, experiment: str, set_name: str, endpoint: str) -> Alert | None:
    rows = store.query(
        f"SELECT {', '.join(COLUMNS)} FROM alerts_v1 WHERE experiment = {{experiment:String}}"
        " AND candidate = {candidate:String} AND metric = {metric:String} AND slice = {slice:String}"
        " ORDER BY fired_at DESC, version DESC LIMIT 1",
        {"experiment": experiment, "candidate": endpoint, "metric": METRIC, "slice": set_name},
    ).rows
    return msgspec.convert(dict(zip(COLUMNS, rows[0], strict=True)), Alert) if rows else None


def _failing(store: Store, run: GoldenRun) -> str:
    """Names of the first cases that failed, for the summary."""
    rows = store.query(
        "SELECT case_id FROM golden_results_v1 WHERE set_name = {set_name:String}"
        " AND run_id = {run_id:String} AND status = 'failed' ORDER BY score, case_id LIMIT {most:UInt32}",
        {"set_name": run.set_name, "run_id": run.run_id, "most": _NAMED},
    ).rows
    return f": {', '.join(str(name)[:60] for (name,) in rows)}" if rows else ""
