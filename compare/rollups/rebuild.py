"""Rebuilds the rollups of the days whose raw rows have changed, and swaps them in.

A day is made in a staging table of its own and put in place by `REPLACE PARTITION`: readers see the old
rows or the new ones, and a process that is killed at any point leaves the old ones, or the new. What a
rollup was made from stands in the rollup itself, so the swap changes both at once, and the next run finds
out what is left to do. Two processes at it at once waste work, no more.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime

import msgspec

from compare.rollups.select import fill_hours, fill_minutes, fill_worst, runs
from compare.rollups.source import (
    KEYS,
    Condition,
    Hour,
    earlier_days_with,
    hours_of_day,
    keys_of_day,
    outcomes_hash,
    parts_by_day,
)
from compare.store.client import Store
from compare.store.cluster_ddl import SHARD_BY_EXPERIMENT, local_table, on_cluster
from ingest.errors import RetryError
from ingest.settings import StoreSettings

_STAGING = "_staging_"
_LAYOUT = "layout-2"
"""A day that was made under another one is looked at anew, and what it lacks is made."""

_BY_HOUR: dict[str, Callable[[str, list[Hour], str], list[Condition]]] = {
    "rollup_hourly": fill_hours,
    "rollup_worst": fill_worst,
}
"""Tables whose rows know their `ingested_hour` and `source_hash`, with what fills them."""

_ABANDONED_S = 6 * 3600
"""A staging table of this age was left by a process that was killed."""

_log = logging.getLogger(__name__)


class RebuiltDay(msgspec.Struct, frozen=True):
    """One day that was brought up to date: the hours of `ingested_at` that were aggregated anew, and the
    seconds it took. `hours` is 0 where only the counts by minute had changed.
    """

    day: date
    hours: int
    seconds: float


class Rollups:
    """The rollups of one store. Blocks; calls on one store wait for each other."""

    def __init__(
        self, store: Store, settings: StoreSettings, *, stopping: threading.Event | None = None
    ) -> None:
        """When `stopping` is set, a rebuild ends before its next statement with a RetryError."""
        self._store = store
        self._stopping = stopping or threading.Event()
        self._cluster = settings.cluster
        # Grouping spills to disk long before the engine's limit; the service inserts beside it.
        self._settings = (
            f"max_memory_usage = {settings.max_memory_bytes // 2},"
            f" max_bytes_before_external_group_by = {settings.max_memory_bytes // 4},"
            " max_threads = 1, insert_distributed_sync = 1"
        )

    def rebuild_touched(self) -> list[RebuiltDay]:
        """Rebuild every day whose raw rows are not those that its rollups were made from.

        Cheap if there is none: two small queries. Raises what the store raises; a day that was not
        finished is found again by the next call.
        """
        self._drop_abandoned()
        parts = parts_by_day(self._store, self._cluster)
        made = self._made_from()
        rebuilt: list[RebuiltDay] = []
        # The earlier day first: until the later one is recorded, both are found again after a kill.
        for day in sorted({*parts, *made}):
            if _parts_of(made.get(day)) == parts.get(day):
                continue
            for earlier in sorted(self._replaced_by(day)):
                if earlier not in {done.day for done in rebuilt} and earlier in parts:
                    rebuilt += self._rebuild(earlier, parts, is_forced=False)
            rebuilt += self._rebuild(day, parts, is_forced=False)
        return rebuilt

    def rebuild_day(self, day: date) -> RebuiltDay:
        """Rebuild one day of `ingested_at` from nothing, whether it has changed or not."""
        (rebuilt,) = self._rebuild(day, parts_by_day(self._store, self._cluster), is_forced=True)
        return rebuilt

    def _rebuild(self, day: date, parts: dict[date, str], *, is_forced: bool) -> list[RebuiltDay]:
        """One entry, or none if the day's rows are those that its rollups were made from."""
        began = time.monotonic()
        has_later_days = any(other > day for other in parts)
        pairs = keys_of_day(self._store, "pairs", day)
        outcomes = keys_of_day(self._store, "outcomes", day)
        hours = hours_of_day(self._store, day, pairs, has_later_days=has_later_days)
        others = outcomes_hash(self._store, day, outcomes, has_later_days=has_later_days)
        source = _source(parts.get(day, ""), hours, others)
        before = "" if is_forced else self._made_from().get(day, "")
        if before == source:
            return []
        if day in parts and before.partition(" | ")[2] == source.partition(" | ")[2]:
            self._mark(day, source)
            return []
        if day not in parts:
            renewed = self._renew_hours(day, hours, is_forced=is_forced)
            self._drop_partition("rollup_minutes", day)
            return [RebuiltDay(day, renewed, time.monotonic() - began)]
        with self._staging("rollup_minutes") as staging:
            # Counted first: a minute that shows is in the hours too. Swapped last, for its row of kind ''
            # says that the day is done.
            fills = fill_minutes(staging, pairs, outcomes, self._settings, has_later_days=has_later_days)
            for fill in fills:
                self._fill(fill, day)
            renewed = self._renew_hours(day, hours, is_forced=is_forced)
            self._swap_minutes(staging, day, source)
        return [RebuiltDay(day, renewed, time.monotonic() - began)]

    def _renew_hours(self, day: date, hours: list[Hour], *, is_forced: bool) -> int:
        """Bring the tables by hour up to date; return how many hours of the first were made anew."""
        renewed = []
        for table, fill in _BY_HOUR.items():
            stored = {} if is_forced else self._stored_hours(table, day)
            stale = {hour.start for hour in hours if stored.get(hour.start) != hour.source_hash}
            kept = [hour.start for hour in hours if stored.get(hour.start) == hour.source_hash]
            if not hours:
                self._drop_partition(table, day)
            elif stale or len(kept) < len(stored):
                with self._staging(table) as staging:
                    self._keep_hours(table, staging, day, kept)
                    for run in runs(hours, stale):
                        for statement in fill(staging, run, self._settings):
                            self._fill(statement, day)
                    self._swap(table, staging, day)
            renewed.append(len(stale))
        return renewed[0]

    def _fill(self, fill: Condition, day: date) -> None:
        if self._stopping.is_set():
            raise RetryError(f"rollups of {day}: stopped, the next run makes them")
        self._store.command(fill.sql, {"day": day, **fill.parameters})

    def _mark(self, day: date, source: str) -> None:
        """Say that the day's rollups are right for parts that look otherwise but hold the same rows.

        A mutation gives every part of the table a new version, those of days that it left alone too.
        """
        with self._staging("rollup_minutes") as staging:
            self._store.command(
                f"INSERT INTO {staging} SELECT * FROM rollup_minutes WHERE day = {{day:Date}} AND kind != ''",
                {"day": day},
            )
            self._swap_minutes(staging, day, source)

    def _swap_minutes(self, staging: str, day: date, source: str) -> None:
        self._store.command(
            f"INSERT INTO {staging} (day, source) SELECT {{day:Date}}, {{source:String}}",
            {"day": day, "source": source},
        )
        self._swap("rollup_minutes", staging, day)

    def _keep_hours(self, table: str, staging: str, day: date, kept: list[datetime]) -> None:
        if kept:
            for statement in keep_statements(table, staging, day, kept, self._cluster):
                self._store.command(statement)

    def _made_from(self) -> dict[date, str]:
        """Each day that has rollups, and what they were made from."""
        rows = self._store.query(
            "SELECT day, source FROM rollup_minutes WHERE experiment = '' AND kind = '' AND source != ''"
        ).rows
        return {day: str(source) for day, source in rows}

    def _stored_hours(self, table: str, day: date) -> dict[datetime, int]:
        rows = self._store.query(
            f"SELECT DISTINCT ingested_hour, source_hash FROM {table} WHERE day = {{day:Date}}", {"day": day}
        ).rows
        return {start: int(source_hash) for start, source_hash in rows}

    def _replaced_by(self, day: date) -> set[date]:
        """Earlier days that hold keys which `day` holds too."""
        return {
            earlier
            for table in KEYS
            for earlier in earlier_days_with(self._store, day, keys_of_day(self._store, table, day))
        }

    @contextmanager
    def _staging(self, table: str) -> Iterator[str]:
        """An empty table like `table`, of this rebuild alone."""
        name = f"{table}{_STAGING}{int(time.time())}_{secrets.token_hex(4)}"
        for statement in staging_statements(self._store, table, name, self._cluster):
            self._store.command(statement)
        try:
            yield name
        finally:
            self._drop(name)

    def _swap(self, table: str, staging: str, day: date) -> None:
        self._store.command(swap_statement(table, staging, day, self._cluster))

    def _drop_partition(self, table: str, day: date) -> None:
        local = local_table(table, self._cluster)
        self._store.command(f"ALTER TABLE {local}{on_cluster(self._cluster)} DROP PARTITION '{day}'")

    def _drop(self, table: str) -> None:
        for name in dict.fromkeys((table, local_table(table, self._cluster))):
            self._store.command(f"DROP TABLE IF EXISTS {name}{on_cluster(self._cluster)} SYNC")

    def _drop_abandoned(self) -> None:
        rows = self._store.query(
            "SELECT name FROM system.tables WHERE database = {database:String}"
            " AND position(name, {mark:String})",
            {"database": self._store.database, "mark": _STAGING},
        ).rows
        for (name,) in rows:
            made_at = int(name.partition(_STAGING)[2].partition("_")[0])
            if time.time() - made_at > _ABANDONED_S:
                _log.warning("table %s, left by a rebuild that was killed, is dropped", name)
                self._drop(name.removesuffix("_local") if self._cluster else name)


def staging_statements(store: Store, table: str, name: str, cluster: str | None) -> list[str]:
    """The statements that make `name`, empty and like `table`; on a cluster its two tables."""
    if cluster is None:
        return [f"CREATE TABLE {name} AS {table}"]
    local, staged = local_table(table, cluster), local_table(name, cluster)
    (key,) = store.query(
        "SELECT sorting_key FROM system.tables WHERE database = {database:String} AND name = {local:String}",
        {"database": store.database, "local": local},
    ).rows
    return [
        f"CREATE TABLE {staged}{on_cluster(cluster)} AS {local} ENGINE = ReplicatedMergeTree("
        "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}')"
        f" PARTITION BY day ORDER BY ({key[0]})",
        f"CREATE TABLE {name}{on_cluster(cluster)} AS {staged}"
        f" ENGINE = Distributed('{cluster}', '{store.database}', '{staged}', {SHARD_BY_EXPERIMENT})",
    ]


def keep_statements(
    table: str, staging: str, day: date, kept: list[datetime], cluster: str | None
) -> list[str]:
    """The statements that put the day's rows of the `kept` hours into an empty staging table.

    The parts are linked, not copied, and the other hours' rows are masked: reading and writing the states
    took more memory than all the rest of a rebuild (docs/design/0006-store-layout.md).
    """
    staged, where = local_table(staging, cluster), on_cluster(cluster)
    hours = ", ".join(str(int(start.timestamp())) for start in kept)
    return [
        f"ALTER TABLE {staged}{where} ATTACH PARTITION '{day}' FROM {local_table(table, cluster)}",
        f"DELETE FROM {staged}{where} WHERE toUnixTimestamp(ingested_hour) NOT IN ({hours})",
    ]


def swap_statement(table: str, staging: str, day: date, cluster: str | None) -> str:
    """The statement that puts the staging table's day in place of the table's."""
    statement = (
        f"ALTER TABLE {local_table(table, cluster)}{on_cluster(cluster)}"
        f" REPLACE PARTITION '{day}' FROM {local_table(staging, cluster)}"
    )
    # A shard may have no experiment of that day.
    return (
        statement
        if cluster is None
        else f"{statement} SETTINGS allow_replace_partition_from_empty_source = 1"
    )


def _source(parts: str, hours: list[Hour], others: int) -> str:
    """`parts | contents`: what tells at a glance that nothing happened, and what tells what did."""
    contents = [_LAYOUT, f"{others:016x}", *(f"{hour.start:%H}:{hour.source_hash:016x}" for hour in hours)]
    return f"{parts} | {' '.join(contents)}"


def _parts_of(source: str | None) -> str | None:
    """None as well for a day that was made under another layout."""
    parts, _, contents = (source or "").partition(" | ")
    return parts if contents.startswith(_LAYOUT) else None
