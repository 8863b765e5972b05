"""Condition A of a rollback: golden runs in a row with a low mean score (design, section 9)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compare.golden.run import GoldenRun


class ConditionA(msgspec.Struct, frozen=True):
    """Whether it holds, the runs that say so (oldest first), and in words why or why not."""

    is_met: bool
    runs: tuple[GoldenRun, ...]
    reason: str


def condition_a(runs: Sequence[GoldenRun], *, least: float, in_a_row: int) -> ConditionA:
    """Say whether the last `in_a_row` runs all had a mean score under `least`.

    `runs` are of one set and one endpoint, in any order. Runs that are incomplete or have no mean score say
    nothing and are passed over. Only runs of what serves now (the newest of them) count: what an
    earlier snapshot scored is no evidence against this one. Pure. Raises ValueError for runs of several
    sets or endpoints.
    """
    if len({(run.set_name, run.experiment, run.endpoint_name) for run in runs}) > 1:
        raise ValueError("condition A is of one set and one endpoint")
    scored = sorted(
        (run for run in runs if run.status != "incomplete" and run.totals.mean_score is not None),
        key=lambda run: (run.started_at, run.run_id),
    )
    if not scored:
        return ConditionA(False, (), "no golden run has a mean score")
    serving: list[GoldenRun] = []
    for run in reversed(scored):
        if run.served_hash != scored[-1].served_hash:
            break
        serving.insert(0, run)
    last = tuple(serving[-in_a_row:])
    said = ", ".join(f"{run.totals.mean_score:.3f}" for run in last)
    if len(last) < in_a_row:
        return ConditionA(False, last, f"{len(last)} of {in_a_row} golden runs of what serves now: {said}")
    is_met = all(run.totals.mean_score is not None and run.totals.mean_score < least for run in last)
    how = "each under" if is_met else "not each under"
    return ConditionA(is_met, last, f"mean scores of the last {in_a_row} golden runs: {said}; {how} {least}")
