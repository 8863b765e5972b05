"""Redelivering every record of a run changes no number in any view."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

from compare.rollups.rebuild import Rollups
from compare.run import run_service
from compare.store import Store, migrate
from compare.store.client import open_store
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

ARGUMENTS = {
    "pair_beside_v1": "(experiment = 'e', candidate = 'c', topic_id = 't', partition = 0, offset = 0,"
    " day = '2026-11-01')",
    "pairs_of_request_v1": "(request_hash = 'h', first = '2026-11-01', last = '2026-11-01')",
    "rollup_range_v1": "(start = '2020-01-01 00:00:00', end = '2100-01-01 00:00:00', dimension = 'route')",
}
RECORDS = 24
OF_THE_SERVICE = {
    # How what Kafka delivered was cut into ranges: each record is still counted in one of them only.
    ("delivered_ranges_v1", "end_offset"),
    ("delivered_ranges_v1", "ingested_at"),
    ("experiments_v1", "ingested_at"),
    ("rollback_state_v1", "evaluated_at"),
    ("rollback_state_v1", "clear"),
}


@pytest.fixture
def ran(bench: Bench) -> Bench:
    """A run of records of every outcome, its rollups made: pairs with noise, a skipped one, dead letters."""
    experiment = msgspec.structs.replace(bench.settings.experiment, noise_fraction=1.0)
    bench.settings = msgspec.structs.replace(bench.settings, experiment=experiment)
    records = [envelope(f"r{n}", f"question {n}") for n in range(RECORDS - 3)]
    records += [b"{", envelope("batch", prompt=["a", "b"]), b"\xff"]
    bench.produce(records)
    report = run_service(bench.settings, stop_when=lambda counters: counters.outcomes >= RECORDS)
    assert (report.compared, report.dead_lettered, sum(report.skipped.values())) == (21, 2, 1)
    return bench


def numbers(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Every row of every view, but for the columns that tell of the service itself."""
    return {
        view: [
            {name: value for name, value in row.items() if (view, name) not in OF_THE_SERVICE}
            for row in store.query(f"SELECT * FROM {view}{ARGUMENTS.get(view, '')} ORDER BY ALL").dicts()
        ]
        for view in migrate.shipped_views()
    }


def differing(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> set[str]:
    """Views, and their columns where there are as many rows, that are not what they were."""
    found = {view for view, rows in before.items() if len(rows) != len(after[view])}
    for view in before.keys() - found:
        for old, new in zip(before[view], after[view], strict=True):
            found |= {
                f"{view}.{name}: {old[name]!r}, {new[name]!r}" for name in old if new[name] != old[name]
            }
    return found


def test_records_that_kafka_delivers_again_change_no_number(
    ran: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    with open_store(ran.settings.store, role="owner") as store:
        before = numbers(store)
    filled = {view for view, rows in before.items() if rows}
    assert {"pairs_v1", "noise_pairs_v1", "outcomes_v1", "rollup_hourly_v1", "rollup_worst_v1"} <= filled
    reader = KafkaConsumer(bootstrap_servers=ran.bootstrap, group_id=ran.group, enable_auto_commit=False)
    reader.commit({TopicPartition(ran.topic, 0): OffsetAndMetadata(0, "", -1)})
    reader.close(autocommit=False)
    assert ran.committed() == 0
    for stub in stubs:
        stub.calls.clear()
    report = run_service(ran.settings, stop_when=lambda counters: counters.outcomes >= RECORDS)
    assert report.already_stored == RECORDS
    assert stubs[0].calls == stubs[1].calls == []
    with open_store(ran.settings.store, role="owner") as store:
        assert differing(before, numbers(store)) == set()


def test_rows_that_are_stored_again_change_no_number(ran: Bench) -> None:
    with open_store(ran.settings.store, role="owner") as store:
        before = numbers(store)
        tables = store.query(
            "SELECT name FROM system.tables WHERE database = currentDatabase()"
            " AND engine = 'ReplacingMergeTree' AND name != 'schema_migrations' ORDER BY name"
        ).rows
        for (table,) in tables:
            store.command(f"INSERT INTO {table} SELECT * REPLACE (version + 1 AS version) FROM {table}")
        Rollups(store, ran.settings.store).rebuild_touched()
        after = numbers(store)
    # Its very purpose is to count them.
    for times, found in ((1, before), (2, after)):
        stored = {
            row["table_name"]: (row["stored_rows"], row["distinct_keys"])
            for row in found.pop("duplicated_rows_v1")
        }
        assert stored == {"outcomes": (3 * times, 3), "pairs": (21 * times, 21)}
    assert differing(before, after) == set()
