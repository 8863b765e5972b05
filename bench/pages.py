"""The explorer's page and dashboards' queries over many pairs, four users at once.

Run: python -m bench.pages [--pairs N] [--store FOLDER] [--fill]. A store is filled for the run, or one that
is filled already is read (--store; it is kept, and with --fill made first). Users are threads of a process of
their own, each with its handle, over the loopback port with the reader's token, as the explorer's sessions
are; beside them, so that figures lag as they do, the last minute's pairs are not in the rollups.

Prints for each step of the page, for the page whole, and for each recipe and query of a dashboard: p50 and
p95 in milliseconds beside the limit, and the processor milliseconds that one took, readers and engine added.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypeVar

import numpy as np

from bench.store import DAY_S, QUERIES, START, fill, processor_s
from bench.synthetic_pairs import pair_columns
from bench.synthetic_sides import RANGES, fill_sides
from compare.recipes import shipped_recipes
from compare.rollups.rebuild import Rollups
from compare.ship.model import Terms
from compare.store import Store, migrate, open_store
from dashboards.questions import overview, pair, pairs, summary
from dashboards.questions.accounts import Accounts, lag
from ingest.settings import StoreSettings

LIMIT_MS = 1_000
RECIPES = ("hourly_rates", "worst_slices", "records_by_minute")
"""Recipes that read the rollups: a dashboard's panels."""

Took = dict[str, list[float]]
T = TypeVar("T")
ACCOUNTS = Accounts()


def ask_page(store: Store, took: Took) -> None:
    """Everything that one visit of the page asks, then what a visitor does next."""
    began = time.perf_counter()

    def timed(name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        answer = work()
        took[name].append((time.perf_counter() - start) * 1000)
        return answer

    known = timed("experiments", lambda: summary.experiments(store))
    largest = known.iloc[known["pairs"].astype("int64").argmax()]
    series = timed("up to when", lambda: summary.series_of(store, largest))
    began_overview = time.perf_counter()
    timed("firing alerts", lambda: overview.firing(store, series))
    timed("verdict", lambda: overview.verdict(store, series, Terms(margin=overview.DEFAULT_MARGIN)))
    timed("figures", lambda: summary.summary(store, series))
    timed("quantiles", lambda: summary.quantiles(store, series))
    timed("what served", lambda: overview.served_changes(store, series))
    timed("accounting", lambda: ACCOUNTS.of(store, series))
    timed("lag", lambda: lag(store, series))
    took["OVERVIEW"].append((time.perf_counter() - began_overview) * 1000)
    known_values = timed("choices", lambda: pairs.choices(store, series))
    everything = pairs.PairFilter()
    first = timed("list", lambda: pairs.page(store, series, everything))
    timed("list, next page", lambda: pairs.page(store, series, everything, "worst", first.behind))
    narrow = pairs.PairFilter(
        verdicts=("candidate_worse",),
        routes=tuple(known_values["route"][:2]),
        families=tuple(known_values["family"][:1]),
    )
    timed("list, narrowed", lambda: pairs.page(store, series, narrow))
    took["WITH THE LIST"].append((time.perf_counter() - began) * 1000)
    row = first.rows.iloc[0]
    key = pair.PairKey(
        series.experiment,
        series.candidate,
        str(row["topic_id"]),
        int(row["partition"]),
        int(row["offset"]),
    )
    began = time.perf_counter()
    found = pair.pair(store, key)
    day = found["ingested_at"].iloc[0].date()
    for one in (pair.answers, pair.findings, pair.positions, pair.request, pair.tokens, pair.forced):
        one(store, key, day)
    took["one pair"].append((time.perf_counter() - began) * 1000)


def ask_dashboard(store: Store, took: Took) -> None:
    """What panels ask of the rollups, by recipe and by hand."""
    recipes = shipped_recipes()
    for name, sql, parameters in (
        *((f"@{name}", recipes[name].statement, recipes[name].bind({"days": "3"})) for name in RECIPES),
        *((f"rollups: {name}", rolled, {}) for name, (rolled, _) in QUERIES.items()),
    ):
        start = time.perf_counter()
        store.query(sql, parameters)
        took[name].append((time.perf_counter() - start) * 1000)


def users(url: str, what: str, rounds: int, at_once: int) -> None:
    """What the readers' process does: prints its times and processor seconds as JSON."""
    with open_store(StoreSettings(url=url), role="reader") as store:
        stores = [store.another() for _ in range(at_once)]
        ask = {"page": ask_page, "dashboard": ask_dashboard}[what]
        ask(stores[0], defaultdict(list))
        used = processor_s()

        def visit(one: Store) -> Took:
            took: Took = defaultdict(list)
            for _ in range(rounds):
                ask(one, took)
            return took

        with ThreadPoolExecutor(at_once) as pool:
            all_took = list(pool.map(visit, stores))
        used = processor_s() - used
        for one in stores:
            one.close()
    merged = {name: [ms for took in all_took for ms in took[name]] for name in all_took[0]}
    print(json.dumps({"took": merged, "processor_s": used}))


def measure(settings: StoreSettings, what: str, given: argparse.Namespace) -> None:
    """Run the users beside this process, which serves them, and print what they saw."""
    command = [sys.executable, "-m", "bench.pages", "--as-users", what, "--store", settings.url]
    command += ["--rounds", str(given.rounds), "--at-once", str(given.at_once)]
    used = processor_s()
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = json.loads(child.stdout)
    used = processor_s() - used + seen["processor_s"]
    visits = given.rounds * given.at_once
    print(f"{what}, {given.at_once} users at once, {visits} visits (p50 / p95 in ms, limit {LIMIT_MS}):")
    for name, took in seen["took"].items():
        p50, p95 = np.percentile(took, [50, 95])
        print(f"  {name}: {p50:,.0f} / {p95:,.0f} ({p95 / LIMIT_MS:.2f} of the limit)")
    print(f"  processor ms a visit, all steps: {used / visits * 1000:,.0f}", flush=True)


def fill_store(store: Store, settings: StoreSettings, pairs: int) -> None:
    """A day of pairs with all that stands beside them, rolled up, and a minute more that is not."""
    fill(store, pairs)
    fill_sides(store, START)
    Rollups(store, settings).rebuild_touched()
    add_a_minute(store, pairs)


def add_a_minute(store: Store, pairs: int) -> None:
    """Pairs that came after the rollups were made."""
    ((last,),) = store.query("SELECT max(ingested_at) FROM pairs").rows
    assert isinstance(last, datetime)
    count = max(pairs // 1440, 1)
    late = pair_columns(2 * pairs, count, last + timedelta(seconds=1), DAY_S / 1440)
    store.insert_columns("pairs", late, dedup_token=f"a minute after {last}")
    for statement in RANGES:
        store.command(f"{statement} SETTINGS max_threads = 1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=1024, help="MiB, the engine's limit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--store", help="a folder that is filled already; it is kept")
    parser.add_argument("--fill", action="store_true", help="fill the folder of --store first")
    parser.add_argument("--as-users", choices=["page", "dashboard"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_users:
        users(given.store, given.as_users, given.rounds, given.at_once)
        return
    folder = os.path.abspath(given.store) if given.store else tempfile.mkdtemp(prefix="gnomon-bench-")
    settings = StoreSettings(url=f"chdb://{folder}", max_memory_bytes=given.memory * 2**20)
    try:
        with open_store(settings, role="owner") as store:
            migrate.apply(store)
            if given.fill or not given.store:
                fill_store(store, settings, given.pairs)
            for what in ("page", "dashboard"):
                measure(settings, what, given)
    finally:
        if not given.store:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
