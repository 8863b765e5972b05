"""How long each table keeps its rows: `[store.ttl_days]` against the live tables.

The migrations give every table the TTL that it ships with; a key of `[store.ttl_days]` changes it. A
table whose key is not set keeps what it has, so a command that knows no settings never shortens a TTL.
"""

from __future__ import annotations

import logging
import re

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import local_table, on_cluster
from compare.store.live_schema import live_tables
from ingest.settings import TtlDays

_CREATE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)\s*\(")
_CLAUSE = re.compile(r"\bTTL\s+(.*?)\s*(?:\bSETTINGS\b|$)", re.DOTALL)
_DAYS = re.compile(
    r"toDate\(ingested_at\) \+ (?:INTERVAL (?P<written>\d+) DAY|toIntervalDay\((?P<shown>\d+)\))"
)

_log = logging.getLogger(__name__)


class TtlChange(msgspec.Struct, frozen=True):
    """One table's TTL, in days, that must become another; 0 keeps rows for ever."""

    table: str
    days_now: int
    days: int

    def __str__(self) -> str:
        return f"TTL of {self.table}: {_words(self.days_now)} to {_words(self.days)}"

    def statement(self, cluster: str | None = None) -> str:
        """The ALTER that makes it so. ClickHouse then drops expired parts in the background."""
        action = f"MODIFY TTL toDate(ingested_at) + INTERVAL {self.days} DAY" if self.days else "REMOVE TTL"
        return f"ALTER TABLE {local_table(self.table, cluster)}{on_cluster(cluster)} {action}"


def ttl_changes(
    store: Store, wanted: TtlDays | None, coming: list[str], cluster: str | None = None
) -> list[TtlChange]:
    """The changes that make the live TTLs what is wanted, by table.

    `coming` are statements that have yet to run: a table that they create has the TTL they give it. A
    TTL of another form than ours (say one that moves old parts to a slower disk) was set by hand: it is
    left alone, with a warning.
    """
    days = {} if wanted is None else msgspec.structs.asdict(wanted)
    days = {table: value for table, value in days.items() if value is not None}
    if not days:
        return []
    created = {found[1]: _clause(sql) for sql in coming if (found := _CREATE.search(sql))}
    clauses = created | _live_clauses(store, list(days), cluster)
    changes = []
    for table, value in days.items():
        if table not in clauses:
            continue
        clause = clauses[table]
        found = _DAYS.fullmatch(clause)
        if clause and found is None:
            _log.warning(
                "table %s has a TTL set by hand (%s): store.ttl_days.%s is not applied", table, clause, table
            )
            continue
        days_now = int(found["written"] or found["shown"]) if found else 0
        if days_now != value:
            changes.append(TtlChange(table, days_now, value))
    return changes


def _live_clauses(store: Store, tables: list[str], cluster: str | None) -> dict[str, str]:
    """The TTL clause of each table that exists; empty where it has none."""
    live = live_tables(store)
    names = {table: local_table(table, cluster) for table in tables}
    return {table: _clause(live[name].engine_full) for table, name in names.items() if name in live}


def _clause(sql: str) -> str:
    found = _CLAUSE.search(sql)
    return found[1] if found else ""


def _words(days: int) -> str:
    return f"{days} days" if days else "for ever"
