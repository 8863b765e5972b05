"""Condition A: the last golden runs of a candidate (`compare.golden.condition`), while they are recent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from compare.golden.condition import condition_a as runs_in_a_row
from compare.golden.run import GoldenRun
from compare.golden.run_log import read_runs
from compare.rollback.condition import Condition, State
from compare.store.client import Store
from ingest.settings_golden import GoldenSettings
from ingest.settings_rollback import RollbackSettings

_READ = 100
_SHOWN_SETS = 10


def condition_a(
    runs: Sequence[GoldenRun], settings: RollbackSettings, golden: GoldenSettings, now: datetime
) -> Condition:
    """Return whether the last `golden_runs` runs of a set all scored under `golden.fail_mean_score`.

    `runs` are of one candidate, of any sets, in any order. A newest run that ended more than
    `golden_max_age_s` ago says nothing of now. With several sets the worst one counts. Without any run it is
    off, or unknown where the settings name a set that should have some.
    """
    sets: dict[str, list[GoldenRun]] = {}
    for run in runs:
        if run.status != "incomplete" and run.totals.mean_score is not None and run.finished_at <= now:
            sets.setdefault(run.set_name, []).append(run)
    expected = settings.golden_set or golden.set
    if not sets:
        which = f"set {expected}" if expected else "any set"
        state: State = "unknown" if expected else "off"
        return Condition(state, f"no golden run of {which} against this candidate has a score")
    least = golden.fail_mean_score
    judged = [_of_set(name, of_set, settings, least, now) for name, of_set in sorted(sets.items())]
    worst = min(judged, key=lambda one: ("firing", "unknown", "quiet").index(one.state))
    return Condition(worst.state, worst.summary, {"sets": [one.evidence for one in judged[:_SHOWN_SETS]]})


def _of_set(
    name: str, runs: Sequence[GoldenRun], settings: RollbackSettings, least: float, now: datetime
) -> Condition:
    found = runs_in_a_row(runs, least=least, in_a_row=settings.golden_runs)
    evidence: dict[str, Any] = {
        "set": name,
        "least_score": least,
        "runs_in_a_row": settings.golden_runs,
        "runs": [
            {
                "run_id": run.run_id,
                "finished_at": f"{run.finished_at:%Y-%m-%dT%H:%M:%SZ}",
                "mean_score": run.totals.mean_score,
                "status": run.status,
            }
            for run in found.runs
        ],
    }
    age = now - max(run.finished_at for run in runs)
    if age > timedelta(seconds=settings.golden_max_age_s):
        text = f"golden set {name}: the last run ended {_ago(age)} ago, over {settings.golden_max_age_s:g} s"
        return Condition("unknown", text, evidence)
    return Condition("firing" if found.is_met else "quiet", f"golden set {name}: {found.reason}", evidence)


def read_golden(store: Store, experiment: str, candidate: str, settings: RollbackSettings) -> list[GoldenRun]:
    """Return the last runs against a candidate, of the set of the settings or of all. Raises as the store."""
    return read_runs(store, settings.golden_set, experiment=experiment, endpoint_name=candidate, limit=_READ)


def _ago(age: timedelta) -> str:
    minutes = int(age.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min"
