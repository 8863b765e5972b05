"""Is the store there, is it ours to write, and has it room?"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from compare.doctor.check import Check, fail, ok, unknown, warn
from compare.group_check import group_warnings
from compare.store import migrate
from compare.store.client import Store, open_store
from compare.store.errors import StoreQueryError
from ingest.errors import GnomonError
from ingest.settings import StoreSettings

TESTED_VERSION = (26, 3)
"""The engine that the tests run on; what is older was not tried."""
LARGEST_CLOCK_ERROR_S = 5.0
LEAST_WINDOW = 10_000
_UNKNOWN_DATABASE = 81
_SCHEMA = "store: schema"
_SERVER = "check [store] url, username and GNOMON_STORE_PASSWORD, and that ClickHouse runs"
_FOLDER = (
    "check [store] url: a folder on a local disk that this user may write, or a new one in such a folder"
)
_LEAST_FREE_SHARE = 0.1
_LEAST_FREE_BYTES = 5 * 1024**3


def check_store(settings: StoreSettings, experiment: str = "", group: str = "") -> list[Check]:
    """Open the store as the service does and look at it. Nothing is changed.

    With an `experiment`, also at which `group` read for it.
    """
    is_embedded = settings.url.startswith("chdb:")
    try:
        with open_store(settings, role="any") as store:
            checks = [_version(store), _clock(store), _disk(store)]
            checks += _schema(store, settings)
            # Where the schema is not up to date, that is the last word.
            if experiment and checks[-1].name != _SCHEMA:
                checks += _group(store, experiment, group)
            if settings.url.startswith("http"):
                checks.append(_permission(store, settings.database))
            return checks
    except StoreQueryError as error:
        if error.code == _UNKNOWN_DATABASE:
            advice = "run gnomon migrate (gnomon run does too)"
            return [warn(_SCHEMA, f"there is no database {settings.database} yet", advice)]
        advice = _FOLDER if is_embedded else "check [store] username and its rights"
        return [fail("store: connection", str(error), advice)]
    except GnomonError as error:
        return [fail("store: connection", str(error), _FOLDER if is_embedded else _SERVER)]


def _version(store: Store) -> Check:
    name, text = "store: version", str(store.query("SELECT version()").rows[0][0])
    found = re.match(r"(\d+)\.(\d+)", text)
    seen = f"ClickHouse {text} at {store.where}"
    if found is None:
        return unknown(name, seen)
    if (int(found[1]), int(found[2])) < TESTED_VERSION:
        tested = ".".join(map(str, TESTED_VERSION))
        return warn(name, seen, f"gnomon is tested with {tested} and newer: upgrade, or try it out first")
    return ok(name, seen)


def _clock(store: Store) -> Check:
    name, before = "store: clock", datetime.now(UTC)
    milliseconds = int(store.query("SELECT toUnixTimestamp64Milli(now64(3))").rows[0][0])
    after = datetime.now(UTC)
    middle = before + (after - before) / 2
    error_s = milliseconds / 1000 - middle.timestamp()
    seen = f"{error_s:+.1f} s against this machine"
    if abs(error_s) > LARGEST_CLOCK_ERROR_S + (after - before).total_seconds():
        return fail(name, seen, "set both clocks by NTP: TTLs, locks and `last hour` go by the store's clock")
    return ok(name, seen)


def _disk(store: Store) -> Check:
    name = "store: disk"
    try:
        rows = store.query("SELECT name, free_space, total_space FROM system.disks").rows
    except StoreQueryError as error:
        return unknown(name, str(error))
    least = min(((int(free), int(total), str(disk)) for disk, free, total in rows), default=None)
    if least is None or not least[1]:
        return unknown(name, "the store names no disk")
    free, total, disk = least
    seen = f"{free / 1024**3:.1f} GiB free of {total / 1024**3:.0f} on disk {disk}"
    if free < _LEAST_FREE_BYTES and free < total * _LEAST_FREE_SHARE:
        return fail(name, seen, "make room, or shorten [store.ttl_days]")
    if free < total * _LEAST_FREE_SHARE:
        return warn(name, seen, "make room soon, or shorten [store.ttl_days]")
    return ok(name, seen)


def _schema(store: Store, settings: StoreSettings) -> list[Check]:
    name = _SCHEMA
    try:
        steps = migrate.plan(store, settings)
    except GnomonError as error:
        return [fail(name, str(error), "run the newer gnomon, or take the store that belongs to this one")]
    if steps:
        return [
            warn(name, f"{len(steps)} steps behind this program", "run gnomon migrate (gnomon run does too)")
        ]
    checks = [ok(name, "up to date")]
    made = str(store.query("SHOW CREATE TABLE pairs").rows[0][0])
    window = re.search(r"(?:non_replicated|replicated)_deduplication_window\w* = (\d+)", made)
    if window is None or int(window[1]) < LEAST_WINDOW:
        seen = f"table pairs remembers {window[1] if window else 'no'} inserts"
        advice = f"set its deduplication window to {LEAST_WINDOW}: a lost reply would store rows twice"
        checks.append(fail("store: deduplication", seen, advice))
    else:
        checks.append(ok("store: deduplication", f"the last {window[1]} inserts are remembered"))
    return checks


def _group(store: Store, experiment: str, group: str) -> list[Check]:
    name = f"store: group {group}"
    found = group_warnings(store, experiment, group)
    return [warn(name, problem, "see docs/scaling.md, one group an experiment") for problem in found]


def _permission(store: Store, database: str) -> Check:
    name, missing = "store: permissions", []
    try:
        for right in ("SELECT", "INSERT", "ALTER", "CREATE TABLE", "CREATE VIEW"):
            if not int(store.query(f"CHECK GRANT {right} ON `{database}`.*").rows[0][0]):
                missing.append(right)
    except StoreQueryError as error:
        return unknown(name, str(error))
    if missing:
        return fail(name, f"this user lacks {', '.join(missing)}", "grant it: see sql/grants/writer.sql")
    return ok(name, "the user may do what the service does")
