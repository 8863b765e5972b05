"""One engine for the package, since its schema takes seconds to make; an experiment of its own a test."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from compare.store import Store, migrate, open_store
from ingest.settings import StoreSettings
from tests.compare.recipes.world import World
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="package")
def store_settings(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> StoreSettings:
    return migrated_at(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="package")
def migrated_store(store_settings: StoreSettings) -> Iterator[Store]:
    with open_store(store_settings, role="owner") as store:
        yield store


@pytest.fixture(scope="package")
def empty_store(migrated_store: Store, store_settings: StoreSettings) -> Iterator[Store]:
    """A database beside it, into which nothing is written."""
    settings = msgspec.structs.replace(store_settings, database="empty")
    with open_store(settings, role="owner") as store:
        migrate.apply(store, settings)
        yield store


@pytest.fixture
def world(migrated_store: Store, store_settings: StoreSettings) -> World:
    return World(migrated_store, store_settings)
