"""One process at a time changes the schema: real processes through the owner's port."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from compare.store import Store, migrate, open_store
from compare.store.errors import StoreQueryError
from compare.store.migration_lock import LOCK_NAME, MigrationLock
from compare.store.table_lease import Lease, leases_of
from ingest.errors import FatalError, RetryError
from ingest.settings import StoreSettings

_MIGRATE = """
import json, sys
from compare.store import migrate, open_store
from ingest.settings import StoreSettings
settings = StoreSettings(url=sys.argv[1], database=sys.argv[2])
with open_store(settings, role="any") as store:
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([step.name for step in migrate.apply(store)]), flush=True)
"""

_STOP_IN_THE_MIDDLE = """
import pathlib, sys
from compare.store import migrate, open_store
from compare.store.client import Store
from ingest.settings import StoreSettings
settings = StoreSettings(url=sys.argv[1], database=sys.argv[2])
run = Store.command
def command(self, sql, *rest, **more):
    if "THE SECOND STATEMENT" in sql:
        print("stopped", flush=True)
        sys.stdin.readline()
    run(self, sql, *rest, **more)
Store.command = command
migrate.shipped_views = dict
shipped = migrate.shipped_migrations(pathlib.Path(sys.argv[3]))
with open_store(settings, role="any") as store:
    migrate.apply(store, shipped=shipped, lease_seconds=float(sys.argv[4]))
"""

FIRST = "CREATE TABLE IF NOT EXISTS one (a UInt8) ENGINE = MergeTree ORDER BY a"
SECOND = """ALTER TABLE one ADD COLUMN IF NOT EXISTS b UInt8;
-- THE SECOND STATEMENT
ALTER TABLE one ADD COLUMN IF NOT EXISTS c UInt8"""


@pytest.fixture(scope="module", autouse=True)
def engine(store_settings: StoreSettings) -> Iterator[Store]:
    """Owns the folder, so that other processes reach it."""
    with open_store(store_settings, role="owner") as store:
        yield store


@pytest.fixture
def store(store_settings: StoreSettings, request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty database of the test's own."""
    name = "l_" + "".join(char if char.isalnum() else "_" for char in request.node.name)[:40]
    with open_store(StoreSettings(url=store_settings.url, database=name), role="any") as store:
        store.command(f"CREATE DATABASE `{name}`", use_database=False)
        yield store
        store.command(f"DROP DATABASE `{name}`", use_database=False)


def child(
    script: str, store_settings: StoreSettings, *arguments: object, stderr: int | None = None
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, store_settings.url, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def states(store: Store) -> list[tuple[int, bool]]:
    return [
        (generation, lease.is_released)
        for generation, lease in sorted(leases_of(store, LOCK_NAME)[0].items())
    ]


def held_until_lost(lock: MigrationLock) -> None:
    assert lock.lease._renewer is not None
    lock.lease._renewer.join(timeout=30)


def stop_renewing(lock: MigrationLock) -> None:
    lock.lease._stop.set()
    held_until_lost(lock)


def expire(store: Store, generation: int) -> None:
    """Write a lease that ran out, as a dead holder's does after a while."""
    leases, now = leases_of(store, LOCK_NAME)
    past = msgspec.structs.replace(leases[generation], until=now - timedelta(seconds=1))
    comment = msgspec.json.encode(past).decode()
    store.command(f"ALTER TABLE schema_lock_{generation} MODIFY COMMENT '{comment}'")


def test_of_three_processes_that_start_at_once_one_migrates(
    store: Store, store_settings: StoreSettings
) -> None:
    processes = [child(_MIGRATE, store_settings, store.database) for _ in range(3)]
    assert [line(process) for process in processes] == ["ready"] * 3
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    shipped = [migration.name for migration in migrate.shipped_migrations()]
    assert sorted(map(len, done)) == [0, 0, len(shipped) + len(migrate.shipped_views())]
    # Without FINAL: each was recorded once, not only shown once.
    recorded = store.query("SELECT name FROM schema_migrations ORDER BY number").rows
    assert [row[0] for row in recorded] == shipped
    assert [released for _, released in states(store)] == [True]


def test_after_a_killed_holder_the_next_one_takes_over_and_finishes(
    store: Store, store_settings: StoreSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "0001_create_one.sql").write_text(FIRST)
    (tmp_path / "0002_widen_one.sql").write_text(SECOND)
    lease_seconds = 3.0
    holder = child(_STOP_IN_THE_MIDDLE, store_settings, store.database, tmp_path, lease_seconds)
    assert line(holder) == "stopped"
    assert states(store) == [(1, False)]
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    lease = leases_of(store, LOCK_NAME)[0][1]
    assert lease.holder.endswith(f":{holder.pid}")
    assert [row[0] for row in store.query("DESCRIBE TABLE one")] == ["a", "b"]

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(migrate, "shipped_views", dict)
        steps = migrate.apply(
            store, shipped=migrate.shipped_migrations(tmp_path), lease_seconds=lease_seconds
        )
        assert migrate.plan(store, shipped=migrate.shipped_migrations(tmp_path)) == []
    assert leases_of(store, LOCK_NAME)[1] > lease.until
    assert [step.name for step in steps] == ["0002_widen_one.sql"]
    assert [row[0] for row in store.query("DESCRIBE TABLE one")] == ["a", "b", "c"]
    assert states(store) == [(2, True)]
    waiting, taken_over = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"is being migrated by {lease.holder} since" in waiting
    assert f"took the migration lock over from {lease.holder}" in taken_over


def test_one_that_waits_through_the_holders_port_goes_on_when_the_holder_leaves_with_it(
    store_settings: StoreSettings, tmp_path: Path
) -> None:
    (tmp_path / "0001_create_one.sql").write_text(FIRST)
    (tmp_path / "0002_widen_one.sql").write_text(SECOND)
    folder = msgspec.structs.replace(store_settings, url=f"chdb://{tmp_path / 'store'}")
    owner = child(_STOP_IN_THE_MIDDLE, folder, "gnomon", tmp_path, 2.0)
    assert line(owner) == "stopped"
    with (
        owner,
        child(_STOP_IN_THE_MIDDLE, folder, "gnomon", tmp_path, 30.0, stderr=subprocess.PIPE) as waiting,
    ):
        assert waiting.stderr is not None
        assert f":{owner.pid} since" in waiting.stderr.readline()
        owner.kill()
        assert line(waiting) == "stopped"
        waiting.communicate("\n")
    assert waiting.returncode == 0


def test_a_holder_at_a_long_statement_keeps_the_lock(store: Store) -> None:
    with MigrationLock(store, lease_seconds=2.4) as lock:
        first = leases_of(store, LOCK_NAME)[0][1]
        # The holder's own connection is busy for longer than the lease.
        store.query("SELECT sleep(3)")
        lock.check()
        leases, now = leases_of(store, LOCK_NAME)
        assert leases[1].until > now > first.until
        assert (leases[1].since, leases[1].token) == (first.since, first.token)


def test_the_lease_says_who_since_when_and_until_when(store: Store) -> None:
    with MigrationLock(store, lease_seconds=20):
        (row,) = store.query(
            "SELECT JSONExtractString(comment, 'holder'), "
            "parseDateTime64BestEffort(JSONExtractString(comment, 'since'), 3, 'UTC'), "
            "parseDateTime64BestEffort(JSONExtractString(comment, 'until'), 3, 'UTC'), now64(3, 'UTC') "
            "FROM system.tables WHERE database = {d:String} AND name = 'schema_lock_1'",
            {"d": store.database},
        )
        holder, since, until, now = row
        assert holder.endswith(f":{os.getpid()}")
        assert since <= now <= until == since + timedelta(seconds=20)


def test_a_second_holder_waits_until_the_first_gives_it_back(store: Store) -> None:
    with store.another() as second, MigrationLock(store):
        contender = MigrationLock(second)
        assert contender.lease.take() is False
        assert states(store) == [(1, False)]
    with store.another() as second, MigrationLock(second):
        assert states(store) == [(2, False)]
    assert states(store) == [(2, True)]


def test_of_two_that_see_the_same_expired_lease_one_gets_the_lock(store: Store) -> None:
    """The second has looked before the first created the next generation."""
    with MigrationLock(store):
        expire(store, 1)
        late = MigrationLock(store)
        before = leases_of(store, LOCK_NAME)
        with pytest.MonkeyPatch.context() as patch, MigrationLock(store):
            stale = iter([before, leases_of(store, LOCK_NAME)])
            patch.setattr("compare.store.table_lease.leases_of", lambda *_: next(stale))
            assert late.lease.take() is False
            assert states(store) == [(2, False)]


def test_one_that_slept_through_several_generations_gets_nothing(store: Store) -> None:
    """It looked at generation 1; by now 2 is gone, so CREATE of 2 works, and 3 is held."""
    with MigrationLock(store):
        pass
    before = leases_of(store, LOCK_NAME)
    with MigrationLock(store):
        pass
    with MigrationLock(store):
        assert states(store) == [(3, False)]
        late = MigrationLock(store)
        with pytest.MonkeyPatch.context() as patch:
            answers = iter([before])
            patch.setattr(
                "compare.store.table_lease.leases_of",
                lambda *one: next(answers, None) or leases_of(*one),
            )
            assert late.lease.take() is False
        assert states(store) == [(3, False)]


def test_a_holder_whose_lease_ran_out_is_told_and_leaves_the_next_one_alone(store: Store) -> None:
    with MigrationLock(store, lease_seconds=6) as lock:
        expire(store, 1)
        with MigrationLock(store, lease_seconds=30):
            held_until_lost(lock)
            with pytest.raises(RetryError, match=r"the migration lock of database l_\w+ ran out after 6 s"):
                lock.check()
            assert states(store) == [(2, False)]
    assert states(store) == [(2, True)]


def test_a_holder_that_renews_no_more_is_told_before_its_next_statement(store: Store) -> None:
    with MigrationLock(store, lease_seconds=0.2) as lock:
        stop_renewing(lock)
        time.sleep(0.25)
        with pytest.raises(RetryError, match="ran out after 0.2 s"):
            lock.check()


def test_a_table_with_the_locks_name_and_no_lease_is_refused(store: Store) -> None:
    store.command("CREATE TABLE schema_lock_7 (a UInt8) ENGINE = MergeTree ORDER BY a COMMENT 'mine'")
    with pytest.raises(FatalError, match=r"schema_lock_7 has no lease in its comment") as caught:
        migrate.apply(store)
    assert "\n" not in str(caught.value)


def test_an_error_of_the_store_is_no_lost_race(store: Store) -> None:
    with store.another() as gone:
        gone.database = "nowhere_at_all"
        lock = MigrationLock(gone)
        gone.close()
        with pytest.raises(StoreQueryError, match="nowhere_at_all"):
            lock.lease.take()


def test_a_lease_survives_its_journey_through_a_comment(store: Store) -> None:
    lock = MigrationLock(store)
    lock.lease._holder = 'o\'hara\\host "1":7'
    with lock:
        lease: Lease = leases_of(store, LOCK_NAME)[0][1]
        assert lease.holder == 'o\'hara\\host "1":7'
