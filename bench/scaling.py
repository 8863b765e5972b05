"""How many machines a traffic takes. Run: python -m bench.scaling (no broker, no models: under a minute)

Two parts. First a service as two queues in a row, the calls that may be in flight and then the comparison, by
closed forms and by simulation in the same run: utilisation, mean wait, 95th percentile of the wait, and the
time that a backlog takes to drain. Then the table of docs/scaling.md from the same stage costs.

Closed forms: Erlang's C with Lee and Longton's factor (1 + cv^2) / 2 for several servers (Operational
Research Quarterly 10, 1959), which for one server is Pollaczek and Khinchine's; the tail of the wait is taken
as exponential (Abate, Choudhury and Whitt, Operations Research Letters 16, 1994), a backlog as a fluid.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What a stage costs, each measured; docs/scaling.md names the bench and the page of each.
PIPELINE_PAIRS = 85.0
"""Pairs a second that a service on two cores takes through all stages, without embeddings."""
PIPELINE_SHARE = 0.63
"""The whole pipeline against its slowest stage alone."""
COMPARED_WITH_EMBEDDINGS = 50.9
"""Pairs a second of the comparison alone, with embeddings, on two cores."""
LEFT_OUT_MS = 0.31
"""Processor ms of one process for a record that is consumed, decoded, left out and accounted for."""
WRITTEN_PAIRS_A_CORE = 1_100.0
"""Pairs a second that a core writes, twelve rows in eight tables, encoding and engine together."""
FOLDED_RECORDS = 50_000.0
"""Records a second that the one watcher of an experiment folds into its detectors."""

VERDICT_S_A_PAIR = 51.5 / 10_000_000
"""Processor seconds of one core that a verdict takes for each stored pair of the experiment."""
PAIRS_DAYS = 400
"""How long pairs are kept by default."""

TOKENS = 200
"""Of an answer."""
METRIC_BYTES = 183.5 + 8.9 + 11.8 + 4.1
"""A pair's metrics, noise pairs and rollups: kept 400 days."""
TEXT_BYTES = 36.9 + 87.8 + 20.4 + 136.0 + 1_020.0
"""Its request, observations, findings, forced pairs, and the three texts: kept 30 days."""
ARRAY_BYTES = 107.0 + 38.5 * 2 * TOKENS
"""Its positions, and both sides' tokens with the first five alternatives: kept 14 days."""
KEPT_ANSWER_BYTES = 175.0 * TOKENS
"""The reference's answer with its whole lists: kept 14 days."""
OUTCOME_BYTES = 17.5
"""Of a record that is not compared: kept 400 days."""

BUSY = 0.7
"""The utilisation that is planned for: a third is left for bursts and for catching up."""
CORES = 2
DAY_S = 86_400
LEAST_PAIRS, MOST_PAIRS = 1, 10_000
"""A second; what lies outside is left out of the table."""
ANSWER_S = 4.0
"""Assumed, not measured: how long an endpoint takes for 200 tokens."""


class Queue(NamedTuple):
    """A stage: `servers` at once; service times are log-normal, `cv` their deviation over their mean."""

    name: str
    servers: int
    mean_s: float
    cv: float

    def utilisation(self, rate: float) -> float:
        """Share of the servers that is busy at `rate` arrivals a second."""
        return rate * self.mean_s / self.servers


class Waits(NamedTuple):
    """Seconds in the queue, the service itself left out."""

    mean_s: float
    p95_s: float


def erlang_c(servers: int, load: float) -> float:
    """The chance that an arrival waits in M/M/c; `load` is rate times mean service time, under `servers`."""
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = load * blocked / (count + load * blocked)
    busy = load / servers
    return blocked / (1 - busy * (1 - blocked))


def closed_form(queue: Queue, rate: float) -> Waits:
    """Mean wait of M/G/c and its 95th percentile. `rate` must keep the utilisation under 1."""
    load = rate * queue.mean_s
    waits = erlang_c(queue.servers, load)
    mean = waits * queue.mean_s / (queue.servers - load) * (1 + queue.cv**2) / 2
    if waits <= 0.05:
        return Waits(mean, 0.0)
    # P(W > t) = waits * exp(-t * waits / mean): the exponential tail that has this mean.
    return Waits(mean, mean / waits * math.log(waits / 0.05))


def service_times(queue: Queue, count: int, rng: np.random.Generator) -> Floats:
    """Log-normal times of this mean and coefficient of variation."""
    sigma = math.sqrt(math.log(1 + queue.cv**2))
    return rng.lognormal(math.log(queue.mean_s) - sigma**2 / 2, sigma, count)


def simulate(queue: Queue, arrivals: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Waits and departures, first come, first served: who is free first takes the next."""
    free = [0.0] * queue.servers
    waits = np.empty_like(arrivals)
    ends = np.empty_like(arrivals)
    times = service_times(queue, len(arrivals), rng).tolist()
    for place, (at, took) in enumerate(zip(arrivals.tolist(), times, strict=True)):
        begin = max(at, free[0])
        heapq.heapreplace(free, begin + took)
        waits[place] = begin - at
        ends[place] = begin + took
    return waits, ends


def drain_seconds(queue: Queue, rate: float, backlog: int, rng: np.random.Generator) -> float:
    """Simulated time until a backlog is gone while new arrivals go on at `rate`."""
    spare = queue.servers / queue.mean_s - rate
    count = int(rate * backlog / spare * 1.5) + 1_000
    arrivals = np.concatenate([np.zeros(backlog), np.cumsum(rng.exponential(1 / rate, count))])
    waits, _ = simulate(queue, arrivals, rng)
    # Gone where the first new arrival finds nobody before it.
    found = np.flatnonzero(waits[backlog:] <= 0)
    return float(arrivals[backlog + found[0]]) if found.size else math.inf


class Size(NamedTuple):
    """What a traffic takes. `verdict_days`: until the verdict of every hour takes an hour of one core."""

    services: int
    partitions: int
    shards: int
    in_flight: int
    day_gb: float
    kept_tb: float
    verdict_days: float
    limit: str


def size(requests: float, fraction: float, *, with_embeddings: bool = False) -> Size:
    """Machines of two cores for `requests` a second of which `fraction` is replayed."""
    pairs = requests * fraction
    one = COMPARED_WITH_EMBEDDINGS * PIPELINE_SHARE if with_embeddings else PIPELINE_PAIRS
    compared = pairs / one
    left_out = (requests - pairs) * LEFT_OUT_MS / 1000
    services = max(1, math.ceil((compared + left_out) / BUSY))
    if pairs > FOLDED_RECORDS * BUSY:
        limit = "the one watcher"
    elif services == 1:
        limit = "one service is enough"
    else:
        limit = "comparison" if compared >= left_out else "reading what is left out"
    outcomes = (requests - pairs) * OUTCOME_BYTES
    arrays = pairs * (ARRAY_BYTES + KEPT_ANSWER_BYTES)
    day_gb = (pairs * (METRIC_BYTES + TEXT_BYTES) + arrays + outcomes) * DAY_S / 1e9
    kept = (pairs * METRIC_BYTES + outcomes) * PAIRS_DAYS + pairs * TEXT_BYTES * 30 + arrays * 14
    return Size(
        services,
        2 * services,
        math.ceil(pairs / (WRITTEN_PAIRS_A_CORE * CORES) / BUSY),
        math.ceil(pairs * ANSWER_S),
        day_gb,
        kept * DAY_S / 1e12,
        3_600 / (pairs * DAY_S * VERDICT_S_A_PAIR),
        limit,
    )


def show_queues() -> None:
    """Print the closed forms beside the simulation."""
    rng = np.random.default_rng(7)
    print("a service: calls in flight (4 s an answer, cv 0.5), then the comparison (1/85 s, cv 0.3)")
    print(f"{'stage':<12}{'busy':>6}{'mean wait s':>14}{'simulated':>11}{'p95 s':>10}{'simulated':>11}")
    comparison = Queue("comparison", 1, 1 / PIPELINE_PAIRS, 0.3)
    for busy in (0.5, 0.7, 0.85, 0.95):
        rate = busy * PIPELINE_PAIRS
        calls = Queue("calls", math.ceil(rate * ANSWER_S / busy), ANSWER_S, 0.5)
        arrivals = np.cumsum(rng.exponential(1 / rate, 400_000))
        for queue in (calls, comparison):
            closed = closed_form(queue, rate)
            waits, ends = simulate(queue, arrivals, rng)
            settled = waits[len(waits) // 10 :]
            seen = Waits(float(settled.mean()), float(np.quantile(settled, 0.95)))
            print(
                f"{queue.name:<12}{queue.utilisation(rate):>6.0%}{closed.mean_s:>14.4f}{seen.mean_s:>11.4f}"
                f"{closed.p95_s:>10.4f}{seen.p95_s:>11.4f}"
            )
            arrivals = np.sort(ends)
    print()
    print("an hour's outage: what waits then, and until it is gone")
    print(f"{'busy':>6}{'backlog':>10}{'closed s':>10}{'simulated s':>13}")
    for busy in (0.5, 0.7, 0.85):
        rate = busy * PIPELINE_PAIRS
        backlog = int(rate * 3600)
        closed_s = backlog / (PIPELINE_PAIRS - rate)
        seen_s = drain_seconds(comparison, rate, backlog, rng)
        print(f"{busy:>6.0%}{backlog:>10,}{closed_s:>10,.0f}{seen_s:>13,.0f}")


HEADS = (
    "requests/s",
    "replayed",
    "pairs/s",
    "services",
    "with embeddings",
    "partitions",
    "store shards",
    "answers in flight",
    "GB a day",
    "TB kept",
    "verdict takes an hour after",
    "first limit",
)


def show_sizes() -> None:
    """Print the table of docs/scaling.md."""
    print()
    print("| " + " | ".join(HEADS) + " |")
    print("| --- " * len(HEADS) + "|")
    for requests in (10, 100, 1_000, 10_000, 100_000):
        for fraction in (1.0, 0.1, 0.01, 0.001):
            pairs = requests * fraction
            if not LEAST_PAIRS <= pairs <= MOST_PAIRS:
                continue
            one = size(requests, fraction)
            cells = (
                f"{requests:,}",
                f"{fraction * 100:g} %",
                f"{pairs:,.10g}",
                f"{one.services:,}",
                f"{size(requests, fraction, with_embeddings=True).services:,}",
                f"{one.partitions:,}",
                f"{one.shards:,}",
                f"{one.in_flight:,}",
                f"{one.day_gb:,.1f}",
                f"{one.kept_tb:,.1f}",
                "never" if one.verdict_days > PAIRS_DAYS else f"{one.verdict_days:,.3g} days",
                one.limit,
            )
            print("| " + " | ".join(cells) + " |")


def main() -> None:
    """Both parts."""
    show_queues()
    show_sizes()


if __name__ == "__main__":
    main()
