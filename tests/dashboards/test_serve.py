"""The explorer's process keeps to itself."""

from __future__ import annotations

import pytest
from streamlit import net_util
from streamlit.web.server.server_util import is_url_from_allowed_origins

from dashboards.serve import ask_no_stranger


def test_a_browser_of_an_unknown_origin_makes_the_server_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def record(url: str, timeout: float = 5) -> None:
        asked.append(url)

    monkeypatch.setattr(net_util, "_make_blocking_http_get", record)
    # Put back after the test.
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)
    assert not is_url_from_allowed_origins("https://elsewhere.example")
    assert asked
    asked.clear()
    ask_no_stranger()
    assert not is_url_from_allowed_origins("https://elsewhere.example")
    assert is_url_from_allowed_origins("http://localhost:8501")
    assert asked == []
