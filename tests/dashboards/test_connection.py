"""Every store setting reaches the explorer through the variables that `gnomon dashboard` sets."""

from __future__ import annotations

import pytest

from compare.cli.dashboard import store_environment
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
        cluster="prod",
    )
    assert store_settings(store_environment(given)) == given


def test_what_is_not_set_is_the_default() -> None:
    assert store_settings({"GNOMON_STORE_URL": "http://h:1"}) == StoreSettings(url="http://h:1")


@pytest.mark.parametrize(
    "environ", [{}, {"GNOMON_STORE_URL": "http://h", "GNOMON_STORE_VERIFY_TLS": "perhaps"}]
)
def test_what_does_not_fit_is_said(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="GNOMON_STORE_"):
        store_settings(environ)
