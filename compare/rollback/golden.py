"""Condition A: the last golden runs of a candidate, all under the least score."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from compare.rollback.condition import Condition
from compare.store.client import Store
from ingest.settings_rollback import RollbackSettings

_DAYS = 30
_SHOWN_SETS = 10


class GoldenScore(msgspec.Struct, frozen=True):
    """One finished run. `served_hash` is of what served then."""

    set_name: str
    run_id: str
    finished_at: datetime
    mean_score: float
    status: str
    served_hash: str


def condition_a(runs: Sequence[GoldenScore], settings: RollbackSettings, now: datetime) -> Condition:
    """Return whether the last `golden_runs` runs of a set are all under `golden_least_score`.

    `runs` may come in any order. Only runs of what served at the newest one are in a row with it: a build
    that was replaced says nothing of its successor. A newest run older than `golden_max_age_s` says nothing
    of now. With several sets the worst one counts.
    """
    sets: dict[str, list[GoldenScore]] = {}
    for run in sorted(runs, key=lambda run: (run.finished_at, run.run_id), reverse=True):
        sets.setdefault(run.set_name, []).append(run)
    if not sets:
        which = f"set {settings.golden_set}" if settings.golden_set else "any set"
        return Condition("unknown", f"no golden run of {which} against this candidate in {_DAYS} days")
    judged = [_of_set(name, newest, settings, now) for name, newest in sorted(sets.items())]
    worst = min(judged, key=lambda one: ("firing", "unknown", "quiet", "off").index(one.state))
    evidence = {"sets": [one.evidence for one in judged[:_SHOWN_SETS]]}
    return Condition(worst.state, worst.summary, evidence)


def _of_set(name: str, newest: list[GoldenScore], settings: RollbackSettings, now: datetime) -> Condition:
    """Judge one set; its runs come newest first."""
    needed, least = settings.golden_runs, settings.golden_least_score
    alike = [run for run in newest if run.served_hash == newest[0].served_hash][:needed]
    scores = ", ".join(f"{run.mean_score:.3f}" for run in alike)
    evidence: dict[str, Any] = {
        "set": name,
        "least_score": least,
        "runs_in_a_row": needed,
        "runs": [
            {
                "run_id": run.run_id,
                "finished_at": f"{run.finished_at:%Y-%m-%dT%H:%M:%SZ}",
                "mean_score": run.mean_score,
                "status": run.status,
            }
            for run in alike
        ],
    }
    age = now - newest[0].finished_at
    if age > timedelta(seconds=settings.golden_max_age_s):
        text = f"golden set {name}: the last run is {_hours(age)} old, over {settings.golden_max_age_s:g} s"
        return Condition("unknown", text, evidence)
    if any(run.mean_score >= least for run in alike):
        return Condition(
            "quiet", f"golden set {name}: last runs scored {scores}, least allowed {least:g}", evidence
        )
    if len(alike) < needed:
        text = f"golden set {name}: {len(alike)} of {needed} runs in a row under {least:g} so far: {scores}"
        return Condition("quiet", text, evidence)
    return Condition(
        "firing", f"golden set {name}: {needed} runs in a row under {least:g}: {scores}", evidence
    )


def read_runs(
    store: Store, experiment: str, candidate: str, settings: RollbackSettings, now: datetime
) -> list[GoldenScore]:
    """Return the last runs of each set that came to a score. Raises what the store raises.

    A run that was not finished says nothing of the model and is left out.
    """
    rows = store.query(
        "SELECT set_name, run_id, finished_at, mean_score, status, served_hash FROM golden_runs_v1"
        " WHERE experiment = {experiment:String} AND endpoint_name = {candidate:String}"
        " AND status != 'incomplete' AND isNotNull(mean_score)"
        " AND finished_at > {since:DateTime64(3, 'UTC')} AND finished_at <= {now:DateTime64(3, 'UTC')}"
        " AND ({set:String} = '' OR set_name = {set:String})"
        " ORDER BY finished_at DESC, run_id DESC LIMIT {runs:UInt32} BY set_name",
        {
            "experiment": experiment,
            "candidate": candidate,
            "set": settings.golden_set or "",
            "since": f"{(now - timedelta(days=_DAYS)).timestamp():.3f}",
            "now": f"{now.timestamp():.3f}",
            "runs": settings.golden_runs,
        },
    ).rows
    return [GoldenScore(*row) for row in rows]


def _hours(age: timedelta) -> str:
    minutes = int(age.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min"
