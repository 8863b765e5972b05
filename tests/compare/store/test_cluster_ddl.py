"""The DDL for a cluster: every shipped statement through the engine's own parser.

No replicated table can be made here, for want of a Keeper. What the engine does check without one is
checked: the parser reads every statement, Distributed tables and the views over them are made on an
engine that knows a cluster, and the views can be planned there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compare.store import Store, migrate, open_store
from compare.store.cluster_ddl import for_cluster, local_table, one_copy_everywhere
from compare.store.live_schema import LiveTable
from compare.store.sql_text import split_statements
from compare.store.steps_text import steps_text
from ingest.errors import FatalError
from ingest.settings import StoreSettings, TtlDays

BY_EXPERIMENT = {
    "experiments", "detector_state", "alerts", "alert_evidence", "alert_actions", "alert_notices",
    "notice_deliveries", "alert_baselines", "drift_results", "controls", "token_use", "rollback_decisions",
    "rollback_state", "rollback_deliveries", "rollback_approvals", "snapshots", "verdicts",
}  # fmt: skip
BY_PARTITION = {
    "requests", "observations", "tokens", "positions", "findings", "noise_pairs", "forced_pairs", "outcomes",
    "dead_letters", "delivered_ranges", "pairs", "reference_answers",
}  # fmt: skip
BY_SET = {"golden_cases", "golden_runs", "golden_results", "golden_baselines"}

Format = Callable[[str], str]


@pytest.fixture(scope="module")
def formatted(migrated_store: Store) -> Format:
    def one(sql: str) -> str:
        (row,) = migrated_store.query("SELECT formatQuery({sql:String})", {"sql": sql}).rows
        return str(row[0])

    return one


def shipped_statements() -> list[tuple[str, str]]:
    """(where from, statement) of every migration and view."""
    files = [(migration.name, migration.sql) for migration in migrate.shipped_migrations()]
    files += list(migrate.shipped_views().items())
    return [(name, statement) for name, sql in files for statement in split_statements(sql)]


def test_every_generated_statement_is_read_by_the_parser_and_stable(formatted: Format) -> None:
    for where, statement in shipped_statements():
        for made in for_cluster(statement, "prod", "gnomon"):
            once = formatted(made)
            assert formatted(once) == once, where
            assert len(re.findall(r"\bON CLUSTER prod\b", once)) == 1, where


def test_a_table_becomes_a_replicated_one_and_a_distributed_one(
    formatted: Format, migrated_store: Store
) -> None:
    sorting_keys: dict[str, str] = dict(
        migrated_store.query(
            "SELECT name, sorting_key FROM system.tables WHERE database = {d:String}",
            {"d": migrated_store.database},
        ).rows
    )
    keys: dict[str, str] = {}
    dropped = {
        name for _, sql in shipped_statements() for name in re.findall(r"DROP TABLE IF EXISTS (\w+)", sql)
    }
    for where, statement in shipped_statements():
        plain = formatted(statement)
        found = re.match(r"CREATE TABLE IF NOT EXISTS (\w+)\n", plain)
        if not found:
            continue
        table = found[1]
        local, distributed = map(formatted, for_cluster(statement, "prod", "gnomon"))
        # Taking back what a cluster needs must give the statement that a single server gets.
        taken_back = local.replace(f"{table}_local ON CLUSTER prod", table, 1)
        path = (
            r"Replicated(\w*MergeTree)\('/clickhouse/tables/\{shard\}/\{database\}/\{table\}', '\{replica\}'"
        )
        taken_back, times = re.subn(path + r"(, )?", r"\1(", taken_back)
        assert times == 1, where
        window = "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800"
        assert (window in local) == ("non_replicated_deduplication_window" in plain), where
        taken_back = taken_back.replace(window, "non_replicated_deduplication_window = 10000")
        assert taken_back.replace("MergeTree()", "MergeTree") == plain, where

        target = re.fullmatch(
            rf"CREATE TABLE IF NOT EXISTS {table} ON CLUSTER prod AS {table}_local\n"
            rf"ENGINE = Distributed\('prod', 'gnomon', '{table}_local', cityHash64\((.*)\)\)",
            distributed,
        )
        assert target, where
        if table in dropped:
            continue
        keys[table] = target[1]
        # What decides the shard is a part of the key, so two versions of a key meet on one shard.
        assert set(target[1].split(", ")) <= set(sorting_keys[table].split(", ")), where
    assert {table for table in BY_EXPERIMENT if keys[table] == "experiment"} == BY_EXPERIMENT
    assert {table for table in BY_PARTITION if keys[table] == "topic_id, partition"} == BY_PARTITION
    assert {table for table in BY_SET if keys[table] == "set_name"} == BY_SET


def test_columns_are_added_below_first_and_dropped_above_first() -> None:
    column, index = (
        "ADD COLUMN IF NOT EXISTS a Map(String, UInt8) CODEC(ZSTD(1))",
        "ADD INDEX i a TYPE minmax",
    )
    assert for_cluster(f"-- why\nALTER TABLE pairs\n {column}, {index}", "c", "g") == [
        f"ALTER TABLE pairs_local ON CLUSTER 'c'\n    {column},\n    {index}",
        f"ALTER TABLE pairs ON CLUSTER 'c'\n    {column}",
    ]
    assert for_cluster("ALTER TABLE pairs DROP COLUMN IF EXISTS a", "c", "g") == [
        "ALTER TABLE pairs ON CLUSTER 'c'\n    DROP COLUMN IF EXISTS a",
        "ALTER TABLE pairs_local ON CLUSTER 'c'\n    DROP COLUMN IF EXISTS a",
    ]
    assert for_cluster("ALTER TABLE pairs MODIFY SETTING ttl_only_drop_parts = 0", "c", "g") == [
        "ALTER TABLE pairs_local ON CLUSTER 'c'\n    MODIFY SETTING ttl_only_drop_parts = 0"
    ]
    assert for_cluster("DROP TABLE IF EXISTS pairs", "c", "g") == [
        "DROP TABLE IF EXISTS pairs ON CLUSTER 'c' SYNC",
        "DROP TABLE IF EXISTS pairs_local ON CLUSTER 'c' SYNC",
    ]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT a FROM t WHERE a IN (SELECT 1)", "SELECT a FROM t WHERE a GLOBAL IN (SELECT 1)"),
        ("SELECT a FROM t WHERE a not in ( WITH 1 AS x SELECT x )",
         "SELECT a FROM t WHERE a GLOBAL not in ( WITH 1 AS x SELECT x )"),
        ("SELECT a FROM t WHERE a IN (1, 2) AND b IN c", "SELECT a FROM t WHERE a IN (1, 2) AND b IN c"),
        ("SELECT 2 GLOBAL NOT IN (SELECT 1)", "SELECT 2 GLOBAL NOT IN (SELECT 1)"),
        ("SELECT 'x IN (SELECT 1)', `in` FROM t LEFT ANY JOIN u USING a",
         "SELECT 'x IN (SELECT 1)', `in` FROM t GLOBAL LEFT ANY JOIN u USING a"),
        ("SELECT a FROM t JOIN u USING a ARRAY JOIN b LEFT ARRAY JOIN c",
         "SELECT a FROM t GLOBAL JOIN u USING a ARRAY JOIN b LEFT ARRAY JOIN c"),
    ],
)  # fmt: skip
def test_the_other_side_is_asked_of_all_shards(select: str, expected: str, formatted: Format) -> None:
    (made,) = for_cluster(f"CREATE OR REPLACE VIEW v AS {select}", "c", "g")
    assert made == f"CREATE OR REPLACE VIEW v ON CLUSTER 'c' AS {expected}"
    assert formatted(formatted(made)) == formatted(made)


@pytest.mark.parametrize(
    "statement",
    [
        "RENAME TABLE a TO b",
        "INSERT INTO a SELECT 1",
        "CREATE TABLE a (x UInt8) ENGINE = MergeTree ORDER BY x",
        "CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = Log",
        "DROP TABLE a",
    ],
)
def test_what_has_no_form_for_a_cluster_is_refused(statement: str) -> None:
    with pytest.raises(FatalError, match="has no form for a cluster: " + statement.split(" ")[0]):
        for_cluster(statement, "c", "g")


def test_a_table_that_no_key_can_shard_is_refused() -> None:
    with pytest.raises(FatalError, match=r"table a cannot be sharded: its ORDER BY has neither"):
        for_cluster("CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY (x)", "c", "g")


def test_the_state_table_is_whole_on_every_host(formatted: Format) -> None:
    made = formatted(one_copy_everywhere(migrate._STATE_TABLE, "prod"))
    assert formatted(made) == made
    assert "CREATE TABLE IF NOT EXISTS schema_migrations ON CLUSTER prod\n" in made
    path = "'/clickhouse/tables/all/{database}/{table}', '{shard}-{replica}', applied_at"
    assert f"ENGINE = ReplicatedReplacingMergeTree({path})\nORDER BY number" in made


def test_a_plan_for_a_cluster_shows_the_generated_statements(
    store_settings: StoreSettings, formatted: Format
) -> None:
    settings = StoreSettings(
        url=store_settings.url, database="other", cluster="prod", ttl_days=TtlDays(pairs=90)
    )
    with open_store(settings, role="any") as store:
        text = steps_text(migrate.plan(store, settings), verb="would apply", with_sql=True)
    statements = split_statements(text)
    expected = [made for _, one in shipped_statements() for made in for_cluster(one, "prod", store.database)]
    assert len(statements) == len(expected) + 1
    assert statements[-1].endswith(
        "ALTER TABLE pairs_local ON CLUSTER 'prod' MODIFY TTL toDate(ingested_at) + INTERVAL 90 DAY"
    )
    for statement in statements:
        assert "ON CLUSTER prod" in formatted(statement)


_ON_AN_ENGINE_THAT_KNOWS_A_CLUSTER = """
import json, sys
import chdb
folder, statements, views, refused = json.load(sys.stdin)
engine = chdb.connect(f"{folder}/store?config-file={folder}/config.xml")
engine.query("CREATE DATABASE g")
engine.query("USE g")
for statement in statements:
    engine.query(statement)
columns = {}
for view in views:
    rows = str(engine.query(f"DESCRIBE TABLE {view} FORMAT JSONCompact"))
    columns[view] = [row[:2] for row in json.loads(rows)["data"]]
def planned(select):
    try:
        plan = str(engine.query(f"EXPLAIN {select}", "TSV"))
    except Exception as error:
        return str(error)
    return "reads remotely" if "ReadFromRemote" in plan else plan
plans = {view: planned(f"SELECT * FROM {view}") for view in views}
print(json.dumps([columns, plans, planned(refused)]))
"""
_CONFIG = """<clickhouse><remote_servers><prod>
<shard><replica><host>127.0.0.1</host><port>1</port></replica></shard>
<shard><replica><host>127.0.0.2</host><port>1</port></replica></shard>
</prod></remote_servers></clickhouse>"""


def test_an_engine_that_knows_the_cluster_makes_all_but_the_replication(
    tmp_path: Path, migrated_store: Store
) -> None:
    """Distributed tables, their ALTERs, and the views on them, without ON CLUSTER and Replicated."""
    statements: list[str] = []
    made_views: dict[str, str] = {}
    for _, statement in shipped_statements():
        for made in for_cluster(statement, "prod", "g"):
            text = re.sub(r"ENGINE = Replicated(\w+)\('[^']*', '[^']*'(?:, )?", r"ENGINE = \1(", made)
            statements.append(text.replace(" ON CLUSTER 'prod'", ""))
            made_views |= dict.fromkeys(re.findall(r"^CREATE OR REPLACE VIEW (\w+)", text), text)
    # A view with parameters cannot be described without them.
    views = [view for view, text in made_views.items() if not re.search(r"\{\w+:", text)]
    (tmp_path / "config.xml").write_text(_CONFIG)
    without_global = "SELECT count() FROM outcomes WHERE `offset` IN (SELECT `offset` FROM pairs)"
    child = subprocess.run(
        [sys.executable, "-c", _ON_AN_ENGINE_THAT_KNOWS_A_CLUSTER],
        input=json.dumps([str(tmp_path), statements, views, without_global]),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    columns, plans, refused = json.loads(child.stdout)
    with_parameters = {"pair_beside_v1", "pairs_of_request_v1", "rollup_range_v1"}
    assert set(migrate.shipped_views()) - set(columns) == with_parameters
    for view in views:
        single = [list(row[:2]) for row in migrated_store.query(f"DESCRIBE TABLE {view}")]
        assert columns[view] == single, view
    # Planning asks the shards for the inner side of a GLOBAL IN; no host is there to answer.
    asking = {view for view, plan in plans.items() if "ALL_CONNECTION_TRIES_FAILED" in plan}
    assert {"alerts_v1"} <= asking <= {view for view in views if "GLOBAL" in made_views[view]}
    assert {plan for view, plan in plans.items() if view not in asking} == {"reads remotely"}
    # What a single server runs is refused at once: the GLOBAL words are what makes it work.
    assert "Double-distributed IN/JOIN subqueries is denied" in refused


def test_a_database_of_a_single_server_is_not_spread_over_a_cluster(migrated_store: Store) -> None:
    with pytest.raises(FatalError, match=r"database gnomon was made without store.cluster"):
        migrate.plan(migrated_store, StoreSettings(url="http://h", cluster="prod"))


def test_a_database_of_a_cluster_needs_the_clusters_name(migrated_store: Store) -> None:
    engine = one_copy_everywhere(migrate._STATE_TABLE, "prod").split("ENGINE = ")[1]
    live = {"schema_migrations": LiveTable("ReplicatedReplacingMergeTree", engine, "")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "live_tables", lambda _: live)
        with pytest.raises(FatalError, match=r"was made for a cluster: set store.cluster to its name"):
            migrate.plan(migrated_store)


def test_a_single_server_has_no_local_tables() -> None:
    assert (local_table("pairs", None), local_table("pairs", "c")) == ("pairs", "pairs_local")
