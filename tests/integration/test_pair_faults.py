"""A pair that kills the comparison's process, a row that the store refuses, and dead letters that flood."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from compare.compare_process import CompareProcess
from compare.controls import let_go
from compare.demo.broker import EmbeddedBroker
from compare.run import run_service
from compare.store.client import open_store
from ingest.dead_letters import DeadLetterTopic
from ingest.errors import RetryError
from ingest.records import RawRecord
from tests.compare.children import failing
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import Service, until
from tests.integration.conftest import Bench, envelope


def test_a_pair_that_kills_its_process_and_a_row_that_is_refused_cost_themselves_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"r{n}" for n in range(20)]
    names[3], names[7], names[8], names[15] = "kill", "memory", "dead of a metric", "refused"
    values = [envelope(name, f"say {name}") for name in names]
    bench.produce(values)
    with open_store(bench.settings.store, role="any") as store:
        store.command("ALTER TABLE pairs ADD CONSTRAINT no_one CHECK request_id != 'refused'")
    # The real process and comparison, but for the requests whose ids order a fault.
    monkeypatch.setattr("compare.run.CompareProcess", partial(CompareProcess, make=failing))
    report = run_service(bench.settings, stop_when=lambda c: c.outcomes >= 20)
    assert (report.compared, report.dead_lettered) == (16, 4)
    letters = bench.rows("SELECT offset, source, reason FROM dead_letters_v1 ORDER BY offset")
    assert letters == [
        (3, "record", "comparison_failed"),
        (7, "record", "comparison_failed"),
        (8, "record", "comparison_failed"),
        (15, "pairs:cand", "store_refused"),
    ]
    # A row is no record: what the topic gets is what a decoder or a comparison could not take.
    sent = {int(headers["gnomon.offset"]): value for value, headers in bench.dead_letters(3)}
    assert sent == {at: values[at] for at in (3, 7, 8)}
    assert bench.rows("SELECT groupArray(offset) FROM (SELECT offset FROM pairs_v1 ORDER BY offset)") == [
        ([n for n in range(20) if n not in (3, 7, 8, 15)],)
    ]
    assert bench.rows("SELECT consumed, compared, dead_lettered, unaccounted FROM accounting_v1") == [
        (20, 16, 4, 0)
    ]
    assert bench.committed() == 20


def test_a_flood_of_dead_letters_stops_its_partition_until_it_is_let_go(
    broker: EmbeddedBroker,
    bench: Bench,
    stubs: tuple[StubEndpoint, StubEndpoint],
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(broker.bootstrap, bench.folder, stubs[0].url, stubs[1].url)
    bench.make_topics(partitions=2)
    # 51 of the last 1,000, and two good ones beside them.
    flood: list[bytes] = [b"broken %d" % n if n < 51 else envelope("a0") for n in range(52)]
    good = [envelope(f"b{n}") for n in range(52)]
    bench.produce([value for two in zip(flood, good, strict=True) for value in two], partitions=2)
    service = Service(bench, outcomes=52 * 2 + 2)
    until(lambda: service.stored >= 52 * 2)
    assert "partition 0 is paused: over 5 % of its last 1000 records are dead letters" in caplog.text
    bench.produce([envelope("a1"), envelope("b52")], partitions=2)
    until(lambda: service.stored >= 52 * 2 + 1)
    assert bench.rows("SELECT request_id FROM pairs_v1 WHERE request_id IN ('a1', 'b52')") == [("b52",)]
    with open_store(bench.settings.store, role="any") as store:
        let_go(store, "e", 0, ordered_by="test")
    report = service.report()
    assert (report.compared, report.dead_lettered, report.skipped) == (55, 51, {})
    assert bench.rows("SELECT consumed, compared, dead_lettered, unaccounted FROM accounting_v1") == [
        (106, 55, 51, 0)
    ]
    assert (bench.committed(0), bench.committed(1)) == (53, 53)


def test_while_the_dead_letter_topic_is_away_nothing_is_committed_past_the_letter(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only sending is made to fail: a topic of its own that is away cannot be had on one broker."""
    tries, send, may_send = 0, DeadLetterTopic.send, threading.Event()

    def sending(self: DeadLetterTopic, raw: RawRecord, reason: str, message: str) -> None:
        nonlocal tries
        tries += 1
        if not may_send.is_set():
            raise RetryError("no broker takes the letter")
        send(self, raw, reason, message)

    monkeypatch.setattr(DeadLetterTopic, "send", sending)
    bench.produce([envelope("r0", "say 0"), b"broken", envelope("r2", "say 2")])
    service = Service(bench, outcomes=3)
    # The ranges follow the pairs: on a busy machine a moment later.
    ends = "SELECT max(end_offset) FROM delivered_ranges_v1"
    until(lambda: service.stored == 2 and bench.rows(ends) == [(1,)])
    tried = tries
    until(lambda: tries >= tried + 2)
    assert bench.rows(ends) == [(1,)]
    may_send.set()
    report = service.report()
    assert (report.compared, report.dead_lettered) == (2, 1)
    assert [value for value, _ in bench.dead_letters(1)] == [b"broken"]
    assert bench.rows("SELECT consumed, compared, dead_lettered, unaccounted FROM accounting_v1") == [
        (3, 2, 1, 0)
    ]
    assert bench.committed() == 3
