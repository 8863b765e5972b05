from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from compare.store import Store, migrate, open_store
from ingest.errors import FatalError
from ingest.settings import StoreSettings


@pytest.fixture
def store(store_settings: StoreSettings, request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty database of the test's own."""
    name = "m_" + "".join(char if char.isalnum() else "_" for char in request.node.name)[:40]
    with open_store(StoreSettings(url=store_settings.url, database=name), role="any") as store:
        yield store
        store.command(f"DROP DATABASE IF EXISTS `{name}`", use_database=False)


@pytest.fixture(scope="module", autouse=True)
def engine(store_settings: StoreSettings) -> Iterator[Store]:
    """Keeps the engine open between the tests."""
    with open_store(store_settings, role="owner") as store:
        yield store


def migrations(folder: Path, **files: str) -> list[migrate.Migration]:
    for name, sql in files.items():
        (folder / f"{name.removeprefix('m')}.sql").write_text(sql)
    return migrate.shipped_migrations(folder)


ONE = "CREATE TABLE IF NOT EXISTS one (a UInt8) ENGINE = MergeTree ORDER BY a"
TWO = """-- two; with a semicolon in a comment
ALTER TABLE one ADD COLUMN IF NOT EXISTS b String DEFAULT ';';
ALTER TABLE one ADD COLUMN IF NOT EXISTS c UInt8;
"""


def test_an_empty_database_gets_every_migration_and_view_once(store: Store) -> None:
    shipped = [migration.name for migration in migrate.shipped_migrations()]
    views = sorted(migrate.shipped_views())
    for steps in (migrate.plan(store), migrate.apply(store)):
        assert [step.name for step in steps if step.kind == "migration"] == shipped
        assert [step.name for step in steps if step.kind == "view"] == views
        assert len(steps) == len(shipped) + len(views)
    assert migrate.plan(store) == []
    assert migrate.apply(store) == []
    live = store.query(
        "SELECT name FROM system.tables WHERE database = {d:String} AND engine = 'View'",
        {"d": store.database},
    )
    assert sorted(row[0] for row in live) == views


def test_a_plan_changes_nothing(store: Store, store_settings: StoreSettings) -> None:
    assert migrate.plan(store)
    with open_store(StoreSettings(url=store_settings.url, database="default"), role="any") as other:
        sql = "SELECT name FROM system.databases WHERE name = {name:String}"
        assert other.query(sql, {"name": store.database}).rows == []


def test_several_statements_of_a_file_all_run(store: Store, tmp_path: Path) -> None:
    apply_without_views(store, migrations(tmp_path, m0001_create_one=ONE, m0002_widen_one=TWO))
    assert [row[0] for row in store.query("DESCRIBE TABLE one")] == ["a", "b", "c"]


def apply_without_views(store: Store, shipped: list[migrate.Migration]) -> list[str]:
    """The shipped views need the shipped tables, which these tests do not make."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "shipped_views", dict)
        return [step.name for step in migrate.apply(store, shipped=shipped)]


def test_a_migration_that_was_cut_off_before_it_was_recorded_runs_again(store: Store, tmp_path: Path) -> None:
    shipped = migrations(tmp_path, m0001_create_one=ONE, m0002_widen_one=TWO)
    apply_without_views(store, shipped)
    store.command("ALTER TABLE schema_migrations DELETE WHERE number = 2 SETTINGS mutations_sync = 2")
    assert apply_without_views(store, shipped) == ["0002_widen_one.sql"]


def test_a_shipped_file_that_changed_is_refused(store: Store, tmp_path: Path) -> None:
    apply_without_views(store, migrations(tmp_path, m0001_create_one=ONE))
    changed = migrations(tmp_path, m0001_create_one=ONE + " ")
    for act in (partial(migrate.plan, store, shipped=changed), partial(apply_without_views, store, changed)):
        with pytest.raises(
            FatalError, match=r"migration 0001_create_one.sql was changed after it ran on database"
        ) as caught:
            act()
        assert "\n" not in str(caught.value)


def test_a_number_that_another_file_took_is_refused_with_both_names(store: Store, tmp_path: Path) -> None:
    apply_without_views(store, migrations(tmp_path, m0001_create_one=ONE))
    (tmp_path / "0001_create_one.sql").rename(tmp_path / "old")
    other = migrations(tmp_path, m0001_create_two=TWO)
    with pytest.raises(
        FatalError, match=r"0001_create_two.sql was changed after it ran as 0001_create_one.sql"
    ):
        migrate.plan(store, shipped=other)


def test_a_number_in_the_middle_that_is_new_runs(store: Store, tmp_path: Path) -> None:
    apply_without_views(store, migrations(tmp_path, m0001_create_one=ONE, m0100_widen_one=TWO))
    third = "CREATE TABLE IF NOT EXISTS three (a UInt8) ENGINE = MergeTree ORDER BY a"
    shipped = migrations(tmp_path, m0050_create_three=third)
    assert apply_without_views(store, shipped) == ["0050_create_three.sql"]


def test_every_shipped_statement_may_run_twice(store: Store) -> None:
    migrate.apply(store)
    columns = (
        "SELECT table, name, type, position FROM system.columns WHERE database = {d:String} ORDER BY 1, 4"
    )
    before = store.query(columns, {"d": store.database}).rows
    store.command("TRUNCATE TABLE schema_migrations")
    again = [step.name for step in migrate.apply(store) if step.kind == "migration"]
    assert again == [migration.name for migration in migrate.shipped_migrations()]
    # The lock's table has the generation in its name.
    lock = {"schema_lock_1", "schema_lock_2"}
    assert [row for row in store.query(columns, {"d": store.database}) if row[0] not in lock] == [
        row for row in before if row[0] not in lock
    ]


def test_line_ends_are_no_change(store: Store, tmp_path: Path) -> None:
    apply_without_views(store, migrations(tmp_path, m0001_create_one=ONE + "\n"))
    (tmp_path / "0001_create_one.sql").write_bytes((ONE + "\r\n").encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "shipped_views", dict)
        assert migrate.plan(store, shipped=migrate.shipped_migrations(tmp_path)) == []


def test_a_newer_database_is_refused(store: Store, tmp_path: Path) -> None:
    both = migrations(tmp_path, m0001_create_one=ONE, m0002_widen_one=TWO)
    apply_without_views(store, both)
    with pytest.raises(FatalError, match=r"is newer than this program: it has migration 0002_widen_one.sql"):
        migrate.plan(store, shipped=both[:1])


def test_two_files_with_one_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"0001_create_one.sql and 0001_create_two.sql share the number 1"):
        migrations(tmp_path, m0001_create_one=ONE, m0001_create_two=ONE)


def test_a_misnamed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"1_create.sql is not named"):
        migrations(tmp_path, m1_create=ONE)


def test_a_broken_migration_names_itself(store: Store, tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"^migration 0001_create_one.sql: store .*(?i:syntax)"):
        apply_without_views(store, migrations(tmp_path, m0001_create_one="CREATE TABEL one"))
    steps = migrate.plan(store, shipped=migrate.shipped_migrations(tmp_path))
    assert steps[0].name == "0001_create_one.sql"


def apply_views(store: Store, **views: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "shipped_views", lambda: views)
        return [step.name for step in migrate.apply(store, shipped=[])]


def test_views_may_read_views_in_any_order(store: Store) -> None:
    views = {
        "a_v1": "CREATE OR REPLACE VIEW a_v1 AS SELECT x FROM b_v1",
        "b_v1": "CREATE OR REPLACE VIEW b_v1 AS SELECT 1 AS x",
    }
    assert apply_views(store, **views) == ["a_v1", "b_v1"]
    assert store.query("SELECT x FROM a_v1").rows == [(1,)]
    with pytest.raises(FatalError, match=r"^view c_v1: .*nowhere"):
        apply_views(store, c_v1="CREATE OR REPLACE VIEW c_v1 AS SELECT x FROM nowhere")


def test_a_view_is_made_anew_when_its_text_changes_or_it_is_gone(store: Store) -> None:
    one = "CREATE OR REPLACE VIEW a_v1 AS SELECT 1 AS x -- a comment at the end"
    assert apply_views(store, a_v1=one) == ["a_v1"]
    assert apply_views(store, a_v1=one) == []
    assert apply_views(store, a_v1=one.replace("SELECT 1", "SELECT 2")) == ["a_v1"]
    assert store.query("SELECT x FROM a_v1").rows == [(2,)]
    store.command("DROP VIEW a_v1")
    assert apply_views(store, a_v1=one) == ["a_v1"]


def test_a_migration_makes_the_views_anew_for_they_keep_column_types(store: Store, tmp_path: Path) -> None:
    view = {"one_v1": "CREATE OR REPLACE VIEW one_v1 AS SELECT * FROM one"}
    widen = "ALTER TABLE one MODIFY COLUMN b UInt32; ALTER TABLE one ADD COLUMN IF NOT EXISTS c UInt8"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "shipped_views", lambda: view)
        first = "CREATE TABLE IF NOT EXISTS one (a UInt8, b UInt8) ENGINE = MergeTree ORDER BY a"
        migrate.apply(store, shipped=migrations(tmp_path, m0001_create_one=first))
        migrate.apply(store, shipped=migrations(tmp_path, m0002_widen_one=widen))
    assert [row[:2] for row in store.query("DESCRIBE TABLE one_v1")] == [
        ("a", "UInt8"),
        ("b", "UInt32"),
        ("c", "UInt8"),
    ]


def test_a_view_file_with_two_statements_is_refused(store: Store) -> None:
    with pytest.raises(FatalError, match=r"^view a_v1: sql/views/a_v1.sql must hold one statement"):
        apply_views(store, a_v1="SELECT 1; SELECT 2")


def test_every_view_states_its_grain_deduplication_and_time_zone() -> None:
    for name, sql in migrate.shipped_views().items():
        header = [line for line in sql.splitlines() if line.startswith("--")]
        text = "\n".join(header)
        for word in ("-- Grain: ", "-- Deduplication: ", "-- Time zone: UTC."):
            assert word in text, f"{name} lacks {word!r}"
        assert f"CREATE OR REPLACE VIEW {name} AS" in sql, name
