"""Takes out orphans: rows of side tables whose pair was never stored, since the writer was killed between.

Side tables are written before `pairs` (design, section 7), so a row without its pair is either being
written right now or will never have one. Which of the two it is, is decided without a clock: at
assignment nobody writes the partition (`sweep_from`), and below the end of a stored delivered range
every record has its outcome (`sweep`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import local_table, on_cluster
from ingest.records import SourcePosition

SIDE_TABLES = ("observations", "tokens", "positions", "findings", "noise_pairs", "forced_pairs")
"""Each row belongs to one attempt, whose pair has the same position and version."""
SAFE_AGE = timedelta(hours=1)
"""Younger rows are left alone by `sweep`: belt and braces for a group that was set back by hand."""
REQUEST_AGE = timedelta(days=1)
"""The same for `requests`, which all experiments on the topic share."""
LOOK_BACK = timedelta(days=7)
_STEP = timedelta(hours=1)
_AT_ONCE = 1_000
_MOST_ROWS = 100_000

_log = logging.getLogger(__name__)


class _Orphan(msgspec.Struct, frozen=True):
    topic_id: str
    partition: int
    offset: int
    version: int
    day: str


class Sweeper:
    """Sweeps what one experiment left. Blocks; for one thread. Raises what the store raises."""

    def __init__(self, store: Store, experiment: str, *, cluster: str | None = None) -> None:
        self._store = store
        self._experiment = experiment
        self._cluster = cluster
        self._swept_until: datetime | None = None
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End after the statement that is under way."""
        self._stopping.set()

    def sweep_from(self, where: SourcePosition) -> int:
        """Take out all orphans of one partition at or above an offset; how many attempts, over all tables.

        Only for a partition that was just assigned, when no insert of its former owner runs any more.
        """
        condition = (
            "topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` >= {start:UInt64}"
        )
        parameters = {"topic_id": where.topic_id, "partition": where.partition, "start": where.offset}
        # Observations are written before the other side tables: without one there, there is none.
        first, *others = SIDE_TABLES
        found = {first: self._orphans(first, condition, parameters)}
        tables = [*(others if found[first] else ()), "dead_letters"]
        if self._is_alone():
            tables.append("requests")
        found |= {table: self._orphans(table, condition, parameters) for table in tables}
        return sum(self._delete(table, orphans) for table, orphans in found.items())

    def sweep(self, now: datetime | None = None) -> int:
        """Take out orphans that are an hour old or older, of the last 7 days; how many, as `sweep_from`.

        A later call looks only at what came since.
        """
        until = (now or datetime.now(UTC)) - SAFE_AGE
        start = self._swept_until or until - LOOK_BACK
        ends = self._ends()
        swept = 0
        for table in (*SIDE_TABLES, "dead_letters", "requests"):
            late = REQUEST_AGE - SAFE_AGE if table == "requests" else timedelta()
            for since, to in self._hours(table, start - late, until - late):
                if self._stopping.is_set():
                    return swept
                condition = (
                    "ingested_at >= {since:DateTime64(3, 'UTC')} AND ingested_at < {to:DateTime64(3, 'UTC')}"
                )
                found = self._orphans(table, condition, {"since": since, "to": to})
                swept += self._delete(
                    table, [o for o in found if o.offset < ends.get((o.topic_id, o.partition), 0)]
                )
        self._swept_until = until
        if swept:
            _log.info("attempts that were never finished are taken out: %d over all tables", swept)
        return swept

    def _hours(self, table: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
        """The hours between, cut at both ends, that hold rows: one anti-join each keeps the memory small."""
        mine = "" if table == "requests" else "experiment = {experiment:String} AND "
        rows = self._store.query(
            f"SELECT DISTINCT toStartOfHour(ingested_at) AS hour FROM {table} WHERE {mine}"
            "ingested_at >= {start:DateTime64(3, 'UTC')} AND ingested_at < {end:DateTime64(3, 'UTC')}"
            " ORDER BY hour",
            {"experiment": self._experiment, "start": start, "end": end},
        ).rows
        return [(max(start, hour), min(end, hour + _STEP)) for (hour,) in rows]

    def _orphans(self, table: str, condition: str, parameters: dict[str, object]) -> list[_Orphan]:
        mine = "" if table == "requests" else "experiment = {experiment:String} AND "
        other, more = "pairs", ""
        if table == "dead_letters":
            # A refused row of a side table is kept here too; its pair may well be stored.
            other, more = "outcomes", " AND source = 'record'"
        rows = self._store.query(
            f"SELECT DISTINCT topic_id, `partition`, `offset`, version, _partition_id FROM {table}"
            f" WHERE {mine}{condition}{more} AND (topic_id, `partition`, `offset`, version)"
            f" {'GLOBAL ' if self._cluster else ''}NOT IN"
            f" (SELECT topic_id, `partition`, `offset`, version FROM {other} WHERE {mine}{condition})"
            f" LIMIT {_MOST_ROWS}",
            parameters | {"experiment": self._experiment},
        ).rows
        return [_Orphan(str(t), int(p), int(o), int(v), str(day)) for t, p, o, v, day in rows]

    def _delete(self, table: str, orphans: Sequence[_Orphan]) -> int:
        places = sorted({(orphan.day, orphan.topic_id, orphan.partition) for orphan in orphans})
        for day, topic_id, partition in places:
            place = (day, topic_id, partition)
            keys = [(o.offset, o.version) for o in orphans if (o.day, o.topic_id, o.partition) == place]
            for some in _in_chunks(keys):
                mine = "" if table == "requests" else "experiment = {experiment:String} AND "
                listed = ", ".join(f"({offset}, {version})" for offset, version in some)
                self._store.command(
                    f"DELETE FROM {local_table(table, self._cluster)}{on_cluster(self._cluster)}"
                    f" IN PARTITION ID '{day}' WHERE {mine}topic_id = {{topic_id:String}}"
                    f" AND `partition` = {{partition:UInt32}} AND (`offset`, version) IN ({listed})"
                    # Not waited for: a table whose merges are stopped would hold the partition up for ever.
                    " SETTINGS lightweight_deletes_sync = 0",
                    {"experiment": self._experiment, "topic_id": topic_id, "partition": partition},
                )
        return len(orphans)

    def _ends(self) -> dict[tuple[str, int], int]:
        rows = self._store.query(
            "SELECT topic_id, `partition`, max(end_offset) FROM delivered_ranges"
            " WHERE experiment = {experiment:String} GROUP BY topic_id, `partition`",
            {"experiment": self._experiment},
        ).rows
        return {(str(topic_id), int(partition)): int(end) for topic_id, partition, end in rows}

    def _is_alone(self) -> bool:
        """Whether no other experiment can be about to store a pair for a row of `requests`."""
        rows = self._store.query("SELECT DISTINCT experiment FROM experiments").rows
        return {str(name) for (name,) in rows} <= {self._experiment}


def _in_chunks(keys: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    left = iter(keys)
    while some := list(islice(left, _AT_ONCE)):
        yield some
