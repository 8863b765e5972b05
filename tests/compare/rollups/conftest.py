"""An emptied store for each test, and the rollups over it."""

from __future__ import annotations

import pytest

from compare.rollups.rebuild import Rollups
from compare.store import Store
from ingest.settings import StoreSettings


@pytest.fixture
def store(migrated_store: Store) -> Store:
    for table in ("pairs", "outcomes", "rollup_hourly", "rollup_worst", "rollup_minutes"):
        migrated_store.command(f"TRUNCATE TABLE {table}")
    return migrated_store


@pytest.fixture
def rollups(store: Store, store_settings: StoreSettings) -> Rollups:
    return Rollups(store, store_settings)
