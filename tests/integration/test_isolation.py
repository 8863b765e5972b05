"""Pausing, sampling, shedding and budgets of a whole service: what is not replayed is accounted for."""

from __future__ import annotations

import subprocess
import threading
import time

import msgspec

from compare.controls import Scope, order
from compare.counters import Counters
from compare.run import run_service
from compare.store.client import open_store
from ingest.settings import Settings
from tests.compare.cli.test_errors import gnomon
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

PROGRESS_WHILE_PAUSED = 20
"""Progress is told with each commit, here every 0.3 s: long enough for every worker to hold a record."""


def changed(bench: Bench, **sections: dict[str, object]) -> Settings:
    """The settings with some keys of some sections changed; `cand` stands for that endpoint."""
    settings = bench.settings
    cand = sections.pop("cand", {})
    endpoints = {**settings.endpoints, "cand": msgspec.structs.replace(settings.endpoints["cand"], **cand)}
    made = {name: msgspec.structs.replace(getattr(settings, name), **keys) for name, keys in sections.items()}
    return msgspec.structs.replace(settings, endpoints=endpoints, **made)


def accounted(bench: Bench) -> tuple[object, ...]:
    (row,) = bench.rows("SELECT consumed, compared, skipped, failed, unaccounted FROM accounting_v1")
    return row


def test_paused_nothing_is_sent_and_resumed_by_another_process_nothing_is_lost(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    with open_store(bench.settings.store, role="any") as store:
        order(store, "pause", Scope("", "cand"), ordered_by="test")
    bench.produce([envelope(f"r{n}", f"say {n}") for n in range(120)])
    settings = changed(bench, delivery={"max_queued_records": 16})
    told, asked_while_paused, done = 0, -1, list[subprocess.CompletedProcess[str]]()

    def resume() -> None:
        done.append(gnomon("resume", "--endpoint", "cand", "--dir", bench.folder, cwd=bench.folder))

    resuming = threading.Thread(target=resume)

    def on_progress(counters: Counters) -> None:
        nonlocal told, asked_while_paused
        told += counters.delivered > 0
        if told == PROGRESS_WHILE_PAUSED:
            asked_while_paused = len(stubs[0].calls) + len(stubs[1].calls)
            assert counters.outcomes == 0
            resuming.start()

    report = run_service(settings, stop_when=lambda c: c.outcomes >= 120, on_progress=on_progress)
    resuming.join()
    assert asked_while_paused == 0
    assert done[0].stdout == 'resumed: endpoint "cand"\n', done[0].stderr
    assert (report.compared, report.skipped, report.failed) == (120, {}, {})
    assert sorted(stubs[1].calls) == sorted(f"say {n}" for n in range(120))
    assert accounted(bench) == (120, 120, 0, 0, 0)
    assert bench.committed() == 120


def test_sampled_shed_and_over_budget_records_are_accounted_for(bench: Bench) -> None:
    from kafka import KafkaProducer

    now_ms = int(time.time() * 1000)
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap)
    # Two hours behind, then at the end of the log: 40 of a tenant that is left out, 40 of another.
    for age_ms, first in ((7_200_000, 0), (0, 80)):
        for n in range(first, first + 80):
            tenant = "quiet" if n % 2 else "loud"
            record = msgspec.json.decode(envelope(f"r{n}", f"say {n}"))
            value = msgspec.json.encode({**record, "tenant": tenant})
            producer.send(bench.topic, value, partition=0, timestamp_ms=now_ms - age_ms)
    producer.flush()
    producer.close()
    settings = changed(
        bench,
        cand={"tokens_per_day": 1, "max_in_flight": 1},
        delivery={"max_lag_s": 600.0, "max_in_flight_requests": 1},
        sampling={"rules": [rule("quiet", 0.0)]},
    )
    report = run_service(settings, stop_when=lambda c: c.outcomes >= 160)
    # The first answer uses the budget up; one record at a time is under way.
    assert report.skipped == {"sampled_out": 80, "shed": 40}
    assert (report.compared, report.failed) == (1, {"budget": 39})
    assert accounted(bench) == (160, 1, 120, 39, 0)
    assert bench.rows("SELECT DISTINCT detail FROM outcomes_v1 WHERE reason = 'sampled_out'") == [
        ("sampling.rules 1 (tenant = quiet, fraction = 0)",)
    ]
    ((used, calls),) = bench.rows(
        "SELECT prompt_tokens + completion_tokens, calls FROM token_use_v1 WHERE endpoint_name = 'cand'"
    )
    assert used > 0 and calls == 1  # type: ignore[operator]
    # Begun again, the budget is still used up.
    bench.produce([envelope("later", "say more")])
    again = run_service(settings, stop_when=lambda c: c.outcomes >= 1)
    assert again.failed == {"budget": 1}


def rule(tenant: str, fraction: float) -> object:
    from ingest.settings import SamplingRule

    return SamplingRule(fraction, tenant=tenant)


def test_a_refusing_endpoint_stops_intake_instead_of_failing_the_topic(
    bench: Bench, unused_tcp_port: int
) -> None:
    bench.produce([envelope(f"r{n}", f"say {n}") for n in range(200)])
    settings = changed(bench, cand={"url": f"http://127.0.0.1:{unused_tcp_port}", "breaker_max_wait_s": 0.5})
    report = run_service(settings, stop_when=lambda c: c.failed.total() >= 8)
    # 8 are under way (max_in_flight_requests) and fail together after half a second; then the next 8 wait.
    assert report.compared == 0
    assert 8 <= sum(report.failed.values()) <= 32
    consumed, compared, skipped, failed, unaccounted = accounted(bench)
    assert (compared, skipped, unaccounted) == (0, 0, 0) and consumed == failed
