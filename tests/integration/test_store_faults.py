"""What the service does when the store has no room, no memory, loses a reply, or is slow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.chaos_proxy import Proxy, ProxyLoop, Trap
from compare.store import client
from compare.store.client import open_store
from compare.store.lockfile import read_owner
from ingest.settings import StoreSettings
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import Service, until
from tests.integration.conftest import Bench, envelope

RECORDS = 120
ACCOUNTING = "SELECT consumed, compared, dead_lettered, unaccounted FROM accounting_v1"


@contextmanager
def full_disk(bench: Bench) -> Iterator[None]:
    """The engine itself refuses what its disk has no room for (243)."""
    setting = "min_free_disk_bytes_to_perform_insert"
    with open_store(bench.settings.store, role="any") as store:
        store.command(f"ALTER TABLE pairs MODIFY SETTING {setting} = 1000000000000000")
        try:
            yield
        finally:
            store.command(f"ALTER TABLE pairs RESET SETTING {setting}")


@contextmanager
def no_memory(bench: Bench) -> Iterator[None]:
    """The engine itself refuses inserts for want of memory (241)."""
    known = client._insert_settings

    def poor(dedup_token: str | None, query_id: str | None) -> dict[str, Any]:
        # Only for the pairs of a batch: the service could not even begin.
        is_pairs = query_id is not None and "/pairs/" in query_id
        room = {"max_memory_usage": 1, "max_untracked_memory": 1} if is_pairs else {}
        return known(dedup_token, query_id) | room

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_insert_settings", poor)
        yield


@pytest.mark.parametrize(
    ("fault", "word"), [(full_disk, "NOT_ENOUGH_SPACE"), (no_memory, "memory limit exceeded")]
)
def test_a_store_without_room_or_memory_is_tried_again_until_it_has_some(
    bench: Bench,
    caplog: pytest.LogCaptureFixture,
    fault: Callable[[Bench], AbstractContextManager[None]],
    word: str,
) -> None:
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(RECORDS)])
    with open_store(bench.settings.store, role="owner") as store:
        with fault(bench):
            service = Service(bench, outcomes=RECORDS)
            until(lambda: caplog.text.count("is tried again") >= 2)
            assert service.stored == 0
        report = service.report()
        # Nothing of it was taken for a fault of the rows.
        assert (report.compared, report.dead_lettered) == (RECORDS, 0)
        assert store.query("SELECT count(), uniqExact(offset) FROM pairs").rows == [(RECORDS, RECORDS)]
        assert store.query(ACCOUNTING).rows == [(RECORDS, RECORDS, 0, 0)]
    assert word in caplog.text
    assert bench.committed() == RECORDS


def test_rows_whose_reply_was_lost_are_stored_once_and_a_slow_store_is_waited_for(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path, migrated_at: MigratedAt
) -> None:
    """The replies to one insert of pairs are lost twice; the third comes only when the test says so."""
    folder, loop = tmp_path / "server", ProxyLoop()
    with open_store(migrated_at(folder), role="owner") as owner:
        published = read_owner(folder)
        assert published is not None
        struck = threading.Event()
        proxy = Proxy(loop, published.url, struck.set)
        try:
            store = StoreSettings(url=proxy.url, password=published.writer_token)
            bench.settings = msgspec.structs.replace(bench.settings, store=store)
            proxy.arm(Trap(lambda seen: seen.table == "pairs", "hold", loses=2))
            bench.produce([envelope(f"r{n}", f"question {n}") for n in range(400)])
            service = Service(bench, outcomes=400)
            assert struck.wait(60)
            # Stored by now, three times over; but not known to be.
            ((stored, distinct),) = owner.query("SELECT count(), uniqExact(offset) FROM pairs").rows
            assert stored == distinct > 0
            assert (service.stored, bench.committed()) == (0, None)
            # Bounded while it waits: two batches of 50 and what 40 workers hold.
            assert len(stubs[0].calls) <= 2 * 50 + 40 + 50
            proxy.release()
            report = service.report()
        finally:
            proxy.close()
            loop.close()
        assert (report.consumed, report.compared, report.already_stored) == (400, 400, 0)
        assert owner.query("SELECT count(), uniqExact(offset) FROM pairs").rows == [(400, 400)]
        assert owner.query(ACCOUNTING).rows == [(400, 400, 0, 0)]
    assert bench.committed() == 400
    assert len(stubs[0].calls) == 400
