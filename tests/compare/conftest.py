"""A migrated store on the real embedded engine, one a test module: the engine allows one folder at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compare.store import Store, open_store
from ingest.settings import StoreSettings
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="module")
def store_settings(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> StoreSettings:
    return migrated_at(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def migrated_store(store_settings: StoreSettings) -> Iterator[Store]:
    with open_store(store_settings, role="owner") as store:
        yield store
