"""Who reads with which group, by what is stored, on the real engine."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from compare.group_check import group_warnings
from compare.store import Store


def _read(store: Store, experiment: str, group: str, at: datetime) -> None:
    row = {
        "experiment": experiment, "consumer_group": group, "topic": "t", "topic_id": str(uuid.uuid4()),
        "partition": 0, "first_offset": 0, "end_offset": 9, "records": 9, "ingested_at": at, "version": 1,
    }  # fmt: skip
    store.insert("delivered_ranges", tuple(row), [tuple(row.values())])


def test_who_else_reads_with_the_group_and_who_read_before(migrated_store: Store) -> None:
    store, now = migrated_store, datetime.now(UTC)
    assert group_warnings(store, "new", "gnomon-new") == []
    _read(store, "old", "shared", now)
    _read(store, "renamed-long-ago", "shared", now - timedelta(days=9))
    assert group_warnings(store, "old", "shared") == []
    assert group_warnings(store, "fresh", "shared") == [
        'the group "shared" was read by experiment "old": if that goes on, each takes records from the '
        'other; give experiment "fresh" a kafka.group of its own'
    ]
    [change] = group_warnings(store, "old", "gnomon-old")
    assert change.startswith(
        f'experiment "old" was read by the group "shared" until {now:%Y-%m-%d %H:%M} UTC'
    )
    assert change.endswith('kafka.group = "shared" goes on where that one was')
    _read(store, "old", "gnomon-old", now)
    assert group_warnings(store, "old", "gnomon-old") == []
