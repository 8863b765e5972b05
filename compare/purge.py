"""Purge: take every row of a request, or of a tenant, out of every table, and prove that it is gone.

docs/design/0005-redaction-and-purge.md says why rows are found by their source position, what stays behind,
and what cannot be purged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime

import msgspec

from compare.purge_alerts import forget_examples
from compare.purge_golden import forget_cases
from compare.row_values import microseconds
from compare.store.client import Store
from compare.store.cluster_ddl import local_table, on_cluster, system_table
from ingest.errors import FatalError, RetryError
from ingest.outcome import SkipReason

RebuildDays = Callable[[Sequence[date]], None]
"""Makes the rollups of these days (of `ingested_at`) anew from what the tables now hold."""

PURGED = f"(kind = 'skipped' AND reason = '{SkipReason.PURGED}')"
_POSITION = ("topic_id", "partition", "offset")
_MAX_ROUNDS = 3
_LONGEST_MUTATION_S = 3600.0
_POLL_S = 0.2

_log = logging.getLogger(__name__)


class Selection(msgspec.Struct, frozen=True):
    """What is to go: one request by its id as it is stored, or all of one tenant. Exactly one is set."""

    request_id: str | None = None
    tenant: str | None = None

    @property
    def column(self) -> str:
        """The column that tells."""
        return "request_id" if self.request_id is not None else "tenant"

    @property
    def value(self) -> str:
        """Its value. Raises FatalError if there is none: an empty id stands for many records."""
        value = self.request_id if self.request_id is not None else self.tenant
        if not value or None not in (self.request_id, self.tenant):
            raise FatalError("purge needs either a request id or a tenant, and it may not be empty")
        return value


class PurgedTable(msgspec.Struct, frozen=True):
    """What became of one table. `rows_*` count all versions of a row, also replaced ones."""

    table: str
    rows_before: int
    rows_after: int
    partitions: tuple[str, ...] = ()
    mutations: tuple[str, ...] = ()
    old_parts: tuple[str, ...] = ()
    """Parts that the mutations replaced and that are still on disk; no query reads them."""


class PurgeReport(msgspec.Struct, frozen=True):
    """`tables` has one entry for each table that was looked at."""

    positions: int
    tables: tuple[PurgedTable, ...]
    alerts: int
    days: tuple[date, ...]
    stale_rollups: tuple[str, ...]
    """Rollups that nobody has rebuilt."""
    detached_parts: int
    golden_cases: int = 0
    """Cases of golden sets that were made of what went."""

    @property
    def is_clean(self) -> bool:
        """Whether no row is left that a query could read."""
        return all(table.rows_after == 0 for table in self.tables)


class _Tables(msgspec.Struct, frozen=True):
    """Tables with a source position: those without the selection's column first, then those with it."""

    keyed: tuple[str, ...]
    named: tuple[str, ...]
    rollups: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        # What names the rows goes last: a purge that was killed finds the rest again. Of these the
        # request's own row is the very last.
        return (*self.keyed, *sorted(self.named, key=lambda table: (table == "requests", table)))


def find(store: Store, selection: Selection) -> PurgeReport:
    """What `purge` would take out; changes nothing."""
    tables = _tables(store, selection)
    counted = tuple(
        PurgedTable(table, sum(rows.values()), sum(rows.values()), tuple(rows))
        for table in tables.all
        for rows in [_rows(store, selection, tables, table, None)]
    )
    days = _days({partition for table in counted for partition in table.partitions})
    return PurgeReport(_positions(store, selection, tables), counted, 0, days, tables.rollups, 0)


def purge(
    store: Store,
    selection: Selection,
    *,
    cluster: str | None = None,
    rebuild_days: RebuildDays | None = None,
    wait_s: float = 0.0,
) -> PurgeReport:
    """Take it out. Safe to run again, also after a kill at any point; a second run finds nothing.

    Each position keeps a row of `outcomes`, skipped for reason `purged`, without id and content: the
    accounting stays whole, and a record that Kafka delivers again is not replayed. `wait_s` is how long to
    wait, once all else is done and for all tables together, until the old parts have left the disk. Raises
    RetryError if the store is away, FatalError if a mutation fails.
    """
    tables = _tables(store, selection)
    before = {table: sum(_rows(store, selection, tables, table, cluster).values()) for table in tables.all}
    positions = _positions(store, selection, tables)
    touched: dict[str, dict[str, None]] = {table: {} for table in tables.all}
    known = {table: _mutations(store, table, cluster).keys() for table in tables.all}
    keys = _keys(store, selection, tables, None)
    alerts = forget_examples(store, selection.value, selection.request_id, keys, cluster)
    golden_cases = forget_cases(store, selection.column, selection.value, keys, cluster)
    for _ in range(_MAX_ROUNDS):
        # A record that is under way may be stored while we are at it.
        left = {table: _rows(store, selection, tables, table, cluster) for table in tables.all}
        if not any(left.values()):
            break
        _leave_tombstones(store, selection, tables)
        for table, rows in left.items():
            for partition in rows:
                touched[table][partition] = None
                _delete(store, selection, tables, table, partition, cluster)
    days = _days({partition for partitions in touched.values() for partition in partitions})
    if rebuild_days is not None and days and tables.rollups:
        rebuild_days(days)
    stale = tables.rollups if days and rebuild_days is None else ()
    old_parts = _wait_for_old_parts(store, touched, cluster, wait_s)
    made = {table: _mutations(store, table, cluster).keys() - known[table] for table in tables.all}
    done = tuple(
        PurgedTable(
            table,
            before[table],
            sum(_rows(store, selection, tables, table, cluster).values()),
            tuple(touched[table]),
            tuple(sorted(made[table])),
            old_parts[table],
        )
        for table in tables.all
    )
    return PurgeReport(positions, done, alerts, days, stale, _detached(store, cluster), golden_cases)


def _tables(store: Store, selection: Selection) -> _Tables:
    """Found in the live schema: a table that a later version adds is purged too."""
    rows = store.query(
        "SELECT table, groupArray(name) FROM system.columns WHERE database = {database:String}"
        " AND table IN (SELECT name FROM system.tables WHERE database = {database:String}"
        " AND (engine LIKE '%MergeTree' OR engine = 'Distributed') AND NOT endsWith(name, '_local'))"
        " GROUP BY table ORDER BY table",
        {"database": store.database},
    ).rows
    keyed = [table for table, names in rows if set(_POSITION) <= set(names)]
    named = [table for table, names in rows if table in keyed and selection.column in names]
    if "requests" not in named:
        raise FatalError(
            f"store {store.where}: database {store.database} is not migrated: run `gnomon migrate`"
        )
    rollups = [table for table, _ in rows if table.startswith("rollup_") and "__" not in table]
    return _Tables(tuple(table for table in keyed if table not in named), tuple(named), tuple(rollups))


def _keys(store: Store, selection: Selection, tables: _Tables, cluster: str | None) -> str:
    """A query for the selection's positions. The value is bound as `{value:String}`."""
    parts = [
        f"SELECT topic_id, `partition`, `offset` FROM `{store.database}`.`{local_table(table, cluster)}`"
        f" WHERE {selection.column} = {{value:String}}"
        for table in tables.named
    ]
    return " UNION ALL ".join(parts)


def _where(store: Store, selection: Selection, tables: _Tables, table: str, cluster: str | None) -> str:
    keys = _keys(store, selection, tables, cluster)
    where = f"(topic_id, `partition`, `offset`) IN ({keys})"
    if table in tables.named:
        where = f"({selection.column} = {{value:String}} OR {where})"
    return f"{where} AND NOT {PURGED}" if table == "outcomes" else where


def _rows(
    store: Store, selection: Selection, tables: _Tables, table: str, cluster: str | None
) -> dict[str, int]:
    """Rows by partition id."""
    # Over a Distributed table the inner query must run once, not on each shard.
    where = _where(store, selection, tables, table, None).replace(
        " IN (", " GLOBAL IN (" if cluster else " IN ("
    )
    rows = store.query(
        f"SELECT _partition_id AS id, count() FROM {table} WHERE {where} GROUP BY id ORDER BY id",
        {"value": selection.value},
    ).rows
    return {str(partition): int(count) for partition, count in rows}


def _positions(store: Store, selection: Selection, tables: _Tables) -> int:
    sql = f"SELECT uniqExact(topic_id, `partition`, `offset`) FROM ({_keys(store, selection, tables, None)})"
    ((count,),) = store.query(sql, {"value": selection.value}).rows
    return int(count)


def _leave_tombstones(store: Store, selection: Selection, tables: _Tables) -> None:
    """One row of `outcomes` for each experiment and position. The newest version of a key is read."""
    keys = _keys(store, selection, tables, None)
    sources = " UNION ALL ".join(
        f"SELECT experiment, topic, topic_id, `partition`, `offset`, ingested_at FROM {table}"
        for table in tables.all
        # Rollups are made of `pairs`, which is among these.
        if table != "requests" and table not in tables.rollups
    )
    version = microseconds(datetime.now(UTC))
    store.command(
        "INSERT INTO outcomes (experiment, topic, topic_id, `partition`, `offset`, kind, reason, detail,"
        " request_id, mirrored_at, ingested_at, version)"
        " SELECT experiment, any(topic), topic_id, `partition`,"
        f" `offset`, 'skipped', '{SkipReason.PURGED}', '', '', max(ingested_at), max(ingested_at), {version}"
        f" FROM ({sources})"
        f" WHERE (topic_id, `partition`, `offset`) IN ({keys})"
        " GROUP BY experiment, topic_id, `partition`, `offset`",
        {"value": selection.value},
    )


def _delete(
    store: Store,
    selection: Selection,
    tables: _Tables,
    table: str,
    partition: str,
    cluster: str | None,
) -> None:
    settings = "mutations_sync = 2"
    if cluster is not None:
        # The inner query reads the shard's own tables: a position's rows all lie on one shard.
        settings += ", allow_nondeterministic_mutations = 1"
    where = _where(store, selection, tables, table, cluster)
    try:
        store.command(
            f"ALTER TABLE {local_table(table, cluster)}{on_cluster(cluster)}"
            f" DELETE IN PARTITION ID '{partition}' WHERE {where} SETTINGS {settings}",
            {"value": selection.value},
        )
    except RetryError as error:
        _log.warning("waiting for the mutation of %s, partition %s: %s", table, partition, error)
    deadline = time.monotonic() + _LONGEST_MUTATION_S
    while pending := {
        key: why for key, (is_done, why) in _mutations(store, table, cluster).items() if not is_done
    }:
        name, why = next(iter(pending.items()))
        if why or time.monotonic() > deadline:
            raise FatalError(
                f"store {store.where}: mutation {name} of {table} does not end: {why or 'too slow'}"
            )
        time.sleep(_POLL_S)


def _mutations(store: Store, table: str, cluster: str | None) -> dict[str, tuple[bool, str]]:
    """Mutation id to whether it is done, and why it last failed."""
    rows = store.query(
        f"SELECT mutation_id, min(is_done), max(latest_fail_reason) FROM {system_table('mutations', cluster)}"
        " WHERE database = {database:String} AND table = {table:String} GROUP BY mutation_id",
        {"database": store.database, "table": local_table(table, cluster)},
    ).rows
    return {str(name): (bool(is_done), str(why)) for name, is_done, why in rows}


def _wait_for_old_parts(
    store: Store, touched: Mapping[str, Iterable[str]], cluster: str | None, wait_s: float
) -> dict[str, tuple[str, ...]]:
    """By table, the old parts of these partitions that are still there after `wait_s` for all of them."""
    deadline = time.monotonic() + wait_s
    while True:
        found = _old_parts(store, touched, cluster)
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not any(found.values()):
            return found
        time.sleep(min(_POLL_S, left_s))


def _old_parts(
    store: Store, touched: Mapping[str, Iterable[str]], cluster: str | None
) -> dict[str, tuple[str, ...]]:
    """By table, the parts of these partitions that are no longer read and not yet deleted."""
    rows = store.query(
        f"SELECT DISTINCT table, name, partition_id FROM {system_table('parts', cluster)}"
        " WHERE database = {database:String} AND NOT active ORDER BY name",
        {"database": store.database},
    ).rows
    return {
        table: tuple(
            str(name)
            for stored, name, partition in rows
            if stored == local_table(table, cluster) and partition in partitions
        )
        for table, partitions in ((table, set(ids)) for table, ids in touched.items())
    }


def _detached(store: Store, cluster: str | None) -> int:
    ((count,),) = store.query(
        f"SELECT count() FROM {system_table('detached_parts', cluster)} WHERE database = {{database:String}}",
        {"database": store.database},
    ).rows
    return int(count)


def _days(partitions: Iterable[str]) -> tuple[date, ...]:
    """Days of `ingested_at`, which partition every table that has positions."""
    return tuple(sorted(date.fromisoformat(one) for one in partitions))
