"""Every store setting reaches the explorer through the variables that `gnomon dashboard` sets."""

from __future__ import annotations

import msgspec
import pytest

from dashboards.connection import store_settings
from ingest.errors import SettingsError
from ingest.settings import StoreSettings


def test_what_is_set_comes_back() -> None:
    given = StoreSettings(
        url="https://clickhouse:8443",
        database="other",
        username="reader",
        password="not-a-real-one",
        tls_ca_file="/etc/ca.pem",
        verify_tls=False,
        max_memory_bytes=123_456_789,
    )
    assert store_settings(_variables(given)) == given


def test_what_is_not_set_is_the_default() -> None:
    assert store_settings({"GNOMON_STORE_URL": "http://h:1"}) == StoreSettings(url="http://h:1")


@pytest.mark.parametrize(
    "environ", [{}, {"GNOMON_STORE_URL": "http://h", "GNOMON_STORE_VERIFY_TLS": "perhaps"}]
)
def test_what_does_not_fit_is_said(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="GNOMON_STORE_"):
        store_settings(environ)


def _variables(settings: StoreSettings) -> dict[str, str]:
    values = msgspec.structs.asdict(settings)
    return {f"GNOMON_STORE_{name.upper()}": str(value) for name, value in values.items()}
