"""Two replays into one experiment, on the real engine: one works, the other is told or takes over."""

from __future__ import annotations

import msgspec
import pytest

from compare.reprocess import alone
from compare.reprocess.alone import AloneInserts, replaying_alone
from compare.store.client import Store
from compare.store.table_lease import lease_name
from ingest.errors import FatalError, RetryError
from ingest.settings import ExperimentSettings, KafkaSettings, Settings

NAME = "again; with 'odd' name"


@pytest.fixture
def store(migrated_store: Store) -> Store:
    migrated_store.command("TRUNCATE TABLE experiments")
    return migrated_store


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(alone, "LEASE_S", 1.5)
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=["127.0.0.1:9"], topic="t"),
        experiment=ExperimentSettings(
            name=NAME, reference="r", candidates=["c"], models={"*": {"r": "full", "c": "q4"}}
        ),
        endpoints={},
    )


def test_the_second_is_told_who_works_and_the_first_goes_on(store: Store, settings: Settings) -> None:
    with replaying_alone(store, settings) as lease, store.another() as other:
        with (
            pytest.raises(FatalError, match=f"experiment {NAME} is replayed by .+:[0-9]+ since .+ UTC: wait"),
            replaying_alone(other, settings),
        ):
            raise AssertionError("two at once")
        another = msgspec.structs.replace(
            settings, experiment=msgspec.structs.replace(settings.experiment, name="b")
        )
        with replaying_alone(other, another):
            assert lease.is_held
        AloneInserts(store, lease).insert_columns("experiments", {"experiment": ["a"]})
    assert store.query("SELECT experiment FROM experiments").rows == [("a",)]
    with replaying_alone(store, settings) as after:
        assert after.generation == lease.generation + 1


def test_a_killed_one_is_waited_out_and_when_it_wakes_it_writes_nothing(
    store: Store, settings: Settings
) -> None:
    with store.another() as other, replaying_alone(other, settings) as sleeping:
        # As a process that is stopped: nothing renews the lease, and then it does.
        sleeping._stop.set()
        assert sleeping._renewer is not None
        sleeping._renewer.join()
        with replaying_alone(store, settings) as heir:
            assert heir.generation == sleeping.generation + 1
            inserts = AloneInserts(other, sleeping)
            with pytest.raises(RetryError, match="ran out after 1.5 s"):
                inserts.insert_columns("experiments", {"experiment": ["a"]})
            sleeping._stop.clear()
            sleeping._renew()
            with pytest.raises(FatalError, match="another process has taken this replay over"):
                inserts.insert_columns("experiments", {"experiment": ["a"]})
            AloneInserts(store, heir).insert_columns("experiments", {"experiment": ["b"]})
    assert store.query("SELECT experiment FROM experiments").rows == [("b",)]


def test_requests_are_not_written_again(store: Store, settings: Settings) -> None:
    with replaying_alone(store, settings) as lease:
        AloneInserts(store, lease).insert_columns("requests", {"experiment": ["a"]})
    assert store.query("SELECT count() FROM requests").rows == [(0,)]


def test_the_lease_has_a_table_of_the_experiments_own(store: Store, settings: Settings) -> None:
    with replaying_alone(store, settings) as lease:
        found = store.query("SELECT name FROM system.tables WHERE name LIKE 'replay_lease_%'").rows
        assert (f"{lease_name('replay', NAME)}_{lease.generation}",) in found
