"""What a day's rollups are made from: which parts, and which rows count.

A row counts if no later version of its key is stored, on whatever day. `version` is the microseconds of
`ingested_at`, so a later version is a row with a later `ingested_at`. That is said in SQL here, not left
to FINAL alone: FINAL with a condition on `ingested_at` reads other partitions on some servers and not on
others.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Any

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import local_table, system_table

KEYS = {
    "pairs": ("experiment", "candidate", "topic_id", "`partition`"),
    "outcomes": ("experiment", "topic_id", "`partition`"),
}
"""A table's key without its offset."""

ONE_DAY = "do_not_merge_across_partitions_select_final = 1"
"""FINAL looks at one day's partition; later days are excluded by condition."""


class Keys(msgspec.Struct, frozen=True):
    """Offsets from `first` to `last` of one Kafka partition; `key` has the values of `KEYS[table]`."""

    table: str
    key: tuple[str | int, ...]
    first: int
    last: int


class Condition(msgspec.Struct, frozen=True):
    """SQL and the parameters that it is bound to."""

    sql: str
    parameters: dict[str, Any]


class Hour(msgspec.Struct, frozen=True):
    """The pairs of one hour of `ingested_at` that count: their keys, and a hash that tells them apart.

    The hash is over keys and versions: a row that comes, goes or is replaced changes it, in whatever way
    its parts are merged.
    """

    start: datetime
    keys: tuple[Keys, ...]
    pairs: int
    source_hash: int


def parts_by_day(store: Store, cluster: str | None) -> dict[date, str]:
    """Each day with rows in `pairs` or `outcomes`, and the state of its partitions in a word.

    It changes whenever rows are inserted or a mutation has run, and never by a merge.
    """
    names = [local_table(table, cluster) for table in KEYS]
    rows = store.query(
        # A part's name ends in its mutation's version, if it has one.
        "SELECT toDate(`partition`) AS day, arrayStringConcat(arraySort(groupArray(state)), ' ') FROM ("
        " SELECT `partition`, concat(hostName(), ' ', table, ' ', toString(max(max_block_number)), '.',"
        " toString(max(toUInt64OrZero(splitByChar('_', name)[5])))) AS state"
        f" FROM {system_table('parts', cluster)}"
        " WHERE database = {database:String} AND table IN {tables:Array(String)}"
        " AND active AND rows > 0 GROUP BY hostName(), table, `partition`"
        ") GROUP BY day ORDER BY day",
        {"database": store.database, "tables": names},
    ).rows
    return {day: str(state) for day, state in rows}


def keys_of_day(store: Store, table: str, day: date) -> list[Keys]:
    """The offsets that a day holds, by partition, replaced ones too."""
    key = ", ".join(KEYS[table])
    rows = store.query(
        f"SELECT {key}, min(`offset`), max(`offset`) FROM {table}"
        f" WHERE toDate(ingested_at) = {{day:Date}} GROUP BY {key}",
        {"day": day},
    ).rows
    return [Keys(table, tuple(row[:-2]), row[-2], row[-1]) for row in rows]


def earlier_days_with(store: Store, day: date, keys: list[Keys]) -> set[date]:
    """Days before `day` that hold a row of these keys: what `day` holds may replace it."""
    if not keys:
        return set()
    within = among(keys)
    rows = store.query(
        f"SELECT DISTINCT toDate(ingested_at) FROM {keys[0].table}"
        f" WHERE toDate(ingested_at) < {{day:Date}} AND ({within.sql})",
        {"day": day, **within.parameters},
    ).rows
    return {row[0] for row in rows}


def among(keys: list[Keys] | tuple[Keys, ...]) -> Condition:
    """That a row's key is one of these, in a form that the primary index understands."""
    clauses = []
    parameters: dict[str, Any] = {}
    for number, part in enumerate(keys):
        terms = []
        for at, (column, value) in enumerate(zip(KEYS[part.table], part.key, strict=True)):
            name = f"k{number}_{at}"
            parameters[name] = value
            terms.append(f"{column} = {{{name}:{'UInt32' if isinstance(value, int) else 'String'}}}")
        # Numbers are pasted: they come from the store as integers, and each saves a parameter.
        terms.append(f"`offset` BETWEEN {int(part.first)} AND {int(part.last)}")
        clauses.append(f"({' AND '.join(terms)})")
    return Condition(" OR ".join(clauses) or "0", parameters)


def not_replaced(table: str, keys: list[Keys] | tuple[Keys, ...], later: str) -> Condition:
    """That no row of `later` (a condition on `ingested_at`) has the row's key.

    Only keys in the range of `keys` are looked up: rows that were delivered again, few as a rule. GLOBAL
    is for a cluster; a single server takes no notice of it.
    """
    within = among(keys)
    key = ", ".join((*KEYS[table], "`offset`"))
    return Condition(
        f"({key}) GLOBAL NOT IN (SELECT {key} FROM {table} WHERE {later} AND ({within.sql}))",
        within.parameters,
    )


def hours_of_day(store: Store, day: date, keys: list[Keys], *, has_later_days: bool) -> list[Hour]:
    """The hours of `ingested_at` in which the day has pairs that count, in order."""
    rows = _visible(store, "pairs", "toStartOfHour(ingested_at)", day, keys, has_later_days)
    hours: dict[datetime, list[tuple[Keys, int, int]]] = {}
    for start, *key, first, last, count, checksum in rows:
        hours.setdefault(start, []).append((Keys("pairs", tuple(key), first, last), count, checksum))
    return [
        Hour(start, tuple(part[0] for part in parts), sum(part[1] for part in parts), _hash(parts))
        for start, parts in sorted(hours.items())
    ]


def outcomes_hash(store: Store, day: date, keys: list[Keys], *, has_later_days: bool) -> int:
    """A hash of the day's outcomes that count, as `Hour.source_hash`."""
    rows = _visible(store, "outcomes", "toStartOfDay(ingested_at)", day, keys, has_later_days)
    return _hash([(Keys("outcomes", tuple(row[1:-4]), row[-4], row[-3]), row[-2], row[-1]) for row in rows])


def counts_on_day(table: str, keys: list[Keys], *, has_later_days: bool) -> Condition:
    """That a row is of the day `{day:Date}` and no later day replaces it."""
    if not has_later_days:
        return Condition("toDate(ingested_at) = {day:Date}", {})
    fresh = not_replaced(table, keys, "toDate(ingested_at) > {day:Date}")
    return Condition(f"toDate(ingested_at) = {{day:Date}} AND {fresh.sql}", fresh.parameters)


def _visible(
    store: Store, table: str, group: str, day: date, keys: list[Keys], has_later_days: bool
) -> list[tuple[Any, ...]]:
    if not keys:
        return []
    counts = counts_on_day(table, keys, has_later_days=has_later_days)
    columns = ", ".join(KEYS[table])
    return store.query(
        f"SELECT {group} AS start, {columns}, min(`offset`), max(`offset`), count(),"
        f" sum(cityHash64(`offset`, version)) FROM {table} FINAL WHERE {counts.sql}"
        f" GROUP BY start, {columns} SETTINGS {ONE_DAY}",
        {"day": day, **counts.parameters},
    ).rows


def _hash(parts: list[tuple[Keys, int, int]]) -> int:
    """64 bits that depend on every part and on no order."""
    encoded = sorted(msgspec.msgpack.encode(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(b"".join(encoded), digest_size=8).digest(), "big")
