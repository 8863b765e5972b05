"""`gnomon migrate` as a person runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare.store import Store, migrate, open_store
from compare.store.sql_text import split_statements
from ingest.settings import StoreSettings
from tests.compare.cli.test_errors import SETTINGS, gnomon, the_one_line

COLUMNS = """
SELECT table, name, type, compression_codec FROM system.columns WHERE database = {d:String} ORDER BY ALL
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a dry run on an empty folder prints."""
    cwd = tmp_path_factory.mktemp("cli")
    done = gnomon("migrate", "--dir", "new", "--dry-run", "--sql", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert list(cwd.iterdir()) == []
    return done.stdout


def test_a_dry_run_prints_a_script_that_makes_the_same_schema(
    printed: str, store_settings: StoreSettings, migrated_store: Store
) -> None:
    count = f"{len(migrate.shipped_migrations())} migrations, {len(migrate.shipped_views())} views"
    assert printed.splitlines()[0] == f"-- would apply {count}"
    with open_store(StoreSettings(url=store_settings.url, database="by_hand"), role="any") as store:
        store.command("CREATE DATABASE by_hand", use_database=False)
        for statement in split_statements(printed):
            store.command(statement)
        made = store.query(COLUMNS, {"d": "by_hand"}).rows
    tables = {row[0] for row in made}
    expected = migrated_store.query(COLUMNS, {"d": migrated_store.database}).rows
    assert made == [row for row in expected if row[0] in tables]
    assert {row[0] for row in expected} - tables == {"schema_migrations", "schema_lock_1"}


def test_ttls_of_the_settings_are_shown_applied_and_then_up_to_date(tmp_path: Path) -> None:
    config = tmp_path / "gnomon.toml"
    config.write_text(SETTINGS % (tmp_path / "store") + "ttl_days = { pairs = 90, requests = 0 }\n")
    assert "TTL" in gnomon("migrate", "--dry-run", cwd=tmp_path).stdout
    first = gnomon("migrate", cwd=tmp_path).stdout.splitlines()
    assert first[0].startswith("applied ") and first[0].endswith(" views, 2 TTLs")
    assert first[-2:] == ["  TTL of pairs: 400 days to 90 days", "  TTL of requests: 30 days to for ever"]
    assert gnomon("migrate", cwd=tmp_path).stdout == "up to date\n"
    # A folder alone says nothing of TTLs, so they stay.
    assert gnomon("migrate", "--dir", "store", cwd=tmp_path).stdout == "up to date\n"
    config.write_text(config.read_text().replace("pairs = 90", "pairs = 30"))
    assert gnomon("migrate", "--dry-run", "--sql", cwd=tmp_path).stdout.splitlines() == [
        "-- would apply 1 TTL",
        "",
        "-- TTL of pairs: 90 days to 30 days",
        "ALTER TABLE pairs MODIFY TTL toDate(ingested_at) + INTERVAL 30 DAY;",
    ]
    assert gnomon("migrate", "--dry-run", cwd=tmp_path).stdout.splitlines() == [
        "would apply 1 TTL",
        "  TTL of pairs: 90 days to 30 days",
    ]


def test_a_newer_database_and_a_changed_file_are_one_line_each(
    store_settings: StoreSettings, migrated_store: Store, tmp_path: Path
) -> None:
    folder = store_settings.url.removeprefix("chdb://")
    columns = ("number", "name", "checksum", "applied_at")
    now = migrated_store.query("SELECT now64(3, 'UTC')").rows[0][0]
    future = (9999, "9999_add_the_future.sql", "f" * 64, now)
    migrated_store.insert("schema_migrations", columns, [future])
    for arguments in ((), ("--dry-run",)):
        line = the_one_line(gnomon("migrate", "--dir", folder, *arguments, cwd=tmp_path))
        assert "database gnomon is newer than this program: it has migration 9999_add_the_future.sql" in line
    migrated_store.command(
        "ALTER TABLE schema_migrations DELETE WHERE number = 9999 SETTINGS mutations_sync = 2"
    )
    changed = (1, "0001_create_requests.sql", "e" * 64, now)
    migrated_store.insert("schema_migrations", columns, [changed])
    line = the_one_line(gnomon("migrate", "--dir", folder, cwd=tmp_path))
    assert "migration 0001_create_requests.sql was changed after it ran on database gnomon" in line
