import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from compare.alerts.advance import QUIET_BLOCK, Rows, Turn, advance
from compare.alerts.edetector import DetectorSpec, DetectorState, factors, fresh
from compare.alerts.metrics import Kind

REGRESSION = DetectorSpec("regression_rate", 0.02, 4000.0, 1000.0)
PAIRED = DetectorSpec("candidate_only_excess", 0.005, 4000.0, 1000.0)
Flags = tuple[bool, bool]


def rows_of(x: list[float], flags: list[Flags] | None = None) -> Rows:
    both = [(False, False)] * len(x) if flags is None else flags
    return Rows(
        np.asarray(x, dtype=np.float64),
        np.asarray([one for one, _ in both], dtype=np.int64),
        np.asarray([other for _, other in both], dtype=np.int64),
        np.arange(len(x), dtype=np.int64),
    )


def run(spec: DetectorSpec, flags: list[Flags]) -> tuple[DetectorState, list[tuple[int, str]]]:
    paired = spec.kind == "candidate_only_excess"
    x = [float(one) - float(other) * paired for one, other in flags]
    state, turns = advance(spec, fresh(spec), rows_of(x, flags))
    return state, [(turn.row, turn.signal) for turn in turns]


class Scalar:
    """The quiet half of a detector written a second time: in floats, straight from the formulas."""

    def __init__(self, kind: Kind, tolerated: float) -> None:
        self.kind, self.t = kind, tolerated
        self.s = [1.0] * 4

    def e(self, k: int, x: float) -> float:
        t = self.t
        share = [0.1, 0.3, 0.6, 1.0][k] * 0.95
        if self.kind in ("regression_rate", "accounting_rate"):
            p1 = min(t * [3, 10, 30, 100][k], 0.5)
            return p1 / t if x else (1 - p1) / (1 - t)
        if self.kind == "candidate_only_excess":
            return 1 + [0.1, 0.3, 0.6, 0.9][k] * (x - t)
        if self.kind == "bounded_mean":
            return 1 + share / (1 - t) * (t - x)
        return 1 + share / t * (x - t)

    def feed(self, x: float) -> float:
        self.s = [max(s, 1.0) * self.e(k, x) for k, s in enumerate(self.s)]
        return sum(self.s) / 4


def draw(rng: random.Random, kind: Kind) -> float:
    if kind == "bounded_mean":
        return rng.betavariate(20, 3)
    if kind == "rank":
        return rng.random()
    u = rng.random()
    if kind == "candidate_only_excess":
        return 1.0 if u < 0.05 else -1.0 if u > 0.96 else 0.0
    return float(u < 0.04)


CASES: list[tuple[Kind, float]] = [
    ("regression_rate", 0.03),
    ("accounting_rate", 0.02),
    ("candidate_only_excess", 0.005),
    ("bounded_mean", 0.87),
    ("rank", 0.52),
]


@pytest.mark.parametrize(("kind", "tolerated"), CASES)
def test_agrees_with_a_second_computation(kind: Kind, tolerated: float) -> None:
    rng = random.Random(kind)
    x = [draw(rng, kind) for _ in range(3000)]
    spec, scalar = DetectorSpec(kind, tolerated, 200.0, 1000.0), Scalar(kind, tolerated)
    means = [scalar.feed(one) for one in x]
    hits = [row for row, mean in enumerate(means) if mean >= 200.0]
    _, turns = advance(spec, fresh(spec), rows_of(x))
    assert [turn.row for turn in turns if turn.signal == "fired"][:1] == hits[:1]
    end = hits[0] if hits else len(x)
    state, _ = advance(spec, fresh(spec), rows_of(x[:end]))
    # Rounding each logarithm down to 2^-32 costs at most end * 2^-32.
    assert state.statistic == pytest.approx(means[end - 1], rel=1e-5)


@pytest.mark.parametrize(("kind", "tolerated"), CASES)
@pytest.mark.parametrize("seed", range(4))
def test_any_cut_into_chunks_gives_the_same_state_bit_for_bit(
    kind: Kind, tolerated: float, seed: int
) -> None:
    """Good, bad and half-bad stretches, so that alerts begin, are anchored anew and end."""
    rng = random.Random(seed)
    x: list[float] = []
    for worse in (0.0, 0.5, 0.15, 0.0, 0.3, 0.0):
        for _ in range(700):
            bad = rng.random() < worse
            low = kind == "bounded_mean"
            x.append((0.2 if low else 1.0) if bad else draw(rng, kind))
    flags = [(one > 0, one < 0) for one in x]
    rows = rows_of(x, flags)
    spec = DetectorSpec(kind, tolerated, 300.0, 50.0)
    whole, turns = advance(spec, fresh(spec), rows)
    assert {turn.signal for turn in turns} == {"fired", "resolved"}
    state, pieces, start = fresh(spec), list[Turn](), 0
    while start < len(x):
        end = min(start + rng.choice((1, 2, 7, 100, 999)), len(x))
        state, found = advance(spec, state, rows.between(start, end))
        pieces += [Turn(start + one.row, one.signal, one.judged) for one in found]
        state = msgspec.json.decode(msgspec.json.encode(state), type=DetectorState)
        start = end
    assert state == whole
    assert pieces == turns


def test_block_edges_are_no_edges() -> None:
    rng = np.random.default_rng(3)
    faults = (rng.random(QUIET_BLOCK + 50) < 0.02).astype(np.int64)
    rows = Rows(faults.astype(np.float64), faults, np.zeros_like(faults), np.arange(faults.size))
    spec = DetectorSpec("regression_rate", 0.02, 1e9, 1000.0)
    whole, _ = advance(spec, fresh(spec), rows)
    half, _ = advance(spec, fresh(spec), rows.between(0, 5000))
    assert advance(spec, half, rows.between(5000, faults.size))[0] == whole


def test_always_faulty_input_has_a_closed_form() -> None:
    state, _ = run(REGRESSION, [(True, False)] * 2)
    # p1 = 6 %, 20 %, and 60 % and 200 % capped at 50 %, over p0 = 2 %.
    assert [bet.s for bet in state.bets] == pytest.approx([3.0**2, 10.0**2, 25.0**2, 25.0**2])
    # (27 + 1000 + 2 * 15625) / 4 = 8069 reaches 4000 at the third pair, (9 + 100 + 1250) / 4 does not.
    assert run(REGRESSION, [(True, False)] * 3)[1] == [(2, "fired")]


def test_paired_input_has_a_closed_form() -> None:
    stakes = (0.1, 0.3, 0.6, 0.9)
    state, _ = run(PAIRED, [(True, False)] * 3)
    assert [bet.s for bet in state.bets] == pytest.approx([(1 + s * 0.995) ** 3 for s in stakes])
    state, _ = run(PAIRED, [(True, False), (False, True)])
    assert [bet.s for bet in state.bets] == pytest.approx([(1 + s * 0.995) * (1 - s * 1.005) for s in stakes])


def test_constant_mean_has_a_closed_form() -> None:
    spec = DetectorSpec("bounded_mean", 0.9, 1e6, 1000.0)
    state, _ = advance(spec, fresh(spec), rows_of([0.8] * 10))
    # l = share * 0.95 / 0.1, e = 1 + l * 0.1.
    assert [bet.s for bet in state.bets] == pytest.approx([(1 + s * 0.95) ** 10 for s in (0.1, 0.3, 0.6, 1)])
    assert state.leading.total == pytest.approx(8.0)
    assert state.leading.pairs == 10


def test_quiet_input_never_falls_below_one_factor() -> None:
    state, signals = run(REGRESSION, [(False, False)] * 10_000)
    assert signals == []
    # S is lifted to 1 before each factor: what is left is one factor (1 - p1) / (1 - p0).
    assert [bet.s for bet in state.bets] == pytest.approx([0.94 / 0.98, 0.8 / 0.98, 0.5 / 0.98, 0.5 / 0.98])


def test_leading_excursion_dates_the_change() -> None:
    flags = [(False, False)] * 50 + [(True, False)] * 2 + [(False, False), (True, False)]
    _, turns = advance(REGRESSION, fresh(REGRESSION), rows_of([float(c) for c, _ in flags], flags))
    (turn,) = turns
    assert (turn.row, turn.signal) == (53, "fired")
    lead = turn.judged.leading
    assert (lead.started_ms, lead.pairs, lead.candidate, lead.total) == (50, 4, 3, 3.0)
    assert (turn.judged.pairs, turn.judged.candidate, turn.judged.reference) == (54, 3, 0)


@pytest.mark.parametrize(
    ("kind", "tolerated"),
    [*CASES, ("regression_rate", 1e-4), ("regression_rate", 0.49), ("candidate_only_excess", 0.0),
     ("candidate_only_excess", 0.49), ("bounded_mean", 0.001), ("bounded_mean", 0.9999), ("rank", 0.94)],
)  # fmt: skip
def test_factors_are_positive_with_mean_at_most_one_while_the_mean_is_tolerated(
    kind: Kind, tolerated: float
) -> None:
    """On two-point distributions, which are the extremes: linear factors depend on the mean alone."""
    low, high = (-1.0, 1.0) if kind == "candidate_only_excess" else (0.0, 1.0)
    e = factors(kind, tolerated, np.asarray([low, high]))
    assert e.min() > 0
    better = -1 if kind != "bounded_mean" else 1
    for distance in (0.0, 0.01, 0.2):
        mean = tolerated + better * distance
        if low <= mean <= high:
            chance = (mean - low) / (high - low)
            assert ((1 - chance) * e[0] + chance * e[1]).max() <= 1 + 1e-12


def test_mean_time_between_false_alarms_is_at_least_the_threshold() -> None:
    """At exactly what is tolerated the promise is a mean of at least 200 pairs; runs are cut at 2,000.

    Cutting only lowers the mean. Three standard errors are granted to chance.
    """
    rng = np.random.default_rng(11)
    for kind, tolerated in CASES:
        spec = DetectorSpec(kind, tolerated, 200.0, 1000.0)
        lengths: list[int] = []
        for _ in range(150):
            if kind == "candidate_only_excess":
                x = rng.choice([1.0, -1.0, 0.0], 2000, p=[0.05 + tolerated, 0.05, 0.9 - tolerated])
            elif kind == "bounded_mean":
                x = rng.beta(8.7, 1.3, 2000)
            elif kind == "rank":
                x = rng.beta(0.52, 0.48, 2000)
            else:
                x = (rng.random(2000) < tolerated).astype(np.float64)
            _, turns = advance(spec, fresh(spec), rows_of(x.tolist()))
            lengths.append(turns[0].row + 1 if turns else 2000)
        error = float(np.std(lengths)) / math.sqrt(len(lengths) - 1)
        assert np.mean(lengths) + 3 * error >= 200.0, kind


def test_delay_is_near_the_information_bound() -> None:
    """Median delay at p1 = 10 p0 against ln(A M) / KL(p1 || p0), for the bet that fits it.

    Mixing four bets costs ln 4 more at most; half of that again for the overshoot of the last factor.
    """
    p0, p1, threshold = 0.005, 0.05, 40_000.0
    kl = p1 * math.log(p1 / p0) + (1 - p1) * math.log((1 - p1) / (1 - p0))
    spec = DetectorSpec("regression_rate", p0, threshold, 1000.0)
    rng = np.random.default_rng(5)
    delays = []
    for _ in range(51):
        _, turns = advance(spec, fresh(spec), rows_of((rng.random(5000) < p1).astype(float).tolist()))
        delays.append(turns[0].row + 1)
    median = sorted(delays)[25]
    assert median <= 1.15 * (math.log(threshold) + math.log(4)) / kl
    assert median >= 0.5 * math.log(threshold) / kl


BAD_SPECS: list[dict[str, Any]] = [
    {"kind": "regression_rate", "tolerated": 0.0, "threshold": 100.0, "patience": 9.0},
    {"kind": "regression_rate", "tolerated": 0.5, "threshold": 100.0, "patience": 9.0},
    {"kind": "candidate_only_excess", "tolerated": -0.1, "threshold": 100.0, "patience": 9.0},
    {"kind": "bounded_mean", "tolerated": 1.0, "threshold": 100.0, "patience": 9.0},
    {"kind": "rank", "tolerated": 0.0, "threshold": 100.0, "patience": 9.0},
    {"kind": "regression_rate", "tolerated": 0.1, "threshold": 1.0, "patience": 9.0},
    {"kind": "regression_rate", "tolerated": 0.1, "threshold": 9.0, "patience": 1.0},
    {"kind": "regression_rate", "tolerated": float("nan"), "threshold": 100.0, "patience": 9.0},
]


@pytest.mark.parametrize("values", BAD_SPECS)
def test_refuses_numbers_that_break_the_promise(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=values["kind"]):
        DetectorSpec(**values)
