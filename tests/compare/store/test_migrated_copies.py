"""The copies of a migrated store that the tests work on are what migrating makes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from compare.store import Store, migrate, open_store
from tests.fixtures.stores import MigratedAt

MADE = (
    "SELECT name, engine_full, comment, total_rows,"
    " replaceAll(create_table_query, database || '.', '') FROM system.tables"
    " WHERE database = {d:String} AND name NOT LIKE 'schema_lock_%' ORDER BY name"
)
LOCK = "SELECT name, JSONExtractBool(comment, 'is_released') FROM system.tables"
LOCK += " WHERE database = {d:String} AND name LIKE 'schema_lock_%'"


def made(store: Store) -> list[tuple[object, ...]]:
    return store.query(MADE, {"d": store.database}).rows


def test_a_copy_is_what_migrating_makes_and_starts_empty(tmp_path: Path, migrated_at: MigratedAt) -> None:
    settings = migrated_at(tmp_path / "store")
    with open_store(settings, role="owner") as copy:
        with open_store(msgspec.structs.replace(settings, database="fresh"), role="owner") as fresh:
            migrate.apply(fresh)
            assert made(copy) == made(fresh)
            for store in (copy, fresh):
                assert store.query(LOCK, {"d": store.database}).rows == [("schema_lock_1", True)]
        assert migrate.plan(copy) == []
        filled = [name for name, _, _, rows, _ in made(copy) if rows]
        assert filled == ["schema_migrations"]


def test_copies_share_nothing(tmp_path: Path, migrated_at: MigratedAt) -> None:
    row, columns = ("e", "hash", "{}", "{}"), ["experiment", "settings_hash", "settings", "served"]
    for name in ("one", "two"):
        with open_store(migrated_at(tmp_path / name), role="owner") as store:
            # The same insert as in the other copy: a shared deduplication log would drop it.
            assert store.query("SELECT count() FROM experiments").rows == [(0,)]
            store.insert("experiments", columns, [row], dedup_token="token")
            assert store.query("SELECT count() FROM experiments").rows == [(1,)]
