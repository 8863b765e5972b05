"""The store that the explorer reads, named by the environment that `gnomon dashboard` sets."""

from __future__ import annotations

import os
from collections.abc import Mapping

from compare.store.client import Store, open_store
from ingest.errors import SettingsError
from ingest.settings import StoreSettings


def store_settings(environ: Mapping[str, str] = os.environ) -> StoreSettings:
    """Settings from GNOMON_STORE_URL and its companions. Raises SettingsError without them."""
    url = environ.get("GNOMON_STORE_URL")
    if not url:
        raise SettingsError("GNOMON_STORE_URL is not set; start the explorer with `gnomon dashboard`")
    return StoreSettings(
        url=url,
        database=environ.get("GNOMON_STORE_DATABASE", "gnomon"),
        username=environ.get("GNOMON_STORE_USERNAME", "default"),
        password=environ.get("GNOMON_STORE_PASSWORD"),
    )


def connect() -> Store:
    """A read-only handle on the store."""
    return open_store(store_settings(), role="reader")
