"""Golden sets over real models: what the reference answered passes against it and fails against loops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from compare.demo.broker import EmbeddedBroker
from compare.demo.llama_server import LlamaServer
from compare.golden.from_traffic import Wishes, cases_of
from compare.golden.run import Limits
from compare.golden.session import run_alone
from compare.golden.sets import promote, write_cases
from compare.reprocess.selection import Wanted, select
from compare.run import run_service
from compare.store.client import open_store
from ingest.settings import EndpointSettings
from ingest.settings_golden import GoldenSettings
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

RECORDS = 5
LIMITS = Limits(0.85)


def test_a_set_of_traffic_passes_against_its_reference_and_a_service_runs_it(
    broker: EmbeddedBroker, tmp_path: Path, reference_server: LlamaServer, migrated_at: MigratedAt
) -> None:
    with StubEndpoint("the same words again and again. " * 40) as loops:
        bench = Bench(broker.bootstrap, tmp_path / "store", reference_server.url, loops.url)
        migrated_at(bench.folder)
        bench.make_topics()
        bench.produce([envelope(f"r{n}", f"Tell me of the number {n}.") for n in range(RECORDS)])
        experiment = msgspec.structs.replace(bench.settings.experiment, max_tokens_cap=12)
        # One at a time: llama.cpp's numbers depend on what else is in its batch.
        one = EndpointSettings(url=reference_server.url, max_in_flight=1)
        endpoints = bench.settings.endpoints | {"ref": one}
        settings = msgspec.structs.replace(bench.settings, experiment=experiment, endpoints=endpoints)
        run_service(settings, stop_when=lambda c: c.outcomes >= RECORDS)

        now = datetime.now(UTC)
        with open_store(settings.store, role="any") as store:
            wanted = Wanted(start=now - timedelta(hours=1), end=now + timedelta(hours=1))
            found = cases_of(store, "e", select(store, wanted, "e"), Wishes(), {})
            assert len(found.cases) + found.left_out.total() == RECORDS
            assert len(found.cases) >= 3
            write_cases(store, "s", found.cases)
            (good,) = run_alone(settings, store, "s", found.cases, ["ref"], "command", LIMITS)
            # Bit for bit: the same server, the same request.
            assert (good.run.status, good.run.totals.exact_rate, good.run.totals.mean_score) == (
                "passed", 1.0, 1.0
            )  # fmt: skip
            assert (good.run.served.engine, good.run.served.quantization) == ("llama.cpp", "Q8_0")
            promote(store, "s", good.run.run_id, "test")

        # A service runs the set while it works, against its candidate, and alerts.
        bench.produce([envelope("later", "Tell me of nothing.")])
        golden = GoldenSettings(set="s")
        settings = msgspec.structs.replace(settings, golden=golden)
        told = "SELECT state, severity FROM alerts_v1 WHERE category = 'golden'"
        with open_store(settings.store, role="any") as store:
            run_service(settings, store=store, stop_when=lambda c: store.query(told).rows != [])
            rows = store.query(
                "SELECT endpoint_name, status, faulty_rate, newly_failing FROM golden_runs_v1"
                " WHERE started_by = 'schedule'"
            ).rows
            assert rows == [("cand", "failed", 1.0, len(found.cases))]
            spent = "SELECT sum(calls) FROM token_use_v1 WHERE endpoint_name = 'cand'"
            ((calls,),) = store.query(spent).rows
            assert calls == RECORDS + len(found.cases) + 1
            assert store.query(told).rows == [("firing", "warning")]
