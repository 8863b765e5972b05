"""TTLs as settings, on the real engine."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from compare.store import Store, migrate, open_store
from compare.store.sql_text import split_statements
from ingest.load_settings import example_toml
from ingest.settings import StoreSettings, TtlDays
from tests.fixtures.stores import MigratedAt


@pytest.fixture
def settings(tmp_path: Path, migrated_at: MigratedAt) -> StoreSettings:
    return migrated_at(tmp_path / "store")


@pytest.fixture
def store(settings: StoreSettings) -> Iterator[Store]:
    with open_store(settings, role="owner") as opened:
        yield opened


@pytest.fixture
def empty_store(settings: StoreSettings) -> Iterator[Store]:
    with open_store(msgspec.structs.replace(settings, database="empty"), role="owner") as opened:
        yield opened


def keep(**days: int) -> StoreSettings:
    return StoreSettings(ttl_days=TtlDays(**days))


def live(store: Store) -> dict[str, int]:
    """Days by table, from the engine's own text."""
    rows = store.query(
        "SELECT name, extract(engine_full, 'TTL toDate.ingested_at. . toIntervalDay.([0-9]+).') "
        "FROM system.tables WHERE database = {d:String} AND engine LIKE '%MergeTree'",
        {"d": store.database},
    )
    return {name: int(days) for name, days in rows if days}


def written() -> dict[str, int]:
    """Days by table, from the migrations' text."""
    found = {}
    for migration in migrate.shipped_migrations():
        for statement in split_statements(migration.sql):
            match = re.search(
                r"CREATE TABLE IF NOT EXISTS (\w+)[^;]*TTL toDate\(ingested_at\) \+ INTERVAL (\d+) DAY",
                statement,
            )
            if match:
                found[match[1]] = int(match[2])
    return found


def test_every_table_with_a_ttl_has_a_key_and_the_example_shows_its_days(store: Store) -> None:
    shown = dict(
        re.findall(r"^# (\w+) = (\d+)$", example_toml().split("[store.ttl_days]")[1].split("\n[")[0], re.M)
    )
    assert {table: int(days) for table, days in shown.items()} == written() == live(store)
    assert set(written()) == {field.name for field in msgspec.structs.fields(TtlDays)}
    # Set to what they have, nothing is left to do.
    assert migrate.plan(store, keep(**written())) == []


def test_only_what_is_set_and_differs_is_altered(store: Store) -> None:
    settings = keep(pairs=90, tokens=14, requests=0)
    steps = migrate.plan(store, settings)
    assert [(step.kind, step.name) for step in steps] == [
        ("ttl", "TTL of pairs: 400 days to 90 days"),
        ("ttl", "TTL of requests: 30 days to for ever"),
    ]
    assert [step.statements for step in steps] == [
        ("ALTER TABLE pairs MODIFY TTL toDate(ingested_at) + INTERVAL 90 DAY",),
        ("ALTER TABLE requests REMOVE TTL",),
    ]
    assert live(store) == written()
    assert migrate.apply(store, settings) == steps
    expected = written() | {"pairs": 90}
    del expected["requests"]
    assert live(store) == expected
    assert migrate.plan(store, settings) == []
    # Without settings, and without a key, tables keep what they have.
    assert migrate.plan(store) == migrate.plan(store, keep()) == []
    assert [step.name for step in migrate.apply(store, keep(requests=30))] == [
        "TTL of requests: for ever to 30 days"
    ]
    assert live(store) == expected | {"requests": 30}


def test_an_empty_database_is_planned_with_the_ttl_that_its_tables_will_have(empty_store: Store) -> None:
    settings = keep(pairs=400, findings=7)
    steps = migrate.plan(empty_store, settings)
    assert [step.name for step in steps if step.kind == "ttl"] == ["TTL of findings: 30 days to 7 days"]
    assert migrate.apply(empty_store, settings) == steps
    assert live(empty_store) == written() | {"findings": 7}


def days_kept(store: Store) -> list[int]:
    rows = store.query(
        "SELECT dateDiff('day', toDate(ingested_at), toDate(now('UTC'))) FROM outcomes ORDER BY 1"
    )
    return [row[0] for row in rows]


def test_rows_older_than_a_shortened_ttl_go_and_others_stay(store: Store) -> None:
    store.command(
        "INSERT INTO outcomes (experiment, topic_id, `partition`, `offset`, ingested_at) "
        "SELECT 'e', 't', 0, number, now64(3, 'UTC') - toIntervalDay(number * 10) FROM numbers(6)"
    )
    assert days_kept(store) == [0, 10, 20, 30, 40, 50]
    migrate.apply(store, keep(outcomes=25))
    store.command("OPTIMIZE TABLE outcomes FINAL")
    assert days_kept(store) == [0, 10, 20]
    migrate.apply(store, keep(outcomes=0))
    store.command("OPTIMIZE TABLE outcomes FINAL")
    assert days_kept(store) == [0, 10, 20]


def test_a_ttl_set_by_hand_is_left_alone_and_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.command("ALTER TABLE pairs MODIFY TTL toDate(ingested_at) + INTERVAL 2 MONTH")
    with caplog.at_level(logging.WARNING):
        assert migrate.plan(store, keep(pairs=90)) == []
    assert "table pairs has a TTL set by hand (toDate(ingested_at) + toIntervalMonth(2))" in caplog.text
