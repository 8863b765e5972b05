"""The ship rule's bound beside its promise and a fixed-n interval. Run: python -m bench.verdict [--pairs N]

Prints, by simulation: the share of streams whose interval ever misses the true excess when it is looked at
after every pair, beside the promised error and beside Newcombe's fixed-n interval under the same looks; the
width of both by counts; pairs until ship and until hold at typical rates, beside the estimate made early and
the least that any test could need; with `--pairs N`, the time and memory of counting N pairs in the store.
"""

from __future__ import annotations

import argparse
import math
import resource
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from compare.ship.bounds import STAKES, Counts, interval, pairs_needed

Floats = NDArray[np.float64]
FRACTIONS: Floats = (np.arange(1, STAKES + 1) / STAKES) ** 3
ERROR = 0.05


def draw(more: float, less: float, pairs: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return x of each pair: 1 with chance `more`, -1 with `less`, else 0."""
    u = rng.random(pairs)
    x: NDArray[np.int8] = (u < more).astype("i1") - ((u >= more) & (u < more + less)).astype("i1")
    return x


def log_wealth_path(x: NDArray[np.int8], m: float, start: Floats | None = None) -> Floats:
    """The logarithm of the mean wealth against "the excess is at least m" after every pair.

    Pair by pair from the definition: `compare.ship.bounds` goes by counts.
    """
    with np.errstate(divide="ignore"):
        steps = np.log1p(-FRACTIONS * (np.array([[-1.0], [0.0], [1.0]]) - m) / (1.0 - m))
    path = np.cumsum(steps[x + 1], axis=0)
    if start is not None:
        path += start
    top = path.max(axis=1)
    return np.asarray(top + np.log(np.exp(path - top[:, None]).mean(axis=1)))


def start_of(counts: Counts, m: float) -> Floats:
    """The logarithm of each stake's wealth after these counts."""
    with np.errstate(divide="ignore"):
        steps = np.log1p(-FRACTIONS * (np.array([[-1.0], [0.0], [1.0]]) - m) / (1.0 - m))
    times = np.array([counts.reference_only, counts.neither, counts.candidate_only])
    return np.asarray(sum(n * step for n, step in zip(times, steps, strict=True) if n))


def newcombe_bounds(more: Floats, less: Floats, pairs: Floats, error: float) -> tuple[Floats, Floats]:
    """Newcombe's hybrid score interval for paired proportions (1998, method 8), both marginals apart."""
    z = float(norm.ppf(1 - error / 2))

    def wilson(k: Floats) -> tuple[Floats, Floats, Floats]:
        p = k / pairs
        middle = (p + z * z / (2 * pairs)) / (1 + z * z / pairs)
        half = z * np.sqrt(p * (1 - p) / pairs + z * z / (4 * pairs * pairs)) / (1 + z * z / pairs)
        return p, middle - half, middle + half

    p, p_low, p_high = wilson(more)
    q, q_low, q_high = wilson(less)
    low = (p - q) - np.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)
    high = (p - q) + np.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
    return low, high


def newcombe_width(counts: Counts, error: float) -> float:
    """The width of the fixed-n interval."""
    low, high = newcombe_bounds(
        np.array([float(counts.candidate_only)]),
        np.array([float(counts.reference_only)]),
        np.array([float(counts.pairs)]),
        error,
    )
    return float((high - low)[0])


def first_misses(
    more: float, less: float, *, pairs: int, streams: int, error: float, seed: int
) -> tuple[int, int]:
    """Streams whose interval, looked at after every pair, ever misses the true excess: ours, Newcombe's."""
    rng = np.random.default_rng(seed)
    truth, target = more - less, math.log(2 / error)
    ours = fixed = 0
    numbers = np.arange(1, pairs + 1, dtype=float)
    for _ in range(streams):
        x = draw(more, less, pairs, rng)
        ours += bool(
            (log_wealth_path(x, truth) >= target).any() or (log_wealth_path(-x, -truth) >= target).any()
        )
        low, high = newcombe_bounds(np.cumsum(x == 1) * 1.0, np.cumsum(x == -1) * 1.0, numbers, error)
        fixed += bool(((low > truth) | (high < truth)).any())
    return ours, fixed


def stopping_times(
    seen: Counts, more: float, less: float, *, margin: float, error: float, streams: int, most: int, seed: int
) -> NDArray[np.int64]:
    """Further pairs until a bound passes the margin, from the counts `seen` on; `most` where none does."""
    rng = np.random.default_rng(seed)
    target = math.log(2 / error)
    up, down = (
        start_of(seen, margin),
        start_of(Counts(seen.reference_only, seen.candidate_only, seen.neither), -margin),
    )
    times = []
    block = 20_000
    for _ in range(streams):
        high, low, done = up, down, 0
        while done < most:
            x = draw(more, less, min(block, most - done), rng)
            passed = (log_wealth_path(x, margin, high) >= target) | (
                log_wealth_path(-x, -margin, low) >= target
            )
            if passed.any():
                done += int(passed.argmax()) + 1
                break
            part = Counts(int((x == 1).sum()), int((x == -1).sum()), int((x == 0).sum()))
            high = high + start_of(part, margin)
            low = low + start_of(Counts(part.reference_only, part.candidate_only, part.neither), -margin)
            done += len(x)
        times.append(done)
    return np.array(times)


def coverage() -> None:
    print(f"Looked at after every one of 5,000 pairs, 400 streams; promised error {ERROR:.0%}")
    print(f"{'only candidate':>15} {'only reference':>15} {'ever missed':>12} {'Newcombe, same looks':>21}")
    for more, less in ((0.001, 0.001), (0.01, 0.01), (0.05, 0.02), (0.2, 0.2)):
        ours, fixed = first_misses(more, less, pairs=5_000, streams=400, error=ERROR, seed=1)
        print(f"{more:15.1%} {less:15.1%} {ours / 400:12.1%} {fixed / 400:21.1%}")


def widths() -> None:
    print("\nWidth of the interval over Newcombe's fixed-n one, both 95 %")
    rates = ((0.0, 0.0), (0.002, 0.001), (0.005, 0.005), (0.03, 0.01), (0.1, 0.1))
    print(f"{'pairs':>11} " + " ".join(f"{f'{more:.1%}/{less:.1%}':>11}" for more, less in rates))
    for pairs in (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000):
        ratios = []
        for more, less in rates:
            counts = Counts(round(more * pairs), round(less * pairs), 0)
            counts = Counts(counts.candidate_only, counts.reference_only, pairs - counts.pairs)
            low, high = interval(counts, ERROR)
            ratios.append((high - low) / newcombe_width(counts, ERROR))
        print(f"{pairs:11,} " + " ".join(f"{ratio:11.2f}" for ratio in ratios))


def pairs_until_decided() -> None:
    print("\nPairs until a bound passes the margin: 100 streams; the estimate is made at the true rates")
    print(f"{'candidate':>10} {'reference':>10} {'margin':>7} {'towards':>8} {'estimate':>9} {'median':>8}"
          f" {'p90':>8} {'one look':>9}")  # fmt: skip
    z = float(norm.ppf(1 - ERROR / 2))
    for more, less, margin in (
        (0.0, 0.0, 0.005),
        (0.001, 0.001, 0.005),
        (0.01, 0.01, 0.005),
        (0.02, 0.018, 0.005),
        (0.03, 0.01, 0.005),
        (0.08, 0.01, 0.005),
    ):
        unit = Counts(round(more * 10_000), round(less * 10_000), 10_000 - round((more + less) * 10_000))
        # From one ten-thousandth of a pair on, as it were: an estimate before anything is seen.
        total = estimate_from_nothing(unit, margin)
        times = stopping_times(
            Counts(), more, less, margin=margin, error=ERROR, streams=100, most=20 * total, seed=2
        )
        excess = more - less
        variance = more + less - excess**2
        one_look = z * z * variance / (margin - excess) ** 2 if variance else math.log(2 / ERROR) / margin
        print(
            f"{more:10.1%} {less:10.1%} {margin:7.1%} {'ship' if excess < margin else 'hold':>8} {total:9,}"
            f" {int(np.median(times)):8,} {int(np.quantile(times, 0.9)):8,} {int(one_look):9,}"
        )


def estimate_from_nothing(rates: Counts, margin: float) -> int:
    """Pairs in all until a bound passes, at these rates (counts of 10,000 pairs)."""
    divisor = 1
    while True:
        part = Counts(
            rates.candidate_only // divisor, rates.reference_only // divisor, rates.neither // divisor
        )
        needed = pairs_needed(part, margin, ERROR)
        if needed is None:
            return part.pairs
        if needed > 0 or part.pairs < 100:
            return part.pairs + needed
        divisor *= 2


def counting(pairs: int) -> None:
    from bench.synthetic_pairs import PARTITIONS, pair_columns
    from compare.ship.model import Terms
    from compare.ship.read import read_verdict
    from compare.ship.read_counts import read_classes, read_tally
    from compare.ship.scope import find_scope
    from compare.store import migrate, open_store
    from ingest.settings import StoreSettings

    folder = tempfile.mkdtemp()
    days, block = 10, 100_000
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days + 1)
    try:
        with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as store:
            migrate.apply(store)
            span = days * 86_400.0
            for first in range(0, pairs, block):
                count = min(block, pairs - first)
                columns = pair_columns(
                    first, count, start + timedelta(seconds=span * first / pairs), span * count / pairs
                )
                columns["experiment"] = columns["topic"]
                store.insert_columns("pairs", columns)
            store.insert(
                "delivered_ranges",
                ("experiment", "consumer_group", "topic", "topic_id", "partition", "first_offset",
                 "end_offset", "records", "ingested_at", "version"),
                [
                    ("gnomon.mirror", "g", "gnomon.mirror", "6f9619ff-8b86-d011-b42d-00c04fc964ff", partition,
                     0, pairs, pairs // PARTITIONS, start, 1)
                    for partition in range(PARTITIONS)
                ],
            )  # fmt: skip
            held = _resident_mib()
            wall, used = time.perf_counter(), time.process_time()
            scope = find_scope(store, "gnomon.mirror", None, None, None)
            classes = read_classes(store, scope)
            tally = read_tally(store, scope, classes)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            counted = time.process_time() - used
            print(
                f"\nCounting {pairs:,} stored pairs ({tally.whole.pairs:,} counted,"
                f" {len(tally.slices)} slices):"
                f" {time.perf_counter() - wall:.1f} s, {counted:.1f} processor seconds,"
                f" peak of the process with the engine, inserts included, {peak} MiB ({held} MiB before)"
            )
            used = time.process_time()
            verdict = read_verdict(store, "gnomon.mirror", None, Terms(0.005))
            print(
                f"The whole verdict ({verdict.decision}): {time.process_time() - used:.1f} processor seconds"
            )
    finally:
        shutil.rmtree(folder)


def _resident_mib() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 2**20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1_000_000)
    arguments = parser.parse_args()
    coverage()
    widths()
    pairs_until_decided()
    if arguments.pairs:
        counting(arguments.pairs)


if __name__ == "__main__":
    main()
