"""Every recipe of `sql/queries/` on a store of synthetic pairs. Run: python -m bench.recipes [--pairs N]

Fills a store with pairs of one day and what stands beside them, or reads one that is there (--store). Then
asks each recipe as an analyst does: over the loopback port with the reader's token and limits, four at once.
Prints p50 and p95 in seconds, processor seconds a query, the most memory of one query as the engine counts
it, and the limit. `failed` is what the reader was told.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import numpy as np

from bench.store import START, fill, processor_s
from bench.synthetic_sides import fill_sides
from compare.recipes import Recipe, shipped_recipes
from compare.rollups.rebuild import Rollups
from compare.store import Store, migrate, open_store
from compare.store.row_stream import stream_rows
from ingest.errors import GnomonError
from ingest.settings import StoreSettings


class Memory:
    """The largest `peak_memory_usage` of a reader's query since `reset`, looked at 20 times a second."""

    def __init__(self, store: Store) -> None:
        self.mib = 0.0
        self._store = store
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(0.05):
            rows = self._store.query(
                "SELECT max(peak_memory_usage) / 1048576 FROM system.processes"
                " WHERE Settings['readonly'] = '1'"
            ).rows
            self.mib = max(self.mib, float(rows[0][0] or 0))

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()
        self._store.close()


def windows(recipe: Recipe, start: datetime) -> list[dict[str, str]]:
    """The values to ask with: the defaults, and, where they reach less far, a window from `start` on."""
    names = {parameter.name: parameter.default for parameter in recipe.parameters}
    since = int((datetime.now(UTC) - start).total_seconds()) // 3600 + 2
    chosen: list[dict[str, str]] = [{}]
    if names.get("hours"):
        chosen.append({"hours": str(since)})
    elif names.get("days") and int(names["days"] or 0) * 24 < since:
        chosen.append({"days": str(since // 24 + 1)})
    return chosen


def ask(settings: StoreSettings, recipe: Recipe, given: dict[str, str]) -> tuple[float, int, str]:
    """Seconds, rows, and what went wrong."""
    began = time.perf_counter()
    count = 0
    try:
        with stream_rows(settings, recipe.statement, recipe.bind(given)) as blocks:
            for block in blocks:
                count += len(block)
    except GnomonError as error:
        return time.perf_counter() - began, count, str(error)
    return time.perf_counter() - began, count, ""


def measure(
    store: Store, settings: StoreSettings, recipe: Recipe, given: dict[str, str], how: argparse.Namespace
) -> None:
    memory = Memory(store.another())
    used = processor_s()
    with ThreadPoolExecutor(how.at_once) as pool:
        answers = list(pool.map(lambda _: ask(settings, recipe, given), range(how.at_once * how.rounds)))
    used = (processor_s() - used) / len(answers)
    memory.stop()
    took = [seconds for seconds, _, _ in answers]
    failed = next((error for _, _, error in answers if error), "")
    what = f"{recipe.name} {' '.join(f'{k}={v}' for k, v in given.items())}".strip()
    print(
        f"  {what}: {np.percentile(took, 50):.2f} / {np.percentile(took, 95):.2f} s, {used:.2f} processor s,"
        f" {memory.mib:,.0f} MiB, {answers[0][1]} rows" + (f" FAILED: {failed[:200]}" if failed else ""),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=1024, help="MiB, the engine's limit")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--store", help="a folder that is filled already; it is kept")
    parser.add_argument("--only", nargs="*", help="names of recipes")
    given = parser.parse_args()
    folder = given.store or tempfile.mkdtemp(prefix="gnomon-bench-")
    settings = StoreSettings(url=f"chdb://{folder}", max_memory_bytes=given.memory * 2**20)
    try:
        with open_store(settings, role="owner") as store:
            migrate.apply(store)
            if given.store is None:
                steps: list[Callable[[], object]] = [
                    lambda: fill(store, given.pairs),
                    lambda: fill_sides(store, START),
                    lambda: Rollups(store, settings).rebuild_touched(),
                ]
                for step in steps:
                    step()
            print(
                f"recipes, {given.at_once} at once, {given.rounds} rounds (p50 / p95), a reader's limit is"
                f" {given.memory // 8} MiB:"
            )
            ((start,),) = store.query("SELECT min(ingested_at) FROM pairs").rows
            for recipe in shipped_recipes().values():
                if not given.only or recipe.name in given.only:
                    for values in windows(recipe, start):
                        measure(store, settings, recipe, values, given)
    finally:
        if given.store is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
