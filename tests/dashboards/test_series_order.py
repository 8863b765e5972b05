"""Which experiment the explorer opens on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from compare.store import open_store
from dashboards.questions import summary
from tests.compare.rollups.raw_rows import pair, put
from tests.fixtures.stores import MigratedAt


def test_a_replay_stands_behind_what_production_fed_within_a_day(
    tmp_path: Path, migrated_at: MigratedAt
) -> None:
    hours = {"fed": 3, "replayed": 1, "long ago": 40, "replayed long ago": 20}
    now = datetime.now(UTC)
    pairs, ranges = [], []
    for n, (name, ago) in enumerate(hours.items()):
        at = now - timedelta(hours=ago)
        pairs.append(pair(n, at, experiment=name) | {"ingested_at": at})
        group = f"replay/{name}" if "replayed" in name else "gnomon"
        ranges.append(
            {
                "experiment": name, "consumer_group": group, "topic": "t", "topic_id": "t", "partition": 0,
                "first_offset": n, "end_offset": n + 1, "records": 1, "ingested_at": at, "version": 1,
            }
        )  # fmt: skip
    with open_store(migrated_at(tmp_path), role="owner") as opened:
        put(opened, "pairs", pairs)
        put(opened, "delivered_ranges", ranges)
        known = summary.experiments(opened)
    assert [row["experiment"] for row in known] == ["fed", "replayed", "long ago", "replayed long ago"]
