"""Condition A: two runs in a row under 0.8, of what serves now."""

from __future__ import annotations

import functools

import pytest

from compare.golden.condition import condition_a
from compare.golden.run import GoldenRun
from tests.compare.golden.rig import run

judged = functools.partial(condition_a, least=0.8, in_a_row=2)


def ids(found: tuple[GoldenRun, ...]) -> list[str]:
    return [one.run_id for one in found]


def test_two_low_runs_in_a_row_meet_it() -> None:
    found = judged([run(3, 0.79), run(2, 0.5), run(1, 0.95)])
    assert (found.is_met, ids(found.runs)) == (True, ["run0002", "run0003"])
    assert found.reason == "mean scores of the last 2 golden runs: 0.500, 0.790; each under 0.8"


@pytest.mark.parametrize(
    "means", [[0.79, 0.9], [0.9, 0.79], [0.79, 0.8], [0.7, 0.7, 0.9]], ids=lambda means: str(means)
)
def test_anything_else_does_not(means: list[float]) -> None:
    found = judged([run(number, mean) for number, mean in enumerate(means)])
    assert not found.is_met
    assert "not each under 0.8" in found.reason


def test_one_run_is_not_enough() -> None:
    assert judged([run(0, 0.1)]).reason == "1 of 2 golden runs of what serves now: 0.100"
    assert judged([]).reason == "no golden run has a mean score"


def test_incomplete_runs_are_passed_over() -> None:
    runs = [run(0, 0.5), run(1, 0.9, status="incomplete"), run(2, None), run(3, 0.6)]
    found = judged(runs)
    assert (found.is_met, ids(found.runs)) == (True, ["run0000", "run0003"])
    assert not judged([run(0, 0.5, status="incomplete"), run(1, 0.5, status="incomplete")]).is_met


def test_what_another_snapshot_scored_does_not_count() -> None:
    runs = [run(0, 0.5), run(1, 0.5, served_hash="v2")]
    found = judged(runs)
    assert (found.is_met, ids(found.runs)) == (False, ["run0001"])
    # Back to the first: what it scored before the other came is not in a row either.
    assert not judged([*runs, run(2, 0.5)]).is_met


def test_runs_of_several_endpoints_are_refused() -> None:
    with pytest.raises(ValueError, match="one set and one endpoint"):
        judged([run(0), run(1, endpoint_name="other")])
