"""What the e-detectors promise and what a simulation sees, beside the promise and beside other tests.

Run: python -m bench.alerts [--full] [--days N] [--part quiet|delays|recovery|outage|speed]

The default takes about 5 minutes of processor time. `--full` is the stated check, 200 days of each kind of
quiet traffic and 101 runs of each change, and takes about an hour; `--part quiet --only resent` picks one
traffic. The distributions are those of `bench.alert_traffic`, seeds are fixed, and the detectors are the
service's own fold.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.alert_traffic import DAY_S, Change, Mix, Traffic
from compare.alerts.advance import Rows, advance
from compare.alerts.alert import Alert
from compare.alerts.baseline import bound_of
from compare.alerts.chunk import Chunk
from compare.alerts.edetector import DetectorSpec, fresh
from compare.alerts.fold import Folder, FoldState
from compare.alerts.learning import Part, moments_of
from compare.alerts.metrics import BY_NAME, DIMENSIONS, SERIES_FACTOR
from compare.alerts.series import FoldedPair, SeriesKey
from ingest.settings_alerts import AlertSettings

SETTINGS = AlertSettings()
A = SETTINGS.mean_pairs_between_false_alarms
THRESHOLD = float(A * SERIES_FACTOR)
PARTS = 4
"""Chunks a day."""


def verdict(is_met: bool) -> str:
    return "OK" if is_met else "MISSED"


class Watch:
    """One experiment's fold, fed with chunks."""

    def __init__(self, settings: AlertSettings = SETTINGS) -> None:
        self.settings = settings
        self.state = FoldState()

    def fold(self, chunk: Chunk) -> list[Alert]:
        """Fold one chunk; what fired and was resolved."""
        folder = Folder(experiment="e", candidate="c", settings=self.settings, state=self.state, seen={})
        folder.fold_chunk(chunk)
        self.state = folder.state_after(self.state.version + 1, {})
        return folder.events


def category(alert: Alert) -> str:
    return BY_NAME[alert.metric].category


def quiet_days(days: int, only: str) -> None:
    """Each day is an experiment of its own: a baseline of 2,000 pairs, then 86,400 records."""
    promised = days * DAY_S / A
    print(
        f"\nfalse alarms, M = {SERIES_FACTOR}, {days} days of {DAY_S:,} records each, after"
        f" a baseline of {SETTINGS.baseline_min_pairs:,} pairs; promised: at most {promised:.1f}"
    )
    different = Mix(difference=1.0)
    swinging = Mix(difference=1.0, swing=0.3)
    for name, mix, resent, learn in (
        ("8 routes alike", Mix(), 0, 2_100),
        ("8 routes that differ", different, 0, 2_100),
        ("faulty prompts resent 5 times", different, 5, 2_100),
        ("day and night routes, 80 : 20 to 20 : 80", swinging, 0, 2_100),
        ("the same, the day after the first day", swinging, 0, DAY_S + 2_100),
        ("48 routes that differ, Zipf", Mix(routes=48, difference=1.0, is_zipf=True), 0, 2_100),
    ):
        if only not in name:
            continue
        alarms: Counter[str] = Counter()
        windows = Windows()
        for day in range(days):
            traffic = Traffic(day, mix, start_s=day * 7919 % DAY_S)
            watch = Watch()
            # Forced scores are on one pair in five: their baseline takes longer, and their day less.
            chunks = [traffic.chunk(learn, resent=resent)]
            for _ in range(PARTS):
                chunks.append(traffic.chunk(DAY_S // PARTS, resent=resent))
            for chunk in chunks:
                alarms.update(category(one) for one in watch.fold(chunk) if one.state == "firing")
            windows.day(chunks)
        total = sum(alarms.values())
        print(
            f"  {name:42s} {total:3d} alarms ({alarms['drift']} drift, {alarms['accounting']} accounting)"
            f"  {verdict(total <= promised)}"
        )
        print(f"  {'':42s} on the same data, a false alarm on so many of {days} days: {windows.told()}")


class Windows:
    """Tests at 5 % over the last hour of the whole experiment, looked at every 5 minutes: what is usual.

    A one-sided z-test of faults and of similarity against the baseline's 2,000 pairs, and the two-sample
    Kolmogorov-Smirnov test (asymptotic critical value) of similarity and latency ratio.
    """

    def __init__(self) -> None:
        self.days: Counter[str] = Counter()

    def day(self, chunks: list[Chunk]) -> None:
        """Test a day, and count which tests raised anything."""
        columns: dict[str, NDArray[np.float64]] = {}
        counted = [chunk.slices["experiment", ""] for chunk in chunks]
        for name in ("regression_rate", "cosine_similarity", "latency_ratio"):
            columns[name] = np.concatenate(
                [chunk.columns[name].x[rows] for chunk, rows in zip(chunks, counted, strict=True)]
            )
        first: set[str] = set()
        bases = {name: np.sort(x[:2_000]) for name, x in columns.items()}
        size = len(columns["regression_rate"])
        for end in range(2_000 + 3_600, size, 300):
            for name, x in columns.items():
                base, last = bases[name], x[end - 3_600 : end]
                if name != "latency_ratio":
                    sign = 1 if name == "regression_rate" else -1
                    spread = math.sqrt(base.var() / base.size + last.var() / last.size)
                    if sign * (last.mean() - base.mean()) > 1.645 * spread:
                        first.add(f"z {name}")
                if name != "regression_rate":
                    last = np.sort(last)
                    both = np.concatenate([base, last])
                    gaps = np.searchsorted(base, both, "right") / base.size
                    gaps -= np.searchsorted(last, both, "right") / last.size
                    limit = 1.358 * math.sqrt(1 / base.size + 1 / last.size)
                    if np.abs(gaps).max() > limit:
                        first.add(f"KS {name}")
        self.days.update(first)

    def told(self) -> str:
        """The counts as words."""
        return ", ".join(f"{name} {count}" for name, count in sorted(self.days.items())) or "none"


def delays(runs: int) -> None:
    print(
        f"\ndelay after a change, medians of {runs} runs ({RATE_RUNS} for rates); A M =", f"{THRESHOLD:,.0f}"
    )
    for declared in (0.0018,):
        for p1 in (0.05, 0.01):
            rate_delay(f"declared p0 = {declared:.2%}", [declared] * RATE_RUNS, p1)
    for p1 in (0.05, 0.01):
        bounds = [learned_rate(seed, 20_000) for seed in range(RATE_RUNS)]
        rate_delay("quiet 0.18 %, bound of 20,000 pairs", bounds, p1)
    alike, differ = Mix(), Mix(difference=1.0)
    for name, metric, change, most in (
        ("similarity 0.92 to 0.85", "cosine_similarity", Change(cosine=0.85), 80),
        ("forced KL times 1.5", "kl_forced", Change(kl=1.5), 350),
        ("latency times 1.3", "latency_ratio", Change(latency=1.3), 300),
    ):
        for routes, mix, learn, count in (
            ("alike, baseline of 2,000 pairs", alike, 2_400, runs),
            ("that differ, of 2,000 pairs", differ, 2_400, runs),
            ("that differ, of the first day", differ, DAY_S + 3_000, runs // 10),
        ):
            found = [first_alarm(seed, metric, change, mix, learn) for seed in range(count)]
            median = float(np.median(found))
            told = f"at most {most}  {verdict(median <= most)}" if mix is alike else "no target"
            seen = "not within 6,000" if median >= NOT_SEEN else f"{median:6.0f}"
            print(f"  {name:24s} routes {routes:31s} {seen} scored pairs, {told}")


NOT_SEEN = 6_000
RATE_RUNS = 401


def learned_rate(seed: int, pairs: int) -> float:
    """The upper bound of a quiet rate of 0.18 % as the program learns it."""
    faults = np.random.default_rng(seed).random(pairs) < 0.0018
    return bound_of("regression_rate", Part(moments_of(faults.astype(np.float64))))


def rate_delay(name: str, bounds: list[float], p1: float) -> None:
    found, limits = [], []
    for seed, p0 in enumerate(bounds):
        faults = (np.random.default_rng(1000 + seed).random(60_000) < p1).astype(np.int64)
        spec = DetectorSpec("regression_rate", p0, THRESHOLD, float(A))
        rows = Rows(faults.astype(np.float64), faults, np.zeros_like(faults), np.arange(faults.size))
        _, turns = advance(spec, fresh(spec), rows)
        found.append(turns[0].row + 1)
        kl = p1 * math.log(p1 / p0) + (1 - p1) * math.log((1 - p1) / (1 - p0))
        limits.append(math.log(THRESHOLD) / kl)
    median, limit = float(np.median(found)), float(np.median(limits))
    print(
        f"  regressions, {name:36s} to {p1:.0%}: {median:6.0f} pairs, ln(A M)/KL = {limit:6.0f},"
        f" ratio {median / limit:.2f}, at most 1.15  {verdict(median <= 1.15 * limit)}"
    )


def first_alarm(seed: int, metric: str, change: Change, mix: Mix, learn: int) -> int:
    """Scored pairs of the whole experiment between a change and the metric's alarm there."""
    traffic, watch = Traffic(seed, mix), Watch()
    every = Change(forced=1.0)
    watch.fold(traffic.chunk(learn, every))
    key = SeriesKey(metric, "experiment", "")
    state = watch.state.series[key].detector
    before = 0 if state is None else state.pairs
    changed = Change(cosine=change.cosine, kl=change.kl, latency=change.latency, forced=1.0)
    for _ in range(20):
        for alert in watch.fold(traffic.chunk(300, changed)):
            if (alert.metric, alert.dimension, alert.state) == (metric, "experiment", "firing"):
                return alert.pairs_folded - before
    return NOT_SEEN


def recovery(runs: int) -> None:
    print(f"\nafter the alarm: a bad hour, then quiet again; pairs until resolved, medians of {runs} runs")
    for name, metric, bad in (
        ("faults 0.2 % to 10 %", "regression_rate", Change(faulty=0.1)),
        ("the same, paired", "candidate_only_excess", Change(faulty=0.1)),
        ("faults 0.2 % to 2 %", "regression_rate", Change(faulty=0.02)),
        ("similarity 0.92 to 0.85", "cosine_similarity", Change(cosine=0.85)),
        ("forced KL times 3", "kl_forced", Change(kl=3.0, forced=1.0)),
        ("latency times 1.3", "latency_ratio", Change(latency=1.3)),
    ):
        found = [back_to_quiet(seed, metric, bad) for seed in range(runs)]
        median = float(np.median([pairs for pairs, _ in found]))
        again = sum(count for _, count in found)
        print(f"  {name:26s} {median:6.0f} pairs; fired again within the next 20,000: {again} of {runs}")
    for name, change in (
        ("stays at 10 %", Change(faulty=0.1)),
        ("half repaired, 10 % to 3 %", Change(faulty=0.03)),
    ):
        ended = 0
        for seed in range(runs):
            traffic, watch = Traffic(seed), Watch(DECLARED)
            watch.fold(traffic.chunk(3_600, Change(faulty=0.1)))
            for _ in range(3):
                ended += count_of(
                    watch.fold(traffic.chunk(DAY_S // 3, change)), "regression_rate", "resolved"
                )
        print(f"  {name:26s} resolved {ended} times in {runs} days, none is right  {verdict(ended == 0)}")


DECLARED = AlertSettings(tolerated_regression_rate=0.005)


def count_of(alerts: Iterable[Alert], metric: str, state: str) -> int:
    return sum((one.metric, one.dimension, one.state) == (metric, "experiment", state) for one in alerts)


def back_to_quiet(seed: int, metric: str, bad: Change) -> tuple[int, int]:
    """Scored pairs from the end of a bad hour to the resolution, and how often it fired after that."""
    traffic, watch = Traffic(seed), Watch()
    forced = Change(forced=bad.forced)
    watch.fold(traffic.chunk(2_400 if bad.forced == 1 else 12_000, forced))
    watch.fold(traffic.chunk(3_600, bad))
    key = SeriesKey(metric, "experiment", "")
    state = watch.state.series[key].detector
    before = 0 if state is None else state.pairs
    resolved, again = 20_000, 0
    for alert in watch.fold(traffic.chunk(20_000, forced)):
        if (alert.metric, alert.dimension) == (metric, "experiment"):
            if alert.state == "resolved":
                resolved = min(resolved, alert.pairs_folded - before)
            else:
                again += 1
    return resolved, again


def outage() -> None:
    print("\nan endpoint away for three hours, of 20 days; its records are `failed(endpoint_away)`")
    for name, share in (("wholly", 0.97), ("every second call", 0.5)):
        counts: Counter[str] = Counter()
        first = []
        for seed in range(20):
            traffic, watch = Traffic(seed), Watch()
            watch.fold(traffic.chunk(12_000))
            events = watch.fold(traffic.chunk(3 * 3_600, Change(away=share)))
            events += watch.fold(traffic.chunk(40_000))
            fired = [one for one in events if one.state == "firing"]
            counts.update(category(one) for one in fired)
            failed = [one for one in fired if one.metric == "failed_rate"]
            first += [one.fired_at.timestamp() - 12_000 for one in failed[:1]]
        print(
            f"  {name:26s} {counts['drift']} drift alerts, {counts['accounting']} accounting ones, the first"
            f" after {np.median(first):.0f} records  {verdict(not counts['drift'])}"
        )


def speed() -> None:
    traffic = Traffic(4)
    chunk = traffic.chunk(50_000)
    values: list[dict[str, str]] = [{} for _ in range(50_000)]
    for (dimension, value), rows in chunk.slices.items():
        for row in rows.tolist():
            values[row][dimension] = value
    pairs = []
    for row in range(50_000):
        inside = values[row]

        def score(name: str, row: int = row) -> float | None:
            column = chunk.columns[name]
            return float(column.x[row]) if column.is_there is None or column.is_there[row] else None

        pair = FoldedPair(
            topic_id="t",
            partition=0,
            offset=row,
            mirrored_ms=row * 1000,
            request_hash=f"{row:032x}",
            slices=tuple(inside.get(name, "") for name in DIMENSIONS[1:]),
            is_counted=bool(inside),
            is_regression=bool(chunk.columns["regression_rate"].x[row]),
            cosine_similarity=score("cosine_similarity"),
            schema_validity=score("schema_validity"),
            top1_agreement_forced=score("top1_agreement_forced"),
            kl_forced=score("kl_forced"),
            latency_ratio=score("latency_ratio"),
        )
        pairs.append((row * 1000, pair))
    rates = []
    for _ in range(3):
        folder = Folder(experiment="e", candidate="c", settings=SETTINGS, state=FoldState(), seen={})
        start = time.process_time()
        folder.fold(pairs, {})
        rates.append(len(pairs) / (time.process_time() - start))
    print(
        f"\nfold speed, best of 3: {max(rates):,.0f} records a second of processor time,"
        f" {SERIES_FACTOR} series each; at least 5,000  {verdict(max(rates) >= 5_000)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="200 days of each traffic, more runs of changes")
    parser.add_argument("--days", type=int, help="quiet days of each traffic")
    parser.add_argument("--only", default="", help="of the quiet traffic, that whose name holds this")
    parser.add_argument("--part", choices=("quiet", "delays", "recovery", "outage", "speed"))
    arguments = parser.parse_args()
    begun = time.process_time()
    days = arguments.days or (200 if arguments.full else 6)
    parts: dict[str, Callable[[], None]] = {
        "delays": partial(delays, 101 if arguments.full else 51),
        "recovery": partial(recovery, 51 if arguments.full else 11),
        "outage": outage,
        "speed": speed,
        "quiet": partial(quiet_days, days, arguments.only),
    }
    for name, part in parts.items():
        if arguments.part in (None, name):
            part()
    print(f"\n{time.process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
