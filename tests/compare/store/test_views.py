"""What the views promise about duplicates, late attempts and sums."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from compare.store import Store
from compare.writer import Writer
from tests.compare import batches


@pytest.fixture
def topic_id() -> str:
    return str(uuid.uuid4())


def write(store: Store, *pairs: Any, **others: Any) -> None:
    Writer(store, threading.Event()).write(batches.batch(*pairs, **others))


def ask(store: Store, select: str, topic_id: str) -> list[tuple[Any, ...]]:
    return store.query(f"{select} WHERE topic_id = {{topic_id:String}}", {"topic_id": topic_id}).rows


def test_a_pair_delivered_again_on_another_day_replaces_the_first(
    migrated_store: Store, topic_id: str
) -> None:
    where = batches.position(7, topic_id=topic_id)
    for days, finding_count in ((0, 1), (1, 0)):
        request = batches.mirrored(7, position=where, ingested_at=batches.NOON + timedelta(days=days))
        findings = None if finding_count else ()
        write(migrated_store, batches.compared(7, request=request, findings=findings))
    assert ask(migrated_store, "SELECT count() FROM pairs", topic_id) == [(2,)]
    assert ask(migrated_store, "SELECT ingested_at FROM pairs_v1", topic_id) == [
        (batches.NOON + timedelta(days=1),)
    ]
    assert ask(migrated_store, "SELECT count() FROM observations_v1", topic_id) == [(3,)]
    assert ask(migrated_store, "SELECT count() FROM requests_v1", topic_id) == [(1,)]
    assert ask(migrated_store, "SELECT count() FROM findings_v1", topic_id) == [(0,)]


def test_findings_are_one_row_each(migrated_store: Store, topic_id: str) -> None:
    request = batches.mirrored(7, position=batches.position(7, topic_id=topic_id))
    write(migrated_store, batches.compared(7, request=request))
    select = "SELECT finding_number, family, code, side, span_start, span_end, measured FROM findings_v1"
    assert ask(migrated_store, select, topic_id) == [(1, "repetition", "loop", "candidate", 3, 9, 4.0)]


def test_a_position_that_failed_and_was_compared_later_counts_once(
    migrated_store: Store, topic_id: str
) -> None:
    ranges = (batches.delivered(0, 2, 2, topic_id=topic_id),)
    failed = tuple(batches.other(n, "failed", "endpoint_away", topic_id=topic_id) for n in (0, 1))
    write(migrated_store, others=failed, ranges=ranges)
    request = batches.mirrored(0, position=batches.position(0, topic_id=topic_id))
    write(migrated_store, batches.compared(0, request=request), ranges=ranges)
    select = "SELECT consumed, compared, failed, unaccounted FROM accounting_v1"
    assert ask(migrated_store, select, topic_id) == [(2, 1, 1, 0)]


def test_two_candidates_are_two_pairs_and_one_compared_record(migrated_store: Store, topic_id: str) -> None:
    request = batches.mirrored(0, position=batches.position(0, topic_id=topic_id))
    pairs = [batches.compared(0, request=request, candidate_name=name) for name in ("q4", "q8")]
    write(migrated_store, *pairs, ranges=(batches.delivered(0, 1, 1, topic_id=topic_id),))
    assert ask(migrated_store, "SELECT count() FROM pairs_v1", topic_id) == [(2,)]
    assert ask(migrated_store, "SELECT compared, unaccounted FROM accounting_v1", topic_id) == [(1, 0)]


def test_a_lost_record_shows_as_unaccounted(migrated_store: Store, topic_id: str) -> None:
    others = (batches.other(0, topic_id=topic_id),)
    write(migrated_store, others=others, ranges=(batches.delivered(0, 3, 3, topic_id=topic_id),))
    assert ask(migrated_store, "SELECT unaccounted FROM accounting_v1", topic_id) == [(2,)]


def test_what_is_stored_before_a_slower_record_is_no_surplus(migrated_store: Store, topic_id: str) -> None:
    """Offset 2 is under way, 3 and 5 are stored; of 0 and 1 one is lost, which 3 and 5 do not make up for."""
    others = tuple(batches.other(n, topic_id=topic_id) for n in (0, 3, 5))
    write(migrated_store, others=others, ranges=(batches.delivered(0, 2, 2, topic_id=topic_id),))
    select = "SELECT consumed, skipped, unaccounted, stored_ahead FROM accounting_v1"
    assert ask(migrated_store, select, topic_id) == [(2, 3, 1, 2)]


def test_a_partition_without_a_range_and_a_second_group(migrated_store: Store, topic_id: str) -> None:
    one = batches.delivered(0, 2, 2, topic_id=topic_id)
    ranges = (one, msgspec.structs.replace(one, group="later", first_offset=1, end_offset=3))
    elsewhere = msgspec.structs.replace(batches.position(0, topic_id=topic_id), partition=1)
    pair = batches.compared(0, request=batches.mirrored(0, position=elsewhere))
    others = tuple(batches.other(n, topic_id=topic_id) for n in (0, 1, 2))
    write(migrated_store, pair, others=others, ranges=ranges)
    select = "SELECT consumed, compared, skipped, unaccounted, stored_ahead FROM accounting_v1"
    # Each group has read two records of partition 0; what is beyond its own range is ahead of it.
    assert ask(migrated_store, select, topic_id) == [(2, 1, 3, 0, 2)] * 2


def test_a_range_that_starts_where_another_did_replaces_it(migrated_store: Store, topic_id: str) -> None:
    for end in (2, 5):
        write(migrated_store, ranges=(batches.delivered(0, end, end, topic_id=topic_id),))
    assert ask(migrated_store, "SELECT consumed FROM accounting_v1", topic_id) == [(5,)]


def test_tables_follow_the_rules_of_the_design(migrated_store: Store) -> None:
    rows = migrated_store.query(
        "SELECT name, engine, partition_key, sorting_key, create_table_query FROM system.tables "
        "WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND name NOT LIKE '.%'"
    ).rows
    tables = {row[0]: row[1:] for row in rows}
    key = "experiment, candidate, topic_id, partition, offset"
    assert tables["pairs"][2] == key
    for name in ("observations", "tokens", "positions", "findings", "noise_pairs", "forced_pairs", "pairs"):
        engine, partition_key, sorting_key, created = tables[name]
        assert engine == "ReplacingMergeTree", name
        assert partition_key == "toDate(ingested_at)", name
        assert sorting_key.startswith("experiment, ") and sorting_key.endswith(
            "topic_id, partition, offset"
        ), name
        assert "TTL toDate(ingested_at)" in created, name
        assert "non_replicated_deduplication_window = 10000" in created, name


def test_numbers_of_positions_group_by_role(migrated_store: Store, topic_id: str) -> None:
    for offset in (7, 8):
        request = batches.mirrored(offset, position=batches.position(offset, topic_id=topic_id))
        write(migrated_store, batches.compared(offset, request=request))
    select = """
        SELECT r, count(), round(avg(kl), 4), round(avg(change), 4)
        FROM positions_v1 ARRAY JOIN role AS r, kl_lower_nats AS kl, probability_change AS change
        WHERE topic_id = {topic_id:String} GROUP BY r ORDER BY r
    """
    rows = migrated_store.query(select, {"topic_id": topic_id}).rows
    assert rows == [("key", 2, 0.01, -0.05), ("unknown", 2, None, None)]
    forced = "SELECT role, kl_lower_nats, js_lower_nats FROM forced_pairs_v1"
    assert ask(migrated_store, forced, topic_id) == [(["prose"], pytest.approx([0.01]), [None])] * 2
