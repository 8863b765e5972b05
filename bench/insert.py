"""How fast metric rows are stored. Run: python -m bench.insert [--rows N] [--rounds N] [--memory MIB]

Prints rows a second, by the clock and of a processor second, each beside the engine's own limit in the same
run: the engine alone (from its own memory into the table), a block handed over to no table, numpy columns by
one connection and by two, a narrow table of 20 columns, Python values, and whole batches by the writer.
Merges of the tables beside `pairs` are stopped.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from bench.synthetic_pairs import pair_columns
from compare.rows import rows_of
from compare.store import Store, migrate, open_store
from compare.store.native_block import native_block
from compare.store.native_columns import Column
from compare.writer import Part, Writer
from ingest.settings import StoreSettings
from tests.compare import batches

BLOCK = 100_000
BATCH = 2_000
DAY_S = 86_400.0
NARROW = (
    "experiment",
    "candidate",
    "topic_id",
    "partition",
    "offset",
    "mirrored_at",
    "ingested_at",
    "tenant",
    "route",
    "served_model",
    "verdict",
    "is_regression",
    "kl_prefix_mean_nats",
    "kl_forced_mean_nats",
    "edit_similarity",
    "cosine_similarity",
    "reference_total_ms",
    "candidate_total_ms",
    "latency_ratio",
    "version",
)

Blocks = list[dict[str, Column]]


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Limit:
    """Times ways of storing `rows` rows, against the first."""

    def __init__(self, store: Store, rounds: int) -> None:
        self._store = store
        self._rounds = rounds
        self._first: tuple[float, float] | None = None

    def time(self, what: str, rows: int, work: Callable[[], object], *emptied: str) -> None:
        """The tables in `emptied` are emptied before each round. `work` may use both cores."""
        took = []
        for _ in range(self._rounds):
            for name in emptied:
                self._store.command(f"TRUNCATE TABLE {name}")
            began, used = time.perf_counter(), processor_s()
            work()
            took.append((processor_s() - used, time.perf_counter() - began))
        rates = rows / min(cpu for cpu, _ in took), rows / min(wall for _, wall in took)
        self._first = self._first or rates
        shares = [rate / limit for rate, limit in zip(rates, self._first, strict=True)]
        print(
            f"  {what}: {rates[0]:,.0f} a processor second ({shares[0]:.2f} of the engine),"
            f" {rates[1]:,.0f} by the clock ({shares[1]:.2f})",
            flush=True,
        )


def rates(store: Store, rows: int, rounds: int) -> None:
    """Prints all of them; leaves the tables as empty as they were."""
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    blocks = [
        pair_columns(first, BLOCK, start + timedelta(seconds=DAY_S * first / rows), DAY_S * BLOCK / rows)
        for first in range(0, rows, BLOCK)
    ]
    limit = Limit(store, rounds)
    print(f"insert, {rows:,} rows in blocks of {BLOCK:,}; of {rounds} rounds the best:")
    with table(store, "aside"):
        by_columns(store, blocks, limit)
        narrow = [{name: block[name] for name in NARROW} for block in blocks]
        with table(store, "narrow", "ReplacingMergeTree(version)", NARROW):
            limit.time(f"{len(NARROW)} columns", rows, lambda: insert(store, "narrow", narrow), "narrow")
        by_values(store, limit)


def by_columns(store: Store, blocks: Blocks, limit: Limit) -> None:
    rows, other = len(blocks) * BLOCK, store.another()
    types = types_of(store)
    with table(store, "memory", "Memory"):
        insert(store, "memory", blocks)
        limit.time("the engine alone", rows, lambda: store.command(from_memory(1)), "aside")
        limit.time("the engine alone, two threads", rows, lambda: store.command(from_memory(2)), "aside")
    limit.time("encoding", rows, lambda: [native_block(block, types, BLOCK) for block in blocks])
    with table(store, "nowhere", "Null"):
        limit.time("encoding and parsing", rows, lambda: insert(store, "nowhere", blocks))
    limit.time("insert_columns", rows, lambda: insert(store, "aside", blocks), "aside")

    def by_two() -> None:
        with ThreadPoolExecutor(2) as pool:
            halves = pool.map(insert, (store, other), ("aside", "aside"), (blocks[::2], blocks[1::2]))
            list(halves)

    limit.time("insert_columns, two connections", rows, by_two, "aside")
    other.close()


def by_values(store: Store, limit: Limit) -> None:
    """Pairs as the pipeline has them; the writer fills their side tables too."""
    at = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
    requests = [batches.mirrored(n, position=batches.position(n, topic_id=at)) for n in range(BATCH)]
    batch = batches.batch(*(batches.compared(n, request=one) for n, one in enumerate(requests)))
    made = rows_of(batch)
    part, types = Part.of("pairs", made["pairs"]), types_of(store)

    def insert_values() -> None:
        store.insert_columns("aside", part.columns, dedup_token=token())

    limit.time("Python values: encoding", BATCH, lambda: native_block(part.columns, types, BATCH))
    limit.time(f"Python values: insert_columns of {BATCH:,}", BATCH, insert_values, "aside")
    limit.time("rows of compared pairs, all tables", BATCH, lambda: rows_of(batch))
    writer, rows = Writer(store, threading.Event()), sum(len(table.rows) for table in made.values())
    limit.time(
        f"Writer.write of {BATCH:,} pairs, {rows / BATCH:.0f} rows each",
        BATCH,
        lambda: writer.write(batch),
        *made,
    )


def from_memory(threads: int) -> str:
    return (
        "INSERT INTO aside SELECT * FROM memory SETTINGS optimize_on_insert = 0, insert_deduplicate = 0,"
        f" max_threads = {threads}, max_insert_threads = {threads}, max_block_size = {BLOCK},"
        f" min_insert_block_size_rows = {BLOCK}, min_insert_block_size_bytes = 0"
    )


@contextmanager
def table(store: Store, name: str, engine: str = "", columns: Sequence[str] = ()) -> Iterator[None]:
    """A table like `pairs`, or of some of its columns or with another engine; it merges nothing."""
    ((made,),) = store.query("SHOW CREATE TABLE pairs")
    defined = {
        line.split()[0].strip("`"): line.strip(" ,") for line in made.split("\n") if line.startswith("    ")
    }
    # Engines in memory have none.
    defined.pop("INDEX", None)
    text = ", ".join(line for column, line in defined.items() if not columns or column in columns)
    rest = made[made.index("PARTITION BY") :] if "Merge" in engine else ""
    how = f"({text}) ENGINE = {engine} {rest}" if engine else "AS pairs"
    store.command(f"CREATE TABLE {name} {how}")
    if "Merge" in engine or not engine:
        store.command(f"SYSTEM STOP MERGES {name}")
    yield
    store.command(f"DROP TABLE {name} SYNC")


def types_of(store: Store) -> dict[str, str]:
    return {str(name): str(kind) for name, kind, *_ in store.query("DESCRIBE TABLE pairs")}


_numbers = itertools.count()


def token() -> str:
    return f"bench {next(_numbers)}"


def insert(store: Store, name: str, blocks: Blocks) -> None:
    for block in blocks:
        store.insert_columns(name, block, dedup_token=token())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4 * BLOCK, help=f"a multiple of {BLOCK:,}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, default=1024, help="MiB, the engine's limit")
    given = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="gnomon-bench-")
    settings = StoreSettings(url=f"chdb://{folder}", max_memory_bytes=given.memory * 2**20)
    try:
        with open_store(settings, role="owner") as store:
            migrate.apply(store)
            rates(store, given.rows, given.rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
