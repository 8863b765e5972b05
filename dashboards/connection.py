"""The store that the explorer reads, named by the environment that `gnomon dashboard` sets."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from compare.store.client import Store, open_store
from ingest.errors import SettingsError
from ingest.settings import StoreSettings


def store_settings(environ: Mapping[str, str] = os.environ) -> StoreSettings:
    """Settings from GNOMON_STORE_URL and its companions. Raises SettingsError without them."""
    given = {
        field.name: environ[variable]
        for field in msgspec.structs.fields(StoreSettings)
        if (variable := f"GNOMON_STORE_{field.name.upper()}") in environ
    }
    if "url" not in given:
        raise SettingsError("GNOMON_STORE_URL is not set; start the explorer with `gnomon dashboard`")
    try:
        return msgspec.convert(given, StoreSettings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingsError(f"the explorer's GNOMON_STORE_ variables do not fit: {error}") from error


def connect() -> Store:
    """A read-only handle on the store, whose queries can be interrupted."""
    return open_store(store_settings(), role="reader", over_port=True)


def connect_to_act() -> Store:
    """A handle that may write, for what people do about alerts."""
    return open_store(store_settings(), role="any")
