"""A purged record that Kafka delivers again, to the same experiment under another group: not replayed."""

from __future__ import annotations

import msgspec

from compare.purge import Selection, purge
from compare.run import run_service
from compare.store.client import open_store
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope


def test_a_purged_record_is_not_replayed_after_a_restart(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(5)])
    assert run_service(bench.settings, stop_when=lambda counters: counters.outcomes >= 5).compared == 5
    with open_store(bench.settings.store, role="any") as store:
        assert purge(store, Selection(request_id="r2")).is_clean
    asked = "SELECT consumed, compared, skipped, unaccounted FROM accounting_v1"
    assert bench.rows(asked) == [(5, 4, 1, 0)]
    assert bench.committed() == 5

    # A group that has committed nothing is given everything again, and finds it stored, or purged.
    again = msgspec.structs.replace(bench.settings.kafka, group=f"{bench.group}-again")
    bench.settings = msgspec.structs.replace(bench.settings, kafka=again)
    for stub in stubs:
        stub.calls.clear()
    report = run_service(bench.settings, stop_when=lambda counters: counters.outcomes >= 5)
    assert (report.compared, report.skipped, report.already_stored) == (0, {}, 5)
    assert stubs[0].calls == stubs[1].calls == []
    assert bench.rows(asked) == [(5, 4, 1, 0), (5, 4, 1, 0)]
    assert bench.rows("SELECT count() FROM requests WHERE position(body, 'question 2') > 0") == [(0,)]
