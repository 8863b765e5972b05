"""A query for some days reads the partitions of those days only, whoever asks; and what FINAL then sees."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import clickhouse_connect
import pytest

from compare.store import Store, migrate
from compare.store.day_pruning import PRUNES_DAYS, knows_setting, without_setting
from compare.store.lockfile import read_owner
from compare.writer import Writer
from ingest.settings import StoreSettings
from tests.compare import batches

Ask = Callable[[str], str]

OF_DAYS = [
    "dead_letters_v1",
    "delivered_ranges_v1",
    "findings_v1",
    "forced_pairs_v1",
    "noise_pairs_v1",
    "observations_v1",
    "outcomes_v1",
    "pairs_v1",
    "positions_v1",
    "requests_v1",
    "tokens_v1",
]


@pytest.fixture(scope="module")
def topic_id(migrated_store: Store) -> str:
    """Offset 7 stored on two days, three days apart, with all that stands beside a pair."""
    topic_id = str(uuid.uuid4())
    for days in (3, 0):
        request = batches.mirrored(
            7,
            position=batches.position(7, topic_id=topic_id),
            ingested_at=batches.NOON - timedelta(days=days),
        )
        others = (batches.other(8, "dead_letter", "broken", topic_id=topic_id),)
        ranges = (batches.delivered(0, 9, 9, topic_id=topic_id),)
        batch = batches.batch(batches.compared(7, request=request), others=others, ranges=ranges)
        Writer(migrated_store, threading.Event()).write(batch)
    return topic_id


@pytest.fixture(params=["in the process", "reader over http", "writer over http"])
def ask(request: pytest.FixtureRequest, migrated_store: Store, store_settings: StoreSettings) -> Ask:
    """A client that gives no setting of its own."""
    if request.param == "in the process":
        return lambda sql: "\n".join(str(row[0]) for row in migrated_store.query(sql).rows)
    owner = read_owner(Path(store_settings.url.removeprefix("chdb://")))
    assert owner is not None
    address = urlsplit(owner.url)
    client = clickhouse_connect.get_client(
        host=address.hostname or "",
        port=address.port or 0,
        password=owner.reader_token if "reader" in request.param else owner.writer_token,
        database=store_settings.database,
    )
    request.addfinalizer(client.close)
    return lambda sql: "\n".join(str(row[0]) for row in client.query(sql).result_rows)


def parts(explained: str) -> list[tuple[int, int]]:
    """Parts read, of how many, after each index of each table."""
    return [(int(some), int(all_)) for some, all_ in re.findall(r"Parts: (\d+)/(\d+)", explained)]


def day(days_ago: int) -> str:
    return f"toDateTime64('{batches.NOON - timedelta(days=days_ago):%F} 00:00:00', 3, 'UTC')"


def noon(days_ago: int) -> str:
    return f"toDateTime64('{batches.NOON - timedelta(days=days_ago):%F %T}', 3, 'UTC')"


def test_one_day_of_pairs_is_one_days_parts(ask: Ask, migrated_store: Store, topic_id: str) -> None:
    select = f"SELECT count() FROM pairs_v1 WHERE ingested_at >= {day(3)} AND ingested_at < {day(2)}"
    ((that_day, everything),) = migrated_store.query(
        f"SELECT countIf(`partition` = toString(toDate({day(3)}))), count() FROM system.parts"
        " WHERE database = currentDatabase() AND table = 'pairs' AND active"
    ).rows
    read = min(some for some, _ in parts(ask(f"EXPLAIN indexes = 1 {select}")))
    assert 0 < read <= that_day < everything


@pytest.mark.parametrize("view", OF_DAYS)
def test_every_view_of_days_prunes(ask: Ask, topic_id: str, view: str) -> None:
    explained = ask(f"EXPLAIN indexes = 1 SELECT count() FROM {view} WHERE ingested_at >= {day(-9)}")
    some, everything = parts(explained)[0]
    assert (some, everything > 0) == (0, True)


def test_views_of_days_are_those_that_say_so() -> None:
    assert [name for name, sql in migrate.shipped_views().items() if PRUNES_DAYS in sql] == OF_DAYS


def test_a_record_of_two_days_is_one_row_without_a_bound_and_under_a_lower_one(
    ask: Ask, topic_id: str
) -> None:
    select = f"SELECT toString(ingested_at) FROM pairs_v1 WHERE topic_id = '{topic_id}'"
    last = f"{batches.NOON:%F %T}.000"
    assert ask(select) == last
    assert ask(f"{select} AND ingested_at >= {day(3)}") == last


def test_under_an_upper_bound_it_is_what_the_last_day_read_left(ask: Ask, topic_id: str) -> None:
    select = f"SELECT toString(ingested_at) FROM pairs_v1 WHERE topic_id = '{topic_id}'"
    first = f"{batches.NOON - timedelta(days=3):%F %T}.000"
    assert ask(f"{select} AND ingested_at < {day(0)}") == first


def test_a_condition_on_what_is_no_key_is_tested_on_last_versions_only(ask: Ask, topic_id: str) -> None:
    select = f"SELECT count() FROM pairs_v1 WHERE topic_id = '{topic_id}' AND `offset` = 7"
    explained = ask(f"EXPLAIN actions = 1 {select} AND ingested_at < {day(0)} AND tenant != ''")
    (prewhere,) = re.findall(r"Prewhere filter column: (.*)", explained)
    assert ("offset" in prewhere, "tenant" in prewhere, "ingested_at" in prewhere) == (True, False, False)
    # Only the version of three days ago passes; put before FINAL, the condition would show it.
    assert ask(f"{select} AND cityHash64(ingested_at) = cityHash64({noon(3)})") == "0"
    assert ask(f"{select} AND cityHash64(ingested_at) = cityHash64({noon(0)})") == "1"


def test_final_by_partition_would_count_it_twice(migrated_store: Store, topic_id: str) -> None:
    count = f"SELECT count() FROM pairs FINAL WHERE topic_id = '{topic_id}'"
    apart = f"{count} SETTINGS do_not_merge_across_partitions_select_final = 1"
    assert migrated_store.query(count).rows == [(1,)]
    assert migrated_store.query(apart).rows == [(2,)]


def test_versions_rise_with_ingested_at(migrated_store: Store, topic_id: str) -> None:
    for view in OF_DAYS:
        table = view.removesuffix("_v1")
        ((rows, odd),) = migrated_store.query(
            "SELECT count(), countIf(intDiv(version, 1000) != toUnixTimestamp64Milli(ingested_at))"
            f" FROM {table} WHERE topic_id = '{topic_id}'"
        ).rows
        assert (rows > 0, odd) == (True, 0), table


def test_a_server_without_the_setting_gets_views_without_it(migrated_store: Store) -> None:
    assert knows_setting(migrated_store)
    for name, sql in migrate.shipped_views().items():
        made = without_setting(sql)
        assert PRUNES_DAYS not in made, name
        assert sql.startswith(made.rstrip("\n")), name
