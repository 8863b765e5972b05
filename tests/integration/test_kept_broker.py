"""A broker whose data outlives it: killed and started again; records removed that nobody had read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.fixtures.kept_broker import KeptBroker
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import Service, until
from tests.integration.conftest import Bench, envelope

# kafka-python leaves the sockets of refused connections to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptBroker]:
    with KeptBroker(tmp_path) as broker:
        yield broker


@pytest.fixture
def kept_bench(
    kept: KeptBroker, tmp_path: Path, stubs: tuple[StubEndpoint, StubEndpoint], migrated_at: MigratedAt
) -> Bench:
    made = Bench(kept.bootstrap, tmp_path / "store", stubs[0].url, stubs[1].url)
    migrated_at(made.folder)
    made.make_topics()
    return made


def produce_one_a_batch(bench: Bench, numbers: range) -> None:
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap)
    for n in numbers:
        producer.send(bench.topic, envelope(f"r{n}", f"question {n}"), partition=0).get(30)
    producer.close()


def test_a_broker_that_is_killed_and_comes_back_with_its_data_is_read_on(
    kept: KeptBroker, kept_bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    bench = kept_bench
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(200)])
    service = Service(bench, outcomes=260)
    until(lambda: service.stored >= 50)
    kept.kill()
    kept.start()
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(200, 260)])
    report = service.report()
    gc.collect()
    assert report.dead_lettered == 0
    assert bench.rows("SELECT count(), uniqExact(offset) FROM pairs") == [(260, 260)]
    assert bench.committed() == 260
    assert sorted(stubs[0].calls) == sorted(f"question {n}" for n in range(260))
    assert bench.rows("SELECT consumed, compared, lost_retention, unaccounted FROM accounting_v1") == [
        (260, 260, 0, 0)
    ]


def test_what_retention_removed_unread_is_shown_and_a_compacted_gap_is_not(
    kept: KeptBroker, kept_bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench = kept_bench
    produce_one_a_batch(bench, range(0, 20))
    Service(bench, outcomes=20).report()
    produce_one_a_batch(bench, range(20, 60))
    kept.kill()
    kept.remove(bench.topic, range(0, 30), begins_at=30)
    kept.remove(bench.topic, range(40, 41))
    kept.start()
    Service(bench, outcomes=29).report()
    gc.collect()
    # Read: 0 to 19 and 30 to 59 without 40. Of what was never read retention took 20 to 29.
    assert bench.rows("SELECT consumed, compared, lost_retention, unaccounted FROM accounting_v1") == [
        (49, 49, 10, 0)
    ]
    assert "offsets 20 to 29 were removed by retention before they were read" in caplog.text
    assert bench.committed() == 60
