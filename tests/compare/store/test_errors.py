"""What an answer of the store means: come again, or never. The names of codes are the engine's own."""

from __future__ import annotations

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from compare.store import Store
from compare.store.errors import StoreBusyError, StoreQueryError, of_query
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
