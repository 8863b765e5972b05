"""The store at 10 million pairs a day. Run: python -m bench.store [--pairs N] [--memory MIB]

Prints, of synthetic pairs of one day: rows a second into `pairs` by columns, beside Python rows and beside
the encoding alone; bytes a pair on disk, by column, and of texts; the day's rollups from nothing, after a
minute's new pairs, and with nothing new: seconds, processor seconds and the process's largest memory; and
queries as dashboards ask them, four at once, from rollups and from the raw view: p50 and p95. What an insert
spends its time on: `python -m bench.insert`.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np

from bench.synthetic_pairs import answer_columns, pair_columns
from compare.rollups.rebuild import Rollups
from compare.store import Store, migrate, open_store
from compare.store.native_block import native_block
from ingest.settings import StoreSettings

BLOCK = 100_000
DAY_S = 86_400.0
START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
RANGE = f"'{START - timedelta(days=1):%F %T}'", f"'{START + timedelta(days=2):%F %T}'"

QUERIES = {
    "totals": (
        "SELECT sum(pairs), sum(regressions) FROM rollup_hourly_v1 WHERE dimension = 'all'",
        "SELECT count(), countIf(is_regression) FROM pairs_v1",
    ),
    "regression rate by hour": (
        "SELECT hour, sum(counted_regressions) / sum(counted_pairs) FROM rollup_hourly_v1"
        " WHERE dimension = 'all' AND experiment = 'nightly' GROUP BY hour ORDER BY hour",
        "SELECT toStartOfHour(mirrored_at) AS hour, countIf(is_regression) / count() FROM pairs_v1"
        " WHERE experiment = 'nightly' GROUP BY hour ORDER BY hour",
    ),
    "p99 KL by model": (
        f"SELECT value, kl_forced_mean_nats_p99 FROM rollup_range_v1(start = {RANGE[0]}, end = {RANGE[1]},"
        " dimension = 'served_model') WHERE experiment = 'nightly'",
        "SELECT served_model, quantile(0.99)(kl_forced_mean_nats) FROM pairs_v1"
        " WHERE experiment = 'nightly' GROUP BY served_model",
    ),
    "200 tenants by regressions": (
        "SELECT value, sum(regressions) AS bad FROM rollup_hourly_v1 WHERE dimension = 'tenant'"
        " GROUP BY value ORDER BY bad DESC LIMIT 20",
        "SELECT tenant, countIf(is_regression) AS bad FROM pairs_v1 GROUP BY tenant"
        " ORDER BY bad DESC LIMIT 20",
    ),
    "verdicts by minute": (
        "SELECT minute, reason, sum(records) FROM rollup_minutes_v1 GROUP BY minute, reason",
        "SELECT toStartOfMinute(ingested_at) AS minute, verdict, count() FROM pairs_v1"
        " GROUP BY minute, verdict",
    ),
}


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Peak:
    """The largest resident memory of this process since `reset`, in MiB, looked at 20 times a second."""

    def __init__(self) -> None:
        self.mib = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            with open("/proc/self/statm", encoding="ascii") as file:
                pages = int(file.read().split()[1])
            self.mib = max(self.mib, pages * resource.getpagesize() // 2**20)
            time.sleep(0.05)


@contextmanager
def timed(what: str, peak: Peak) -> Iterator[None]:
    peak.mib = 0
    began, used = time.perf_counter(), processor_s()
    yield
    time.sleep(0.06)
    print(
        f"  {what}: {time.perf_counter() - began:.1f} s, {processor_s() - used:.1f} processor s,"
        f" {peak.mib:,} MiB at most",
        flush=True,
    )


def fill(store: Store, pairs: int) -> None:
    types = {str(row[0]): str(row[1]) for row in store.query("DESCRIBE TABLE pairs")}
    wall = cpu = encoding = 0.0
    for first in range(0, pairs, BLOCK):
        count = min(BLOCK, pairs - first)
        seconds = DAY_S * count / pairs
        columns = pair_columns(first, count, START + timedelta(seconds=DAY_S * first / pairs), seconds)
        used = time.process_time()
        native_block(columns, types, count)
        encoding += time.process_time() - used
        began, used = time.perf_counter(), processor_s()
        store.insert_columns("pairs", columns, dedup_token=f"bench {first}")
        wall += time.perf_counter() - began
        cpu += processor_s() - used
    store.command("CREATE TABLE aside AS pairs")
    names = [name for name in types if name not in ("unscored", "changes")]
    rows = store.query(f"SELECT {', '.join(f'`{name}`' for name in names)} FROM pairs LIMIT 10000").rows
    used = processor_s()
    store.insert("aside", names, rows)
    slow = len(rows) / (processor_s() - used)
    store.command("DROP TABLE aside SYNC")
    print(
        f"insert by columns: {pairs / wall:,.0f} rows/s, {pairs / cpu:,.0f} a processor second (merges in the"
        f" background counted); encoding alone {pairs / encoding:,.0f}; Python rows {slow:,.0f}:"
        f" {pairs / cpu / slow:.1f} times as fast"
    )


def sizes(store: Store) -> None:
    ((size, raw, rows),) = store.query(
        "SELECT sum(bytes_on_disk), sum(data_uncompressed_bytes), sum(rows) FROM system.parts"
        " WHERE database = currentDatabase() AND table = 'pairs' AND active"
    )
    print(f"metrics: {size / rows:.1f} bytes a pair on disk, {raw / rows:.1f} uncompressed; most of it:")
    for name, part in store.query(
        "SELECT column, sum(column_data_compressed_bytes) FROM system.parts_columns WHERE active"
        " AND database = currentDatabase() AND table = 'pairs' GROUP BY column ORDER BY 2 DESC LIMIT 10"
    ):
        print(f"  {name}: {part / rows:.2f}")
    count = 20_000
    columns = answer_columns(0, count, START)
    store.insert_columns("observations", columns)
    ((text,),) = store.query(
        "SELECT sum(column_data_compressed_bytes) FROM system.parts_columns WHERE active"
        " AND database = currentDatabase() AND table = 'observations' AND column = 'text'"
    )
    plain = sum(map(len, columns["text"])) / count
    print(f"texts: {text / count:.0f} bytes an answer on disk, {plain:.0f} as it came")


def rollups(store: Store, settings: StoreSettings, pairs: int, peak: Peak) -> None:
    job = Rollups(store, settings)
    print(f"rollups of one day of {pairs:,} pairs, engine's limit {settings.max_memory_bytes // 2**20} MiB:")
    with timed("from nothing", peak):
        job.rebuild_touched()
    minute = max(pairs // 1440, 1)
    late = pair_columns(2 * pairs, minute, START + timedelta(seconds=DAY_S - 60), 60)
    store.insert_columns("pairs", late)
    with timed(f"{minute:,} pairs more, in one hour", peak):
        job.rebuild_touched()
    with timed("nothing new", peak):
        job.rebuild_touched()
    for table, size, rows in store.query(
        "SELECT table, sum(bytes_on_disk), sum(rows) FROM system.parts WHERE active"
        " AND database = currentDatabase() AND startsWith(table, 'rollup') GROUP BY table ORDER BY table"
    ):
        print(f"  {table}: {size / 2**20:.1f} MiB, {rows:,} rows")


def queries(store: Store, rounds: int) -> None:
    print(f"queries, four at once, {rounds} rounds of each (p50 / p95 in ms):")
    stores = [store.another() for _ in range(4)]

    def ask(one: Store, sql: str) -> list[float]:
        took = []
        for _ in range(rounds):
            began = time.perf_counter()
            one.query(sql)
            took.append((time.perf_counter() - began) * 1000)
        return took

    def four(sql: str) -> str:
        with ThreadPoolExecutor(4) as pool:
            took = [ms for many in pool.map(lambda one: ask(one, sql), stores) for ms in many]
        return f"{np.percentile(took, 50):,.0f} / {np.percentile(took, 95):,.0f}"

    for name, (rolled, raw) in QUERIES.items():
        print(f"  {name}: rollups {four(rolled)}, raw {four(raw)}", flush=True)
    for one in stores:
        one.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=1024, help="MiB, the engine's limit")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    peak = Peak()
    folder = tempfile.mkdtemp(prefix="gnomon-bench-")
    settings = StoreSettings(url=f"chdb://{folder}", max_memory_bytes=given.memory * 2**20)
    steps: list[Callable[[Store], None]] = [
        lambda store: fill(store, given.pairs),
        sizes,
        lambda store: rollups(store, settings, given.pairs, peak),
        lambda store: queries(store, given.rounds),
    ]
    try:
        with open_store(settings, role="owner") as store:
            migrate.apply(store)
            for step in steps:
                step(store)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
