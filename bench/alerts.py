"""What the e-detectors promise and what a simulation sees. Run: python -m bench.alerts [seconds]

Prints the mean time between false alarms on quiet traffic beside the promise, and beside a z-test over a
rolling window that is looked at after every minute; the median delay after a change beside
ln(A M) / KL(p1 || p0); and how many pairs a second one core folds. Traffic is Bernoulli, seeds are fixed.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time

from compare.alerts.edetector import DetectorSpec, fresh, step
from compare.alerts.fold import Folder, FoldState
from compare.alerts.series import SERIES_FACTOR, FoldedPair
from ingest.settings_alerts import AlertSettings

A = 1_000
"""Pairs between false alarms in the simulation; small, so that there are false alarms to count."""


def run_length(spec: DetectorSpec, rng: random.Random, rate: float, *, longest: int) -> tuple[int, bool]:
    """Pairs until the first alarm, and whether there was one before `longest`."""
    state = fresh(spec)
    for index in range(longest):
        u = rng.random()
        candidate = u < rate
        reference = spec.kind == "candidate_only_excess" and u > 1 - rate + spec.tolerated
        state, signal, _ = step(spec, state, candidate=candidate, reference=reference, at_ms=index)
        if signal is not None:
            return index + 1, True
    return longest, False


def false_alarms(budget_s: float) -> None:
    print(
        "false alarms of one series at exactly the tolerated rate;"
        f" promised: at least {A * SERIES_FACTOR:,} pairs between two"
    )
    for name, spec, rate in (
        ("regression rate, p0 = 2 %", DetectorSpec("regression_rate", 0.02, A * SERIES_FACTOR), 0.02),
        (
            "paired, d = 0.5 %, 5 % either way",
            DetectorSpec("candidate_only_excess", 0.005, A * SERIES_FACTOR),
            0.05,
        ),
    ):
        rng, pairs, alarms = random.Random(1), 0, 0
        end = time.monotonic() + budget_s
        while time.monotonic() < end:
            length, fired = run_length(spec, rng, rate, longest=200_000)
            pairs, alarms = pairs + length, alarms + fired
        seen = f"{pairs / alarms:,.0f} pairs" if alarms else f"none in {pairs:,} pairs"
        print(f"  {name:36s} promised >= {spec.threshold:,.0f}   seen {seen} ({alarms} alarms)")


def window_test() -> None:
    """A one-sided z-test at 5 % over the last 60 minutes, every minute of a quiet day at 1 pair a second."""
    rng, p0, fired, days = random.Random(2), 0.02, 0, 40
    for _ in range(days):
        minutes = [sum(rng.random() < p0 for _ in range(60)) for _ in range(1440)]
        n, total = 3600, sum(minutes[:60])
        for index in range(60, 1440):
            total += minutes[index] - minutes[index - 60]
            if (total / n - p0) / math.sqrt(p0 * (1 - p0) / n) > 1.645:
                fired += 1
                break
    print(f"  rolling window z-test at 5 %: a false alarm on {fired} of {days} quiet days")


def delays() -> None:
    print("delay after a change, median of 101 runs, against ln(A M) / KL(p1 || p0)")
    for a, p0, p1 in ((1_000, 0.02, 0.2), (604_800, 0.0018, 0.05), (604_800, 0.0018, 0.01)):
        threshold = float(a * SERIES_FACTOR)
        spec, rng = DetectorSpec("regression_rate", p0, threshold), random.Random(3)
        lengths = [run_length(spec, rng, p1, longest=1_000_000)[0] for _ in range(101)]
        kl = p1 * math.log(p1 / p0) + (1 - p1) * math.log((1 - p1) / (1 - p0))
        bound = math.log(threshold) / kl
        median = statistics.median(lengths)
        change = f"A = {a:7,}  {p0:.2%} -> {p1:.0%}"
        print(f"  {change}:  bound {bound:7.1f}  seen {median:7.1f}  ratio {median / bound:.2f}")


def speed() -> None:
    rng = random.Random(4)
    pairs = []
    for index in range(50_000):
        bad = rng.random() < 0.01
        pair = FoldedPair("t", 0, index, index * 100, str(index), f"r{index % 8}", True, bad, bad, False)
        pairs.append((index * 100, pair))
    settings = AlertSettings(tolerated_regression_rate=0.02)
    folder = Folder(experiment="e", candidate="c", settings=settings, state=FoldState(), seen=set())
    start = time.perf_counter()
    folder.fold(pairs, {})
    rate = len(pairs) / (time.perf_counter() - start)
    print(
        f"fold speed: {rate:,.0f} pairs a second a core, {SERIES_FACTOR} series each"
        f" ({rate / 40:,.0f} times the 40 a second that the service must reach)"
    )


def main() -> None:
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    false_alarms(budget_s)
    window_test()
    delays()
    speed()


if __name__ == "__main__":
    main()
