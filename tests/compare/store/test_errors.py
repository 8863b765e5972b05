"""What an answer of the store means: come again, or never. The names of codes are the engine's own."""

from __future__ import annotations

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from compare.store import Store
from compare.store.errors import StoreBusyError, StoreQueryError, of_query, one_line
from compare.store.shipped_names import shipped_names
from ingest.errors import RetryError

PASSING = """
    CANNOT_WRITE_TO_FILE_DESCRIPTOR TIMEOUT_EXCEEDED TOO_SLOW CANNOT_ALLOCATE_MEMORY
    TOO_MANY_SIMULTANEOUS_QUERIES NO_FREE_CONNECTION SOCKET_TIMEOUT NETWORK_ERROR NO_ZOOKEEPER ABORTED
    MEMORY_LIMIT_EXCEEDED TABLE_IS_READ_ONLY
    NOT_ENOUGH_SPACE TOO_MANY_PARTS ALL_CONNECTION_TRIES_FAILED TOO_FEW_LIVE_REPLICAS UNKNOWN_STATUS_OF_INSERT
    QUERY_WAS_CANCELLED CANNOT_SCHEDULE_TASK DEADLOCK_AVOIDED S3_ERROR SERVER_OVERLOADED KEEPER_EXCEPTION
"""
FOR_GOOD = (
    "UNKNOWN_TABLE SYNTAX_ERROR UNKNOWN_IDENTIFIER ACCESS_DENIED AUTHENTICATION_FAILED READONLY TYPE_MISMATCH"
)


@pytest.mark.parametrize(("names", "family"), [(PASSING, StoreBusyError), (FOR_GOOD, StoreQueryError)])
def test_what_may_pass_is_tried_again_and_what_may_not_ends_it(
    migrated_store: Store, names: str, family: type[Exception]
) -> None:
    codes = migrated_store.query(
        "SELECT errorCodeToName(number) AS name, number FROM numbers(1100) WHERE name != ''"
    ).rows
    known: dict[str, int] = dict(codes)
    for name in names.split():
        error = of_query(DatabaseError(name, code=known[name], name=name), "here")
        assert type(error) is family, name


def test_a_query_that_the_store_is_too_slow_for_may_be_asked_again(migrated_store: Store) -> None:
    with pytest.raises(RetryError, match="TIMEOUT_EXCEEDED"):
        migrated_store.query("SELECT sum(number) FROM numbers(10000000000) SETTINGS max_execution_time = 0.2")
    assert migrated_store.query("SELECT 1").rows == [(1,)]


@pytest.mark.parametrize(
    "statement", ["SELECT 1 FROM pair_v1", "SELECT 1 FROM foo.bar", "SELECT 1 FROM gnomon.mine_v1"]
)
def test_a_name_of_ones_own_that_is_not_there_is_no_reason_to_migrate(
    migrated_store: Store, statement: str
) -> None:
    with pytest.raises(StoreQueryError, match="does not exist") as found:
        migrated_store.query(statement)
    assert "gnomon migrate" not in str(found.value)


@pytest.mark.parametrize("name", ["pairs_v1", "rollup_range_v1", "pairs", "alert_notices"])
@pytest.mark.parametrize("statement", ["SELECT 1 FROM {}", "INSERT INTO {} VALUES (1)", "DROP TABLE {}"])
def test_an_old_store_that_lacks_a_name_of_ours_is_told_to_migrate(
    migrated_store: Store, statement: str, name: str
) -> None:
    """The engine's own words for a name that is not there, with one of ours in its place."""
    with pytest.raises(StoreQueryError) as found:
        migrated_store.command(statement.format("nowhere_v1"))
    words = one_line(found.value.__cause__ or found.value).replace("nowhere_v1", name)
    old = of_query(DatabaseError(words, code=60, name="UNKNOWN_TABLE"), "here")
    assert str(old).endswith("(the table or view does not exist: run `gnomon migrate`)")


@pytest.mark.parametrize("prefix", ["", "a."])
@pytest.mark.parametrize(
    ("column", "view", "is_ours"),
    [("raised_at", "alerts_v1", True), ("raised_att", "alerts_v1", False), ("raised_at", "pairs_v1", False)],
)
def test_an_old_view_that_lacks_a_column_of_ours_is_told_to_migrate(
    migrated_store: Store, prefix: str, column: str, view: str, is_ours: bool
) -> None:
    """The engine's own words for a column that is not there, with another one in its place."""
    with pytest.raises(StoreQueryError) as found:
        migrated_store.query(f"SELECT {prefix}nothing_such FROM {view} AS a")
    words = str(found.value.__cause__).replace("nothing_such", column)
    error = of_query(DatabaseError(words, code=47, name="UNKNOWN_IDENTIFIER"), "here")
    assert isinstance(error, StoreQueryError)
    assert "(the query names something that does not exist" in str(error)
    assert ("gnomon migrate" in str(error)) is is_ours


def test_an_empty_store_is_told_to_migrate() -> None:
    words = "Database gnomon does not exist. (UNKNOWN_DATABASE)"
    error = of_query(DatabaseError(words, code=81, name="UNKNOWN_DATABASE"), "here", "gnomon")
    assert str(error).endswith("(the database does not exist: run `gnomon migrate`)")


def test_every_table_and_view_of_the_store_is_known_as_ours(migrated_store: Store) -> None:
    names = migrated_store.query(
        "SELECT name FROM system.tables WHERE database = {database:String}"
        " AND NOT startsWith(name, 'alert_lease_') AND NOT match(name, 'lease|lock')",
        {"database": migrated_store.database},
    ).rows
    assert {str(name) for (name,) in names} - shipped_names() == set()
