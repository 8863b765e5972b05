"""Numbered forward migrations and the views on top of them.

`sql/migrations/NNNN_verb_object.sql` run once each, in order of their number, and are frozen once
shipped: the state table keeps their checksums. `sql/views/*.sql` are made anew every time.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from compare.store.client import Store
from compare.store.errors import StoreQueryError
from compare.store.sql_text import split_statements
from ingest.errors import FatalError

_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
_UNKNOWN_TABLE, _UNKNOWN_DATABASE = 60, 81

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


def plan(store: Store, shipped: list[Migration] | None = None) -> list[str]:
    """Names of the migrations that `apply` would run, in order; changes nothing.

    Raises FatalError if a migration that has run was changed, or if the database is newer than the
    program.
    """
    return [migration.name for migration in _pending(store, shipped or shipped_migrations())]


def apply(store: Store, shipped: list[Migration] | None = None) -> list[str]:
    """Make the database if need be, run what is pending, make the views anew.

    Returns the names of the migrations that ran. Safe to run again after a kill at any point: each
    statement is IF NOT EXISTS, and is recorded only when it is done. Raises FatalError like `plan`.
    """
    store.command(f"CREATE DATABASE IF NOT EXISTS `{store.database}`", use_database=False)
    pending = _pending(store, shipped or shipped_migrations())
    store.command(_STATE_TABLE)
    for migration in pending:
        for statement in split_statements(migration.sql):
            try:
                store.command(statement)
            except StoreQueryError as error:
                raise FatalError(f"migration {migration.name}: {error}") from error
        row = (migration.number, migration.name, migration.checksum, datetime.now(UTC))
        store.insert("schema_migrations", ("number", "name", "checksum", "applied_at"), [row])
    _make_views(store, shipped_views())
    return [migration.name for migration in pending]


def _pending(store: Store, shipped: list[Migration]) -> list[Migration]:
    done = _applied(store)
    by_number = {migration.number: migration for migration in shipped}
    for number, (name, checksum) in sorted(done.items()):
        migration = by_number.get(number)
        if migration is None:
            raise FatalError(
                f"database {store.database} is newer than this program: it has migration {name}, "
                f"the program's last is {shipped[-1].name}"
            )
        if migration.checksum != checksum:
            raise FatalError(
                f"migration {migration.name} was changed after it ran on database {store.database}: "
                f"checksum {migration.checksum[:12]}, recorded {checksum[:12]}"
            )
    return [migration for migration in shipped if migration.number not in done]


def _applied(store: Store) -> dict[int, tuple[str, str]]:
    try:
        rows = store.query("SELECT number, name, checksum FROM schema_migrations FINAL").rows
    except StoreQueryError as error:
        if error.code in (_UNKNOWN_TABLE, _UNKNOWN_DATABASE):
            return {}
        raise
    return {int(number): (str(name), str(checksum)) for number, name, checksum in rows}


def _make_views(store: Store, views: dict[str, str]) -> None:
    """Views may read views, so one that lacks its source waits for the next round."""
    waiting = dict(views)
    while waiting:
        missing: dict[str, StoreQueryError] = {}
        for name, sql in waiting.items():
            try:
                for statement in split_statements(sql):
                    store.command(statement)
            except StoreQueryError as error:
                if error.code != _UNKNOWN_TABLE:
                    raise FatalError(f"view {name}: {error}") from error
                missing[name] = error
        if len(missing) == len(waiting):
            name, cause = next(iter(missing.items()))
            raise FatalError(f"view {name}: {cause}") from cause
        waiting = {name: waiting[name] for name in missing}
