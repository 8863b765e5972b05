"""Who owns an embedded folder, across real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.store import Store, StoreQueryError, migrate, open_store
from compare.store.connection import Connection
from compare.store.lockfile import LOCK_NAME, read_owner, try_lock
from ingest.errors import FatalError, RetryError, SettingsError
from ingest.settings import StoreSettings
from tests.fixtures.stores import MigratedAt

_HOLDER = """
import sys
from compare.store import migrate, open_store
from ingest.settings import StoreSettings
with open_store(StoreSettings(url=sys.argv[1]), role=sys.argv[2]) as store:
    if sys.argv[2] != "reader":
        migrate.apply(store)
    print("open", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    return StoreSettings(url=f"chdb://{tmp_path}/store", max_memory_bytes=512 * 1024 * 1024)


@pytest.fixture
def migrated(settings: StoreSettings, migrated_at: MigratedAt) -> StoreSettings:
    """The same settings; who opens the folder has nothing to migrate. Ask for it before `holder`."""
    migrated_at(folder_of(settings))
    return settings


def hold(settings: StoreSettings, role: str = "owner") -> subprocess.Popen[bytes]:
    """A process that owns the folder until its input closes."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, settings.url, role], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"open\n"
    return process


def end(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=30)
    return process.returncode


@pytest.fixture
def holder(settings: StoreSettings) -> Iterator[subprocess.Popen[bytes]]:
    process = hold(settings)
    yield process
    if process.poll() is None:
        end(process)
    for pipe in (process.stdin, process.stdout):
        if pipe and not pipe.closed:
            pipe.close()


def folder_of(settings: StoreSettings) -> Path:
    return Path(settings.url.removeprefix("chdb://"))


def test_the_owner_serves_what_it_stores_to_other_processes(
    migrated: StoreSettings, holder: subprocess.Popen[bytes]
) -> None:
    with open_store(migrated, role="any") as store:
        row = ("e", "hash", "{}", "{}")
        store.insert("experiments", ["experiment", "settings_hash", "settings", "served"], [row])
        assert store.query("SELECT settings_hash FROM experiments_v1").rows == [("hash",)]
        assert f"process {holder.pid}" in store.where
    with open_store(migrated, role="reader") as store:
        result = store.query("SELECT verdict, count() FROM pairs_v1 GROUP BY verdict")
        assert (result.column_names, result.rows) == (("verdict", "count()"), [])
        with pytest.raises(StoreQueryError, match="cannot run DROP"):
            store.command("DROP TABLE pairs")
    who = f"belongs to process {holder.pid}, which serves it at http://127.0.0.1:"
    with pytest.raises(FatalError, match=who):
        open_store(migrated, role="owner")


def test_a_killed_owner_leaves_the_folder_free(
    settings: StoreSettings, holder: subprocess.Popen[bytes]
) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait(timeout=30)
    assert (folder_of(settings) / LOCK_NAME).exists()
    with open_store(settings, role="owner") as store:
        assert migrate.plan(store) == []
        owner = read_owner(folder_of(settings))
        assert owner is not None
        assert owner.pid == os.getpid()
    assert not (folder_of(settings) / LOCK_NAME).exists()


def test_a_store_whose_owner_left_is_away(migrated: StoreSettings, holder: subprocess.Popen[bytes]) -> None:
    with open_store(migrated, role="reader") as store:
        end(holder)
        with pytest.raises(RetryError, match="through process"):
            store.query("SELECT 1")


def test_a_store_whose_owner_left_takes_the_folder_at_the_next_call(
    migrated: StoreSettings, holder: subprocess.Popen[bytes]
) -> None:
    with open_store(migrated, role="any") as store:
        assert "through process" in store.where
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with pytest.raises(RetryError):
            store.query("SELECT 1")
        assert store.query("SELECT 1").rows == [(1,)]
        assert store.where == migrated.url


def test_an_owner_waits_for_a_reader_that_is_about_to_leave(migrated: StoreSettings) -> None:
    with open_store(migrated, role="owner") as store:
        assert store.query("SELECT 1").rows == [(1,)]
    reader = hold(migrated, "reader")
    assert reader.stdin is not None
    reader.stdin.close()
    reader.stdin = None
    with open_store(migrated, role="owner") as store:
        owner = read_owner(folder_of(migrated))
        assert owner is not None
        assert (owner.pid, owner.role) == (os.getpid(), "owner")
    assert end(reader) == 0


def test_stores_of_one_process_share_the_engine(migrated: StoreSettings) -> None:
    with open_store(migrated, role="owner") as first:
        with open_store(migrated, role="reader") as second:
            assert second.query("SELECT count() FROM pairs_v1").rows == [(0,)]
            with pytest.raises(StoreQueryError, match="read-only connection"):
                second.query("SELECT file('x')")
        assert first.query("SELECT count() FROM pairs_v1").rows == [(0,)]
    assert not (folder_of(migrated) / LOCK_NAME).exists()


def test_a_folder_whose_own_port_does_not_answer_is_left_free(
    migrated: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*arguments: object, **more: object) -> Connection:
        raise RetryError("away")

    monkeypatch.setattr("compare.store.client.connect_http", away)
    with pytest.raises(RetryError, match="away"):
        open_store(migrated, role="reader", over_port=True)
    assert not (folder_of(migrated) / LOCK_NAME).exists()


def test_the_engine_keeps_its_memory_limit(migrated: StoreSettings) -> None:
    sql = "SELECT toUInt64(value) FROM system.server_settings WHERE name = 'max_server_memory_usage'"
    with open_store(migrated, role="owner") as store:
        with open_store(migrated, role="any") as other:
            assert other.query(sql).rows == [(migrated.max_memory_bytes,)]
        with pytest.raises(RetryError, match="memory limit"):
            store.query("SELECT length(groupArray(number)) FROM numbers(1000000000)")


def test_the_lock_is_for_this_user_only(settings: StoreSettings) -> None:
    with open_store(settings, role="owner"):
        assert (folder_of(settings) / LOCK_NAME).stat().st_mode & 0o777 == 0o600


def test_only_one_lock_at_a_time(tmp_path: Path) -> None:
    first = try_lock(tmp_path)
    assert first is not None
    assert try_lock(tmp_path) is None
    first.release()
    second = try_lock(tmp_path)
    assert second is not None
    second.release()


def test_a_lock_that_is_not_yet_written_names_nobody(tmp_path: Path) -> None:
    assert read_owner(tmp_path) is None
    (tmp_path / LOCK_NAME).write_bytes(b'{"pid": 1')
    assert read_owner(tmp_path) is None


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FatalError, match=r"^store folder \S+/file/store cannot be written: Not a directory$"):
        open_store(StoreSettings(url=f"chdb://{tmp_path}/file/store"), role="owner")


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%20b"])
def test_a_path_that_the_engine_would_read_otherwise_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FatalError, match="its path holds"):
        open_store(StoreSettings(url=f"chdb://{tmp_path / name}"), role="any")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"nothing does not exist"):
        open_store(StoreSettings(url=f"chdb://{tmp_path}/nothing"), role="reader")
    assert not (tmp_path / "nothing").exists()


def test_a_reader_makes_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FatalError, match=r"holds no store: run `gnomon demo`"):
        open_store(StoreSettings(url=f"chdb://{tmp_path}"), role="reader")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_second_folder_in_one_process_is_one_clear_line(settings: StoreSettings, tmp_path: Path) -> None:
    with open_store(settings, role="owner"):
        with pytest.raises(FatalError, match=r"^store folder \S+/other cannot be opened: .*already"):
            open_store(StoreSettings(url=f"chdb://{tmp_path}/other"), role="owner")
        assert try_lock(tmp_path / "other") is not None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9", r"\[Errno 111\] Connection refused"),
        ("http://no-such-host.invalid:8123", "Failed to resolve 'no-such-host.invalid'"),
    ],
)
def test_a_server_that_is_not_there_is_away(url: str, words: str) -> None:
    with pytest.raises(RetryError, match=rf"^store {url}: {words}$"):
        open_store(StoreSettings(url=url), role="any")


def test_tls_that_cannot_work_is_final(settings: StoreSettings) -> None:
    with open_store(settings, role="owner"):
        owner = read_owner(folder_of(settings))
        assert owner is not None
        url = owner.url.replace("http:", "https:")
        with pytest.raises(FatalError, match=r"wrong version number.*check the scheme"):
            open_store(StoreSettings(url=url), role="any")
        with pytest.raises(FatalError, match=r"No such file.*tls_ca_file"):
            open_store(StoreSettings(url=url, tls_ca_file="/nowhere/ca.pem"), role="any")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:99999", "port must be a number"),
        ("http://user:secret@host:1", "GNOMON_STORE_PASSWORD"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_wrong_setting(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        open_store(StoreSettings(url=url), role="any")
    assert "secret" not in str(caught.value)


def test_a_format_in_a_query_is_refused_clearly(settings: StoreSettings) -> None:
    with open_store(settings, role="owner") as store, pytest.raises(FatalError, match="leave FORMAT out"):
        store.query("SELECT 1 FORMAT CSV")


def test_a_wrong_password_is_final(settings: StoreSettings) -> None:
    with open_store(settings, role="owner") as store:
        assert isinstance(store, Store)
        owner = read_owner(folder_of(settings))
        assert owner is not None
        with pytest.raises(FatalError, match=r"wrong user name or password") as caught:
            open_store(StoreSettings(url=owner.url, password="nonsense"), role="any")
        assert "nonsense" not in str(caught.value)


def test_a_missing_database_says_what_to_do(settings: StoreSettings) -> None:
    with open_store(settings, role="owner") as store, pytest.raises(FatalError, match="gnomon migrate"):
        store.query("SELECT 1")
