"""The whole pipeline on the real broker, engine and models."""

from __future__ import annotations

import json
from pathlib import Path

from compare.counters import Counters
from compare.demo.broker import EmbeddedBroker
from compare.demo.llama_server import LlamaServer
from compare.run import run_service
from tests.integration.conftest import Bench, envelope

BROKEN = [b"\xff\xfe", b"{", b"", b"[1, 2]", b'{"schema": "gnomon.mirror/1", "request_id": "x"}']


def completion(request_id: str, prompt: str) -> bytes:
    request = {"model": "m", "prompt": prompt, "max_tokens": 2}
    record = {"schema": "gnomon.mirror/1", "request_id": request_id, "endpoint": "/v1/completions"}
    return json.dumps(record | {"request": request}).encode()


def test_195_pairs_and_5_dead_letters_of_200_records(
    broker: EmbeddedBroker, tmp_path: Path, reference_server: LlamaServer, candidate_server: LlamaServer
) -> None:
    bench = Bench(broker.bootstrap, tmp_path / "store", reference_server.url, candidate_server.url)
    bench.make_topics(partitions=2)
    # Half are completions: without a chat template they are quick.
    good = [
        envelope(f"r{n}", f"Count from {n}.", max_tokens=2) if n % 2 else completion(f"r{n}", f"{n}, ")
        for n in range(195)
    ]
    records = list(good)
    for place, broken in zip((3, 50, 101, 150, 199), BROKEN, strict=True):
        records.insert(place, broken)
    bench.produce(records, partitions=2)
    seen: list[int] = []

    def on_progress(counters: Counters) -> None:
        seen.append(counters.outcomes)

    report = run_service(bench.settings, stop_when=lambda c: c.outcomes >= 200, on_progress=on_progress)

    assert (report.consumed, report.compared, report.pairs, report.dead_lettered) == (200, 195, 195, 5)
    assert (report.skipped, report.failed) == ({}, {})
    assert seen[-1] == 200
    assert bench.rows("SELECT count(), uniqExact(partition, offset), uniqExact(topic_id) FROM pairs_v1") == [
        (195, 195, 1)
    ]
    assert bench.rows("SELECT count() FROM pairs_v1 WHERE verdict LIKE '%error%'") == [(0,)]
    assert bench.rows("SELECT count() FROM dead_letters FINAL") == [(5,)]
    assert sorted(value for value, _ in bench.dead_letters(5)) == sorted(BROKEN)
    assert [bench.committed(0), bench.committed(1)] == [100, 100]
    assert bench.rows(
        "SELECT consumed, compared, skipped, failed, dead_lettered, unaccounted FROM accounting_v1"
    ) == [(200, 195, 0, 0, 5, 0)]
