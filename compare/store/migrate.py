"""Numbered forward migrations, the views on top of them, and how long tables keep their rows.

`sql/migrations/NNNN_verb_object.sql` run once each, in order of their number, and are frozen once
shipped: the state table keeps their checksums. A view of `sql/views/` is made anew when it or any
migration has changed: its comment holds a checksum of both. All of it happens under a lock, so that of
services that start together one migrates and the others find nothing left to do.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import for_cluster, is_one_copy_everywhere, on_cluster, one_copy_everywhere
from compare.store.day_pruning import knows_setting, without_setting
from compare.store.errors import StoreQueryError
from compare.store.live_schema import is_missing_table, live_tables, rows_if_there
from compare.store.migration_lock import LEASE_SECONDS, MigrationLock
from compare.store.sql_text import split_statements
from compare.store.ttl import ttl_changes
from compare.store.view_security import as_definer
from ingest.errors import FatalError
from ingest.settings import StoreSettings

_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")

_STATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations
(
    number     UInt32,
    name       String,
    checksum   String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY number
"""


class Migration(msgspec.Struct, frozen=True):
    """One shipped file. `checksum` is the hex SHA-256 of its text with Unix line ends."""

    number: int
    name: str
    sql: str
    checksum: str


class Step(msgspec.Struct, frozen=True):
    """One thing that `apply` does. `name` is a migration's file, a view, or a TTL's change in words;
    `statements` run in order, each idempotent.
    """

    kind: Literal["migration", "view", "ttl"]
    name: str
    statements: tuple[str, ...]
    checksum: str = ""


def shipped_migrations(folder: Traversable | None = None) -> list[Migration]:
    """The migrations that ship with the program, by number.

    Raises FatalError on a file name that is no migration's, or on two files with one number.
    """
    folder = folder or resources.files("sql").joinpath("migrations")
    migrations: dict[int, Migration] = {}
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        found = _NAME.match(file.name)
        if not found:
            if file.name.endswith(".sql"):
                raise FatalError(f"migration {file.name} is not named NNNN_verb_object.sql")
            continue
        number = int(found.group(1))
        if number in migrations:
            raise FatalError(
                f"migrations {migrations[number].name} and {file.name} share the number {number}"
            )
        sql = file.read_text(encoding="utf-8").replace("\r\n", "\n")
        migrations[number] = Migration(number, file.name, sql, hashlib.sha256(sql.encode()).hexdigest())
    return [migrations[number] for number in sorted(migrations)]


def shipped_views(folder: Traversable | None = None) -> dict[str, str]:
    """The views that ship with the program: name to SQL."""
    folder = folder or resources.files("sql").joinpath("views")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda item: item.name)
    return {file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in files}


def plan(
    store: Store, settings: StoreSettings | None = None, shipped: list[Migration] | None = None
) -> list[Step]:
    """What `apply` would do, in order; changes nothing. Empty if the store is up to date.

    Without `settings` the store is a single server, and tables keep the TTL that they have.
    Raises FatalError if a migration that has run was changed, or if the database is newer than the
    program.
    """
    shipped = shipped_migrations() if shipped is None else shipped
    cluster = settings.cluster if settings else None
    _check_kind(store, cluster)
    pending = _pending(store, shipped)
    steps = [
        Step("migration", migration.name, _statements(store, migration.sql, cluster), migration.checksum)
        for migration in pending
    ]
    steps += _view_steps(store, shipped, shipped_views(), cluster)
    coming = [statement for migration in pending for statement in split_statements(migration.sql)]
    for change in ttl_changes(store, settings.ttl_days if settings else None, coming, cluster):
        steps.append(Step("ttl", str(change), (change.statement(cluster),)))
    return steps


def apply(
    store: Store,
    settings: StoreSettings | None = None,
    shipped: list[Migration] | None = None,
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> list[Step]:
    """Make the database if need be, and bring it to what `plan` says, under the lock.

    Returns what was done by this call. While another process is at it, waits, and then does what that
    one left. Safe to run again after a kill at any point: each statement is idempotent, and a migration
    is recorded only when it is done. Raises FatalError like `plan`, and RetryError if the store is away
    or the lock was lost.
    """
    if not plan(store, settings, shipped):
        return []
    cluster = settings.cluster if settings else None
    database = f"CREATE DATABASE IF NOT EXISTS `{store.database}`{on_cluster(cluster)}"
    store.command(database, use_database=False)
    with MigrationLock(store, cluster=cluster, lease_seconds=lease_seconds) as lock:
        _make_state_table(store, cluster)
        # Planned anew: whoever held the lock before us may have done it all.
        steps = plan(store, settings, shipped)
        views = [step for step in steps if step.kind == "view"]
        for step in steps:
            if step.kind == "migration":
                _run(store, lock, step)
                row = (int(step.name[:4]), step.name, step.checksum, datetime.now(UTC))
                lock.check()
                store.insert("schema_migrations", ("number", "name", "checksum", "applied_at"), [row])
        _make_views(store, lock, views)
        for step in steps:
            if step.kind == "ttl":
                _run(store, lock, step)
    return steps


def _run(store: Store, lock: MigrationLock, step: Step) -> None:
    for statement in step.statements:
        lock.check()
        try:
            store.command(statement)
        except StoreQueryError as error:
            raise FatalError(f"{step.kind} {step.name}: {error}") from error


def _statements(store: Store, sql: str, cluster: str | None) -> tuple[str, ...]:
    statements = split_statements(sql)
    if cluster is None:
        return tuple(statements)
    return tuple(made for one in statements for made in for_cluster(one, cluster, store.database))


def _make_state_table(store: Store, cluster: str | None) -> None:
    if cluster is None:
        store.command(_STATE_TABLE)
        return
    store.command(one_copy_everywhere(_STATE_TABLE, cluster))
    # What another host has recorded must be seen here before planning.
    store.command("SYSTEM SYNC REPLICA schema_migrations")


def _check_kind(store: Store, cluster: str | None) -> None:
    """Refuse a setting that does not fit how the database was made: half of it would be made anew."""
    state = live_tables(store).get("schema_migrations")
    if state is None:
        return
    is_replicated = is_one_copy_everywhere(state.engine_full)
    if cluster is not None and not is_replicated:
        raise FatalError(
            f"database {store.database} was made without store.cluster, and cannot be spread over {cluster}: "
            "name a new store.database"
        )
    if cluster is None and is_replicated:
        raise FatalError(f"database {store.database} was made for a cluster: set store.cluster to its name")


def _pending(store: Store, shipped: list[Migration]) -> list[Migration]:
    done = _applied(store)
    by_number = {migration.number: migration for migration in shipped}
    for number, (name, checksum) in sorted(done.items()):
        migration = by_number.get(number)
        if migration is None:
            last = shipped[-1].name if shipped else "none"
            raise FatalError(
                f"database {store.database} is newer than this program: it has migration {name}, "
                f"the program's last is {last}"
            )
        if migration.checksum != checksum:
            was = "" if migration.name == name else f" as {name}"
            raise FatalError(
                f"migration {migration.name} was changed after it ran{was} on database {store.database}: "
                f"checksum {migration.checksum[:12]}, recorded {checksum[:12]}"
            )
    return [migration for migration in shipped if migration.number not in done]


def _applied(store: Store) -> dict[int, tuple[str, str]]:
    rows = rows_if_there(store, "SELECT number, name, checksum FROM schema_migrations FINAL")
    return {int(number): (str(name), str(checksum)) for number, name, checksum in rows}


def _view_steps(
    store: Store, shipped: list[Migration], views: dict[str, str], cluster: str | None
) -> list[Step]:
    """The views that are missing, or were made from another text or on another schema.

    The schema counts because a view keeps the column types that it was made with.
    """
    live = live_tables(store)
    schema = "".join(migration.checksum for migration in shipped)
    is_known = knows_setting(store)
    steps = []
    for name, sql in views.items():
        sql = sql if is_known else without_setting(sql)
        statements = _statements(store, sql, cluster)
        if len(statements) != 1:
            raise FatalError(f"view {name}: sql/views/{name}.sql must hold one statement")
        statement = as_definer(statements[0])
        mark = hashlib.sha256((schema + statement).encode()).hexdigest()[:16]
        comment = f"Made by gnomon migrate. Checksum {mark}."
        if name not in live or live[name].comment != comment:
            steps.append(Step("view", name, (f"{statement}\nCOMMENT '{comment}'",), mark))
    return steps


def _make_views(store: Store, lock: MigrationLock, steps: list[Step]) -> None:
    """Views may read views, so one that lacks its source waits for the next round."""
    waiting = list(steps)
    while waiting:
        missing: list[tuple[Step, FatalError]] = []
        for step in waiting:
            try:
                _run(store, lock, step)
            except FatalError as error:
                if not is_missing_table(error.__cause__):
                    raise
                missing.append((step, error))
        if len(missing) == len(waiting):
            raise missing[0][1]
        waiting = [step for step, _ in missing]
