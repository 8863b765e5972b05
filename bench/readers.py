"""Sixteen readers of the embedded engine at once while a writer inserts.

Run: python -m bench.readers [--seconds S]. Readers are clickhouse-connect's HTTP clients with the reader's
token. Each asks recipes and a count in turn; every fifth time it leaves in the middle of an endless query,
and every fifth it asks for more memory than its limit. Prints how often each ended how, the p50 and p95 of
the counts, the rows written meanwhile beside the same seconds without readers, and how many queries still
run when all have left.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import clickhouse_connect
import numpy as np
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from bench.synthetic_pairs import pair_columns
from compare.recipes import shipped_recipes
from compare.store import Store, migrate, open_store
from compare.store.lockfile import Owner, read_owner
from ingest.settings import StoreSettings

BATCH = 1_000
READERS = 16
TOO_MUCH = "SELECT length(groupArray(number)) FROM numbers(1000000000)"
ENDLESS = "SELECT number FROM numbers(1000000000000)"
RECIPES = ("p99_kl_by_model", "verdicts_by_day", "regressions_by_slice", "not_compared")


def connected(owner: Owner, settings: StoreSettings) -> Client:
    address = urlsplit(owner.url)
    return clickhouse_connect.get_client(
        host=address.hostname or "",
        port=address.port or 0,
        password=owner.reader_token,
        database=settings.database,
        autogenerate_session_id=False,
    )


def what_happened(error: str) -> str:
    """In words, and `error: ...` for what should not be."""
    if "MEMORY_LIMIT_EXCEEDED" in error:
        return "killed by its limit"
    if "code: 202" in error:
        return "told to come again (waited 10 s for a slot)"
    return f"error: {error[:90]}"


class Readers:
    """What became of the queries of all readers: `ended` counts, `took` seconds of the counts."""

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()
        self.took: list[float] = []
        self._lock = threading.Lock()

    def read(self, client: Client, turn: int, until: float) -> None:
        """Ask in turn until the time is over, beginning behind `turn`."""
        recipes = shipped_recipes()
        while time.monotonic() < until:
            turn += 1
            began = time.monotonic()
            try:
                ended = self._one(client, turn, recipes[RECIPES[turn % len(RECIPES)]].statement)
            except ClickHouseError as error:
                ended = what_happened(str(error))
            with self._lock:
                self.ended[ended] += 1
                if ended.startswith("count"):
                    self.took.append(time.monotonic() - began)

    def _one(self, client: Client, turn: int, recipe: str) -> str:
        if turn % 5 == 2:
            with client.query_row_block_stream(ENDLESS) as blocks:
                next(iter(blocks))
            return "left in the middle"
        if turn % 5 == 3:
            client.query(TOO_MUCH)
            return "error: over its limit, and answered"
        if turn % 2:
            parameters = {
                parameter.name: parameter.default
                for one in shipped_recipes().values()
                if one.statement == recipe
                for parameter in one.parameters
            }
            client.query(recipe, parameters=parameters)
            return "recipe answered"
        # Whole batches only: an insert is seen whole or not at all.
        rows = client.query("SELECT count(), uniqExact(`partition`, `offset`) FROM pairs_v1").result_rows
        return "count answered" if rows[0][0] == rows[0][1] and rows[0][0] % BATCH == 0 else "error: torn"


def write(store: Store, first: int, seconds: float) -> int:
    """Insert batches for some seconds; return how many rows."""
    until, written = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        columns = pair_columns(first + written, BATCH, datetime.now(UTC), 1.0)
        store.insert_columns("pairs", columns)
        written += BATCH
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    folder = tempfile.mkdtemp(prefix="gnomon-bench-")
    settings = StoreSettings(url=f"chdb://{folder}")
    try:
        with open_store(settings, role="owner") as store:
            migrate.apply(store)
            alone = write(store, 0, seconds / 4) * 4
            owner = read_owner(Path(folder))
            assert owner is not None
            readers = Readers()
            until = time.monotonic() + seconds
            threads = [
                threading.Thread(target=readers.read, args=(connected(owner, settings), number, until))
                for number in range(READERS)
            ]
            for thread in threads:
                thread.start()
            beside = write(store, 10_000_000, seconds)
            for thread in threads:
                thread.join()
            time.sleep(1)
            running = store.query("SELECT count() FROM system.processes").rows[0][0] - 1
        print(f"{READERS} readers, {seconds:.0f} s:")
        for ended, count in sorted(readers.ended.items()):
            print(f"  {ended}: {count}")
        p50, p95 = np.percentile(readers.took, [50, 95])
        print(f"  counts took {p50:.2f} / {p95:.2f} s (p50 / p95)")
        print(f"  rows written meanwhile: {beside:,} ({beside / alone:.2f} of a writer alone)")
        print(f"  queries that still run afterwards: {running}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
