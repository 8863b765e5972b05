"""`sql/grants/`: read by the real parser, and each role has what it needs and no more.

The embedded engine has no users, so rights themselves are not tried here; what can be told is: who is
granted what, that a view names its definer, and which rights the statements need that Gnomon really runs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from importlib import resources

import msgspec
import pytest

from compare.alerts.alert_log import write_alerts
from compare.purge import Selection, purge
from compare.rollups.rebuild import Rollups
from compare.store import Store, migrate, open_store
from compare.store.sql_text import split_statements
from compare.store.view_security import as_definer
from compare.writer import Writer
from ingest.errors import FatalError
from ingest.settings import StoreSettings, TtlDays
from tests.compare import batches
from tests.compare.purge_rows import alert, examples

_FOLDER = resources.files("sql").joinpath("grants")
_GRANT = re.compile(r"GRANT\s+(?P<rights>.*?)\s+ON\s+(?P<what>\S+)\s+TO\s+(?P<role>\w+)", re.DOTALL)


def statements() -> list[tuple[str, str]]:
    files = sorted(_FOLDER.iterdir(), key=lambda file: file.name)
    return [(file.name, one) for file in files for one in split_statements(file.read_text(encoding="utf-8"))]


def granted(role: str, what: str | None = None) -> dict[str, set[str]]:
    """Object to the rights on it."""
    found: dict[str, set[str]] = {}
    for name, statement in statements():
        if name == "writer_on_cluster.sql":
            continue
        match = _GRANT.search(statement)
        if match and match["role"] == role and what in (None, match["what"]):
            rights = {" ".join(right.split()) for right in match["rights"].split(",")}
            found.setdefault(match["what"], set()).update(rights)
    return found


def test_every_statement_is_read_by_the_parser(migrated_store: Store) -> None:
    assert len(statements()) > 30
    for name, statement in statements():
        (row,) = migrated_store.query("SELECT formatQuery({sql:String})", {"sql": statement}).rows
        assert "gnomon" in row[0], name


def test_every_right_is_one_that_the_engine_knows(migrated_store: Store) -> None:
    known = {
        name for (name,) in migrated_store.query("SELECT toString(privilege) FROM system.privileges").rows
    }
    rights = {
        right
        for role in ("gnomon_writer", "gnomon_analyst", "gnomon_dashboard")
        for one in granted(role).values()
        for right in one
    }
    assert rights - known == set()


@pytest.mark.parametrize("role", ["gnomon_analyst", "gnomon_dashboard"])
def test_readers_may_read_every_view_and_nothing_else(role: str) -> None:
    sizes = {"gnomon.*": {"SHOW TABLES"}, "system.parts": {"SELECT"}} if role == "gnomon_dashboard" else {}
    views = {f"gnomon.{view}": {"SELECT"} for view in migrate.shipped_views()}
    assert granted(role) == views | sizes


@pytest.mark.parametrize("role", ["analyst", "dashboard"])
def test_readers_cannot_lift_their_limits(role: str) -> None:
    (profile,) = [one for _, one in statements() if f"PROFILE IF NOT EXISTS gnomon_{role} " in one]
    lines = [line.strip(" ,") for line in profile.splitlines() if " = " in line]
    names = {line.split(" = ")[0] for line in lines}
    assert names >= {"readonly", "max_memory_usage", "max_execution_time", "max_result_rows"}
    for line in lines:
        # Zero means no limit to ClickHouse: a MAX alone would let it through.
        assert line == "readonly = 2" or line.endswith(" CONST") or re.search(r" MIN 1 MAX \d+$", line), line


def test_every_view_runs_with_its_makers_rights(migrated_store: Store) -> None:
    for view in migrate.shipped_views():
        (row,) = migrated_store.query(f"SHOW CREATE {view}").rows
        assert "DEFINER = default SQL SECURITY DEFINER" in row[0], view


def test_a_view_of_another_form_is_refused() -> None:
    with pytest.raises(FatalError, match="not a CREATE OR REPLACE VIEW"):
        as_definer("CREATE VIEW v AS SELECT 1")
    made = as_definer("CREATE OR REPLACE VIEW v ON CLUSTER 'c' AS SELECT 1")
    assert (
        made
        == "CREATE OR REPLACE VIEW v ON CLUSTER 'c'\nDEFINER = CURRENT_USER SQL SECURITY DEFINER AS SELECT 1"
    )


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Statements that are run, and `INSERT` for each insert."""
    seen: list[str] = []
    command, query, insert = Store.command, Store.query, Store.insert_columns

    def run_command(self: Store, sql: str, *arguments: object, **named: object) -> None:
        seen.append(sql)
        command(self, sql, *arguments, **named)  # type: ignore[arg-type]

    def run_query(self: Store, sql: str, *arguments: object) -> object:
        seen.append(sql)
        return query(self, sql, *arguments)  # type: ignore[arg-type]

    def run_insert(self: Store, *arguments: object, **named: object) -> None:
        seen.append("INSERT")
        insert(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "command", run_command)
    monkeypatch.setattr(Store, "query", run_query)
    monkeypatch.setattr(Store, "insert_columns", run_insert)
    yield seen


def rights_for(sql: str) -> set[str]:
    """What ClickHouse asks for one statement (InterpreterCreateQuery, InterpreterAlterQuery)."""
    plain = " ".join(re.sub(r"--[^\n]*", " ", sql).split())
    for head, rights in (
        ("CREATE DATABASE", {"CREATE DATABASE"}),
        ("CREATE OR REPLACE VIEW", {"CREATE VIEW", "DROP VIEW"}),
        ("CREATE TABLE", {"CREATE TABLE"}),
        ("DROP TABLE", {"DROP TABLE"}),
        ("INSERT", {"INSERT"}),
        ("DELETE FROM", {"ALTER DELETE"}),
        ("SELECT", {"SELECT"}),
        ("WITH", {"SELECT"}),
        ("DESCRIBE", {"SELECT"}),
    ):
        if plain.startswith(head):
            return rights
    found = re.match(
        r"ALTER TABLE \S+ ([A-Z]+ (?:PARTITION|TTL)|ADD (?:COLUMN|INDEX)"
        r"|MODIFY (?:COMMENT|SETTING)|DELETE|UPDATE)\b",
        plain,
    )
    assert found, plain[:80]
    known = {
        "MODIFY TTL": {"ALTER TTL"},
        "REMOVE TTL": {"ALTER TTL"},
        "MODIFY SETTING": {"ALTER SETTINGS"},
        "DROP PARTITION": {"ALTER DELETE"},
        "ATTACH PARTITION": {"INSERT", "SELECT"},
        "REPLACE PARTITION": {"ALTER DELETE", "INSERT", "SELECT"},
    }
    return known.get(found[1], {f"ALTER {found[1]}"})


def test_the_writer_has_exactly_what_migrate_run_and_purge_use(
    store_settings: StoreSettings, migrated_store: Store, recorded: list[str]
) -> None:
    database = msgspec.structs.replace(
        store_settings, database="gnomon_rights", ttl_days=TtlDays(tokens=3, pairs=0)
    )
    with open_store(database, role="any") as store:
        migrate.apply(store, database)
        Writer(store, threading.Event()).write(batches.batch(batches.compared(1), batches.compared(2)))
        write_alerts(store, [alert()])
        examples(store, "r-1")
        rollups = Rollups(store, database)
        assert rollups.rebuild_touched()
        assert purge(store, Selection(request_id="r-1")).is_clean
        assert rollups.rebuild_touched()
    needed = set().union(*map(rights_for, recorded))
    (rights,) = granted("gnomon_writer", "gnomon.*").values()
    assert needed == rights
    sources = {f"system.{name}" for sql in recorded for name in re.findall(r"\bsystem\.(\w+)", sql)}
    assert sources <= granted("gnomon_writer").keys()
