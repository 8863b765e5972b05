"""How an open alert ends, and when it must not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compare.alerts.advance import Rows, Turn, advance, restarted
from compare.alerts.edetector import ONE, DetectorSpec, DetectorState, fresh
from compare.alerts.metrics import Kind
from compare.alerts.recovery import reverse_factors

A, M = 604_800, 52


def spec_of(kind: Kind, tolerated: float) -> DetectorSpec:
    return DetectorSpec(kind, tolerated, float(A * M), float(A))


def rows_of(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Rows:
    return Rows(x, (x > 0).astype(np.int64), (x < 0).astype(np.int64), np.arange(x.size, dtype=np.int64))


def after(spec: DetectorSpec, state: DetectorState, x: object) -> tuple[DetectorState, list[Turn]]:
    return advance(spec, state, rows_of(np.asarray(x, dtype=np.float64)))


@pytest.mark.parametrize(
    ("kind", "tolerated", "level"),
    [
        ("regression_rate", 0.005, 0.1),
        ("accounting_rate", 0.01, 0.02),
        ("candidate_only_excess", 0.0, 0.05),
        ("bounded_mean", 0.9, 0.87),
        ("rank", 0.52, 0.65),
    ],
)
def test_reverse_factors_have_mean_at_most_one_while_it_is_no_better_than_the_level(
    kind: Kind, tolerated: float, level: float
) -> None:
    low, high = (-1.0, 1.0) if kind == "candidate_only_excess" else (0.0, 1.0)
    e = reverse_factors(spec_of(kind, tolerated), level, np.asarray([low, high]))
    assert e.min() > 0
    worse = -1 if kind == "bounded_mean" else 1
    for distance in (0.0, 0.01, 0.2):
        chance = (level + worse * distance - low) / (high - low)
        assert ((1 - chance) * e[0] + chance * e[1]).max() <= 1 + 1e-12


def test_quiet_pairs_after_ten_per_cent_faults_resolve_at_a_known_pair() -> None:
    spec = spec_of("regression_rate", 0.005)
    # Every tenth pair is faulty until it fires, then none.
    state, turns = after(spec, fresh(spec), np.tile([1.0] + [0.0] * 9, 200))
    fired = turns[0]
    lead = fired.judged.leading
    assert state.recovery is not None
    state, _ = after(spec, fresh(spec), np.tile([1.0] + [0.0] * 9, 200)[: fired.row + 1])
    assert state.recovery is not None
    level = state.recovery.level
    assert level == pytest.approx(math.sqrt(0.005 * lead.candidate / lead.pairs))
    _, turns = after(spec, state, np.zeros(3000))
    # W of p' = p0 grows by ln((1 - p0) / (1 - level)) a pair, that of the geometric mean by less.
    grow = [math.log((1 - p) / (1 - level)) for p in (0.005, math.sqrt(0.005 * level))]
    expected = next(n for n in range(1, 3000) if (math.exp(grow[0] * n) + math.exp(grow[1] * n)) / 2 >= A)
    assert [turn.signal for turn in turns] == ["resolved"]
    assert turns[0].row + 1 == pytest.approx(expected, abs=1)
    assert expected < 800


def test_paired_alarm_without_any_tolerance_resolves_by_quiet_pairs_alone() -> None:
    """With d = 0 a quiet pair leaves S where it is for ever."""
    spec = spec_of("candidate_only_excess", 0.0)
    state, turns = after(spec, fresh(spec), np.tile([1.0] + [0.0] * 9, 100))
    assert [turn.signal for turn in turns] == ["fired"]
    state, turns = after(spec, state, np.zeros(900))
    assert [turn.signal for turn in turns] == ["resolved"]
    assert (state.is_firing, state.statistic, state.recovery) == (False, 1.0, None)


def test_starts_anew_after_it_resolved() -> None:
    spec = spec_of("regression_rate", 0.005)
    bad = np.ones(20)
    _, once = after(spec, fresh(spec), bad)
    first = once[0].row
    _, turns = after(spec, fresh(spec), np.concatenate([bad, np.zeros(2000), bad]))
    assert [turn.signal for turn in turns] == ["fired", "resolved", "fired"]
    assert turns[2].row == 20 + 2000 + first


def test_level_that_stays_is_not_resolved() -> None:
    """The reverse detector promises a mean of 200 pairs at its level; runs of 20 at exactly that level."""
    spec = DetectorSpec("regression_rate", 0.01, 1000.0, 200.0)
    rng = np.random.default_rng(7)
    lengths = []
    for _ in range(100):
        state, _ = after(spec, fresh(spec), np.tile([1.0, 0.0, 0.0, 0.0], 10)[:20])
        assert state.recovery is not None
        x = (rng.random(3000) < state.recovery.level).astype(np.float64)
        _, turns = after(spec, state, x)
        lengths.append(turns[0].row + 1 if turns else 3000)
    error = float(np.std(lengths)) / math.sqrt(len(lengths) - 1)
    assert np.mean(lengths) + 3 * error >= 200


def test_half_a_repair_neither_resolves_nor_flaps() -> None:
    """From 20 % to 2 % with 0.5 % tolerated: the level is left, but S says that it is not well."""
    spec = spec_of("regression_rate", 0.005)
    rng = np.random.default_rng(2)
    for _ in range(5):
        bad, half = rng.random(600) < 0.2, rng.random(20_000) < 0.02
        state, turns = after(spec, fresh(spec), np.concatenate([bad, half]).astype(np.float64))
        assert [turn.signal for turn in turns] == ["fired"]
        # It was anchored anew, at a level between what is tolerated and what it now is.
        assert state.recovery is not None
        assert 0.005 < state.recovery.level < 0.015
        _, turns = after(spec, state, np.zeros(5000))
        assert [turn.signal for turn in turns] == ["resolved"]


def test_statistic_of_a_long_recovery_does_not_overflow() -> None:
    spec = DetectorSpec("regression_rate", 0.4, 1e300, 1e300)
    state, _ = after(spec, fresh(spec), np.ones(3500))
    assert state.is_firing
    state, _ = after(spec, state, np.tile([1.0, 0.0], 40_000))
    assert state.recovery is not None
    assert math.isfinite(state.recovery.statistic)
    assert all(isinstance(log_w, int) and log_w / ONE < 1e6 for log_w in state.recovery.log_w)


def test_changed_tolerance_keeps_an_alert_open_whose_level_is_still_not_tolerated() -> None:
    spec = spec_of("regression_rate", 0.005)
    state, _ = after(spec, fresh(spec), np.tile([1.0] + [0.0] * 9, 200))
    stricter, looser = spec_of("regression_rate", 0.01), spec_of("regression_rate", 0.4)
    kept, turns = after(stricter, restarted(stricter, state, is_firing=True), np.zeros(1))
    assert (kept.is_firing, turns) == (True, [])
    ended, turns = after(looser, restarted(looser, state, is_firing=True), np.zeros(1))
    assert (ended.is_firing, [turn.signal for turn in turns]) == (False, ["resolved"])
