import math
import random
from typing import Literal

import msgspec
import pytest

from compare.alerts.edetector import (
    DetectorSpec,
    DetectorState,
    Signal,
    factors,
    fresh,
    step,
)

REGRESSION = DetectorSpec("regression_rate", 0.02, 4000.0)
PAIRED = DetectorSpec("candidate_only_excess", 0.005, 4000.0)
Flags = tuple[bool, bool]


def run(spec: DetectorSpec, flags: list[Flags]) -> tuple[DetectorState, list[tuple[int, Signal]]]:
    state, signals = fresh(spec), []
    for index, (candidate, reference) in enumerate(flags):
        state, signal, _ = step(spec, state, candidate=candidate, reference=reference, at_ms=index)
        if signal is not None:
            signals.append((index, signal))
    return state, signals


class Scalar:
    """The same detector written a second time, in log space and straight from the formulas."""

    def __init__(self, kind: Literal["regression", "paired"], tolerated: float, threshold: float) -> None:
        self.kind, self.tolerated, self.threshold = kind, tolerated, threshold
        self.logs = [0.0] * 4
        self.is_firing = False

    def log_e(self, k: int, candidate: bool, reference: bool) -> float:
        if self.kind == "regression":
            p0 = self.tolerated
            p1 = min(p0 * [3, 10, 30, 100][k], 0.5)
            return math.log(p1) - math.log(p0) if candidate else math.log1p(-p1) - math.log1p(-p0)
        stake = [0.1, 0.3, 0.6, 0.9][k]
        return math.log(1 + stake * (int(candidate) - int(reference) - self.tolerated))

    def mean(self) -> float:
        return sum(math.exp(x) for x in self.logs) / 4

    def feed(self, candidate: bool, reference: bool) -> str | None:
        self.logs = [max(x, 0.0) + self.log_e(k, candidate, reference) for k, x in enumerate(self.logs)]
        signal = None
        if not self.is_firing:
            if self.mean() < self.threshold:
                return None
            self.is_firing, signal = True, "fired"
        self.logs = [min(x, math.log(self.threshold)) for x in self.logs]
        if signal is None and self.mean() < 1.5:
            self.is_firing, self.logs, signal = False, [0.0] * 4, "resolved"
        return signal


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("kind", "spec"), [("regression", REGRESSION), ("paired", PAIRED)])
def test_agrees_with_a_second_computation(
    kind: Literal["regression", "paired"], spec: DetectorSpec, seed: int
) -> None:
    rng = random.Random(seed)
    scalar = Scalar(kind, spec.tolerated, spec.threshold)
    state, signals = fresh(spec), 0
    for index in range(2400):
        is_bad = (index // 300) % 2 == 1
        candidate = rng.random() < (0.4 if is_bad else 0.01)
        reference = rng.random() < (0.01 if is_bad else 0.6)
        if kind == "paired" and candidate and reference:
            candidate = reference = False
        state, signal, _ = step(spec, state, candidate=candidate, reference=reference, at_ms=index)
        assert signal == scalar.feed(candidate, reference)
        assert [bet.s for bet in state.bets] == pytest.approx([math.exp(x) for x in scalar.logs], rel=1e-9)
        signals += signal is not None
    assert signals >= 3


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


def test_quiet_input_never_falls_below_one_factor() -> None:
    state, signals = run(REGRESSION, [(False, False)] * 10_000)
    assert signals == []
    # S is lifted to 1 before each factor: what is left is one factor (1 - p1) / (1 - p0).
    assert [bet.s for bet in state.bets] == pytest.approx([0.94 / 0.98, 0.8 / 0.98, 0.5 / 0.98, 0.5 / 0.98])


def test_cap_bounds_the_time_to_resolve_and_nothing_overflows() -> None:
    for faults in (10, 100_000):
        _, signals = run(REGRESSION, [(True, False)] * faults + [(False, False)] * 400)
        assert [signal for _, signal in signals] == ["fired", "resolved"]
        # The slowest bet (6 %) falls from 4000 to 4 * 1.5 less what the spent bets leave (under 4 * 0.6).
        fastest = math.log(4000 / 6.0) / math.log(0.98 / 0.94)
        slowest = math.log(4000 / (6.0 - 4 * 0.6)) / math.log(0.98 / 0.94)
        assert fastest <= signals[1][0] - faults + 1 <= slowest + 1


def test_restarts_at_one_after_it_resolved() -> None:
    flags = [(True, False)] * 3 + [(False, False)] * 400
    _, first = run(REGRESSION, flags)
    resolved = first[1][0]
    _, again = run(REGRESSION, flags[: resolved + 1] + [(True, False)] * 3)
    assert again[2:] == [(resolved + 3, "fired")]


def test_leading_excursion_dates_the_change() -> None:
    state, signals = run(
        REGRESSION, [(False, False)] * 50 + [(True, False)] * 2 + [(False, False), (True, False)]
    )
    assert signals == [(53, "fired")]
    lead = state.leading
    assert (lead.started_ms, lead.pairs, lead.candidate) == (50, 4, 3)
    assert (state.pairs, state.candidate, state.reference) == (54, 3, 0)


@pytest.mark.parametrize("d", [0.0, 0.005, 0.2, 0.49])
def test_paired_factors_are_positive_with_mean_at_most_one_at_the_tolerated_excess(d: float) -> None:
    spec = DetectorSpec("candidate_only_excess", d, 100.0)
    for none, candidate_only, reference_only, both in factors(spec):
        assert min(none, candidate_only, reference_only, both) > 0
        for r in (0.0, 0.1, 0.25):
            c = d + r
            assert (1 - c - r) * none + c * candidate_only + r * reference_only <= 1 + 1e-12


@pytest.mark.parametrize("p0", [1e-4, 0.002, 0.02, 0.3, 0.49])
def test_regression_factors_have_mean_at_most_one_up_to_p0(p0: float) -> None:
    for quiet, faulty, *_ in factors(DetectorSpec("regression_rate", p0, 100.0)):
        for p in (0.0, p0 / 2, p0):
            assert p * faulty + (1 - p) * quiet <= 1 + 1e-12


def test_mean_time_between_false_alarms_is_at_least_the_threshold() -> None:
    """At exactly p0 the promise is a mean of at least A * M = 100 pairs; 100 runs, cut at 1000 pairs.

    Cutting only lowers the mean. Three standard errors are granted to chance.
    """
    rng = random.Random(11)
    for spec in (
        DetectorSpec("regression_rate", 0.05, 200.0),
        DetectorSpec("candidate_only_excess", 0.0, 200.0),
    ):
        lengths = []
        for _ in range(200):
            state, length, signal = fresh(spec), 0, None
            while signal is None and length < 1000:
                u = rng.random()
                candidate = u < 0.05
                reference = spec.kind == "candidate_only_excess" and u > 0.95
                state, signal, _ = step(spec, state, candidate=candidate, reference=reference, at_ms=length)
                length += 1
            lengths.append(length)
        mean = sum(lengths) / len(lengths)
        error = math.sqrt(sum((x - mean) ** 2 for x in lengths) / len(lengths) / (len(lengths) - 1))
        assert mean + 3 * error >= 100.0


def test_delay_is_near_the_information_bound() -> None:
    """Median delay at p1 = 10 p0 against ln(A M) / KL(p1 || p0), for the bet that fits it.

    Mixing four bets costs ln 4 more at most; half of that again for the overshoot of the last factor.
    """
    p0, p1, threshold = 0.005, 0.05, 40_000.0
    kl = p1 * math.log(p1 / p0) + (1 - p1) * math.log((1 - p1) / (1 - p0))
    spec = DetectorSpec("regression_rate", p0, threshold)
    rng = random.Random(5)
    delays = []
    for _ in range(51):
        state, delay, signal = fresh(spec), 0, None
        while signal is None:
            state, signal, _ = step(spec, state, candidate=rng.random() < p1, reference=False, at_ms=delay)
            delay += 1
        delays.append(delay)
    median = sorted(delays)[25]
    assert median <= 1.15 * (math.log(threshold) + math.log(4)) / kl
    assert median >= 0.5 * math.log(threshold) / kl


def test_state_survives_json() -> None:
    state, _ = run(REGRESSION, [(True, False), (False, False)])
    assert msgspec.json.decode(msgspec.json.encode(state), type=DetectorState) == state


@pytest.mark.parametrize(
    ("kind", "tolerated", "threshold"),
    [
        ("regression_rate", 0.0, 100.0),
        ("regression_rate", 0.5, 100.0),
        ("candidate_only_excess", -0.1, 100.0),
        ("regression_rate", 0.1, 1.0),
        ("regression_rate", float("nan"), 100.0),
    ],
)
def test_refuses_numbers_that_break_the_promise(
    kind: Literal["regression_rate", "candidate_only_excess"], tolerated: float, threshold: float
) -> None:
    with pytest.raises(ValueError, match="regression_rate|candidate_only_excess"):
        DetectorSpec(kind, tolerated, threshold)
