"""How fast the alert runner catches up, and what that takes. Run: python -m bench.alert_backlog [pairs]

Stores a backlog of pairs (500,000 unless told otherwise) in an embedded store: four partitions, a week of
traffic, all scores, 41 slices, one request in twenty sent again. Then one run of the real runner folds it
from nothing: all metrics in all slices, baselines estimated on the way. Prints pairs a second beside a limit
(reading the same columns of the same rows once, into the same Python values, in the same chunks), and memory
beside the service's limit of 1.5 GiB.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from compare.alerts import source
from compare.alerts.catch_up import backlog
from compare.alerts.cursor import Cursor, PartitionKey, merge
from compare.alerts.runner import AlertRunner
from compare.store import migrate
from compare.store.client import Store, open_store
from ingest.settings import StoreSettings
from ingest.settings_alerts import AlertSettings

PARTITIONS = 4
LIMIT_MIB = 1536

FILL = f"""
INSERT INTO pairs (experiment, candidate, reference, topic, topic_id, `partition`, `offset`, attempt_id,
    request_id, request_hash, mirrored_at, ingested_at, route, tenant, language, prompt_tokens, kind,
    served_model, mode, verdict, is_regression, is_candidate_only_fault, is_reference_only_fault,
    cosine_similarity, reference_is_schema_valid, candidate_is_schema_valid, top1_agreement_forced_ratio,
    kl_forced_mean_nats, latency_ratio, version)
WITH cityHash64(number, 1) AS h, cityHash64(number, 2) / 18446744073709551616 AS u,
    cityHash64(number, 3) / 18446744073709551616 AS v, u < 0.01 AS worse, u > 0.99 AS better,
    toDateTime64(now('UTC'), 3, 'UTC') - toIntervalMillisecond(({{pairs:UInt64}} - number) * 604800000
        / {{pairs:UInt64}}) AS at
SELECT 'e', 'q4', 'fp16', 't', 't-1', number % {PARTITIONS}, intDiv(number, {PARTITIONS}), generateUUIDv4(),
    toString(number), hex(sipHash128(if(h % 20 = 0, number - number % 50, number))), at, at,
    concat('route-', toString(h % 8)), concat('tenant-', toString(intDiv(h, 8) % 20)),
    ['en', 'de', 'zh', 'ja'][intDiv(h, 160) % 4 + 1], [100, 900, 5000][intDiv(h, 640) % 3 + 1],
    ['text', 'json', 'tool'][intDiv(h, 1920) % 3 + 1], concat('model-', toString(intDiv(h, 5760) % 2)),
    'greedy',
    multiIf(worse, 'candidate_worse', better, 'reference_worse', 'match'), worse, worse, better,
    1 - 0.08 * v, if(h % 3 = 1, true, NULL), if(h % 3 = 1, u < 0.995, NULL),
    if(h % 5 = 0, 1 - 0.04 * v, NULL), if(h % 5 = 0, 0.01 + 0.02 * v, NULL), 0.9 + 0.2 * v, 1
FROM numbers({{pairs:UInt64}})"""
RANGES = f"""
INSERT INTO delivered_ranges (experiment, consumer_group, topic, topic_id, `partition`, first_offset,
    end_offset, records, ingested_at, version)
SELECT 'e', 'gnomon', 't', 't-1', number, 0, intDiv({{pairs:UInt64}}, {PARTITIONS}),
    intDiv({{pairs:UInt64}}, {PARTITIONS}), now64(3, 'UTC'), 1
FROM numbers({PARTITIONS})"""


class Peak:
    """The most resident memory in MiB that was seen since `reset`."""

    def __init__(self) -> None:
        self.mib = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def reset(self) -> float:
        """Begin anew; return what is held now."""
        self.mib = resident_mib()
        return self.mib

    def _watch(self) -> None:
        while True:
            self.mib = max(self.mib, resident_mib())
            time.sleep(0.02)


def resident_mib() -> float:
    """What the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def timed(what: str, pairs: int, peak: Peak, work: Callable[[], object]) -> float:
    """Do it; print and return pairs a second of processor time."""
    before = peak.reset()
    wall, cpu = time.monotonic(), time.process_time()
    work()
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(
        f"  {what:26s} {pairs / cpu:9,.0f} pairs a second of processor time,"
        f" {pairs / wall:9,.0f} of wall time; memory {before:,.0f} -> {peak.mib:,.0f} MiB at most"
    )
    return pairs / cpu


def read_all(store: Store) -> None:
    """The limit: the reading alone, chunk by chunk."""
    cursors: dict[PartitionKey, Cursor] = {}
    is_cut = True
    while is_cut:
        feeds, is_cut = source.read_feeds(store, "e", "q4", cursors)
        _, moved = merge(feeds)
        cursors = {**cursors, **moved}


def main() -> None:
    """Fill, then fold."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as store,
    ):
        migrate.apply(store)
        store.command(FILL, {"pairs": pairs})
        store.command(RANGES, {"pairs": pairs})
        measure(store)


def measure(store: Store) -> None:
    """Read, fold, and fold again with nothing new."""
    peak = Peak()
    waiting = backlog(store, "e", "q4", {})
    print(f"backlog of {waiting:,} pairs, {PARTITIONS} partitions, chunks of {source.MAX_PAIRS:,}")
    limit = timed("reading alone, the limit", waiting, peak, lambda: read_all(store))
    runner = AlertRunner(store, AlertSettings(no_data_after_s=0), "e", ["q4"])
    rate = timed("the runner, everything", waiting, peak, runner.run_once)
    print(f"  {rate / limit:.2f} of the limit; peak {peak.mib:,.0f} MiB of {LIMIT_MIB:,} MiB")
    ((series, steps),) = store.query(
        "SELECT count(), sum(pairs_folded + baseline_pairs * (status = 'needs_baseline'))"
        " FROM detectors_v1 WHERE experiment = 'e'"
    ).rows
    print(f"  {series} series, {steps:,} pair steps, {rate * steps / waiting:,.0f} steps a second")
    began = time.process_time()
    runner.run_once()
    print(f"  a run with nothing new: {time.process_time() - began:.2f} s of processor time")


if __name__ == "__main__":
    main()
