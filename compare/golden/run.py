"""A run of a set: its results and what they come to, and how it compares with a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from compare.golden.score import CaseResult
from ingest.served import Served

RunStatus = Literal["passed", "failed", "incomplete"]
StartedBy = Literal["command", "schedule"]


class Limits(msgspec.Struct, frozen=True):
    """What a run has to reach: a mean score, and how many cases may fail."""

    least_mean_score: float
    allow_failed: int = 0


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What the cases of a run come to; None where there was nothing to measure.

    Shares are in [0, 1]: `exact_rate` of the answered cases with an expected answer, `faulty_rate` of the
    answered cases, `extraction_accuracy` of all expected fields. `mean_score` is that of the cases
    that have a score.
    """

    cases: int
    answered_cases: int
    passed_cases: int
    exact_rate: float | None
    mean_score: float | None
    extraction_accuracy: float | None
    faulty_rate: float | None


class Moved(msgspec.Struct, frozen=True):
    """A case whose score changed by more than `LEAST_MOVE`; None: without score."""

    case_id: str
    before: float | None
    now: float | None


class Changes(msgspec.Struct, frozen=True):
    """What is different from the baseline, by case id. A case that was changed itself is in `edited` only."""

    newly_failing: tuple[str, ...] = ()
    newly_passing: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()


LEAST_MOVE = 0.01
"""Changes of a score up to this are not shown: llama.cpp's numbers depend on what else is in its batch."""


class Known(msgspec.Struct, frozen=True):
    """What is kept of a case of an earlier run."""

    case_hash: str
    is_passed: bool
    score: float | None


class GoldenRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a set against one endpoint, as it is stored (`golden_runs_v1`)."""

    set_name: str
    run_id: str
    set_hash: str
    experiment: str
    settings_hash: str
    role: str
    endpoint_name: str
    started_by: StartedBy
    started_at: datetime
    finished_at: datetime
    status: RunStatus
    reasons: tuple[str, ...]
    totals: Totals
    least_mean_score: float
    served: Served
    served_hash: str
    is_baseline: bool = False
    baseline_run_id: str | None = None
    newly_failing: int | None = None
    newly_passing: int | None = None

    @property
    def is_passed(self) -> bool:
        """Whether it passed."""
        return self.status == "passed"


def totals_of(results: Sequence[CaseResult]) -> Totals:
    """Sum up the results of a run."""
    answered = [one for one in results if one.status != "away"]
    exact = [one.is_exact for one in answered if one.is_exact is not None]
    scores = [one.score for one in answered if one.score is not None]
    expected = sum(one.fields_expected for one in answered)
    return Totals(
        cases=len(results),
        answered_cases=len(answered),
        passed_cases=sum(one.is_passed for one in answered),
        exact_rate=sum(exact) / len(exact) if exact else None,
        mean_score=sum(scores) / len(scores) if scores else None,
        extraction_accuracy=sum(one.fields_right for one in answered) / expected if expected else None,
        faulty_rate=sum(one.is_faulty is True for one in answered) / len(answered) if answered else None,
    )


def judged(totals: Totals, limits: Limits, disturbed: str = "") -> tuple[RunStatus, tuple[str, ...]]:
    """The status of a run, and why it did not pass. `disturbed`: why it says nothing, if so."""
    away = totals.cases - totals.answered_cases
    if away or disturbed:
        reasons = [f"{away} of {totals.cases} cases could not be asked"] if away else []
        return "incomplete", (*reasons, *((disturbed,) if disturbed else ()))
    reasons = []
    failed = totals.answered_cases - totals.passed_cases
    if failed > limits.allow_failed:
        allowed = f", {limits.allow_failed} allowed" if limits.allow_failed else ""
        reasons.append(f"{failed} of {totals.cases} cases failed{allowed}")
    if totals.mean_score is not None and totals.mean_score < limits.least_mean_score:
        reasons.append(f"mean score {totals.mean_score:.3f} is under {limits.least_mean_score}")
    return ("failed" if reasons else "passed"), tuple(reasons)


def changes_since(baseline: Mapping[str, Known], results: Sequence[CaseResult]) -> Changes:
    """Compare a run with its baseline, case by case. Cases that could not be asked are left out."""
    now = {one.case_id: one for one in results}
    answered = {name: one for name, one in now.items() if one.status != "away"}
    common = [(name, baseline[name], one) for name, one in answered.items() if name in baseline]
    same = [each for each in common if each[1].case_hash == each[2].case_hash]
    return Changes(
        newly_failing=tuple(name for name, old, one in same if old.is_passed and not one.is_passed),
        newly_passing=tuple(name for name, old, one in same if one.is_passed and not old.is_passed),
        moved=tuple(
            Moved(name, old.score, one.score) for name, old, one in same if _moved(old.score, one.score)
        ),
        added=tuple(name for name in answered if name not in baseline),
        removed=tuple(name for name in baseline if name not in now),
        edited=tuple(name for name, old, one in common if old.case_hash != one.case_hash),
    )


def _moved(before: float | None, now: float | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) > LEAST_MOVE
