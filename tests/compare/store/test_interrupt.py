"""A query that is broken off from another thread, on the real engine behind its port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.store.client import Store, open_store
from ingest.errors import RetryError
from ingest.settings import StoreSettings

ENDLESS = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) % 1000003 = 7"
RUNNING = (
    "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%' AND query NOT LIKE '%processes%'"
)
LONGEST_S = 30


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{tmp_path / 'store'}"), role="owner") as store:
        store.command("CREATE DATABASE IF NOT EXISTS gnomon", use_database=False)
        yield store


def running(owner: Store) -> int:
    ((count,),) = owner.query(RUNNING).rows
    return int(count)


def until(owner: Store, count: int) -> None:
    end = time.monotonic() + LONGEST_S
    while running(owner) != count:
        assert time.monotonic() < end, f"{running(owner)} queries run, not {count}"
        time.sleep(0.05)


def test_an_interrupted_query_ends_in_the_engine_too(owner: Store, tmp_path: Path) -> None:
    settings = StoreSettings(url=f"chdb://{tmp_path / 'store'}")
    raised: list[BaseException] = []
    with open_store(settings, role="reader", over_port=True) as reader:

        def ask() -> None:
            try:
                reader.query(ENDLESS)
            except RetryError as error:
                raised.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        until(owner, 1)
        reader.interrupt()
        asking.join(LONGEST_S)
        assert not asking.is_alive() and len(raised) == 1
        until(owner, 0)
        assert reader.query("SELECT 7").rows == [(7,)]


def test_another_handle_goes_on(owner: Store, tmp_path: Path) -> None:
    settings = StoreSettings(url=f"chdb://{tmp_path / 'store'}")
    with open_store(settings, role="reader", over_port=True) as reader, reader.another() as second:
        reader.interrupt()
        assert second.query("SELECT 8").rows == [(8,)]
        # What was idle when it was interrupted is lost too, and told as a store that is away.
        with pytest.raises(RetryError):
            reader.query("SELECT 9")
        assert reader.query("SELECT 9").rows == [(9,)]
