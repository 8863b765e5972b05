"""A page of the explorer without a browser: Streamlit's own test run of the whole application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import dashboards

APP = Path(dashboards.__file__).with_name("app.py")
TIMEOUT_S = 60


def open_page(name: str = "", **parameters: Any) -> AppTest:
    """Run the page as a link to it would; `name` is empty for the root. GNOMON_STORE_URL names the store."""
    app = AppTest.from_file(str(APP), default_timeout=TIMEOUT_S)
    for key, value in parameters.items():
        app.query_params[key] = value if isinstance(value, list) else str(value)
    # What a browser sends with an address; Streamlit's `switch_page` knows only pages that are files.
    app._page_hash = calc_hash(name) if name else ""
    return app.run()


def address_of(app: AppTest) -> dict[str, str | list[str]]:
    """What the run wrote as the browser's address. Its first is told to the browser's script alone."""
    said = app.session_state["address"].said
    return {name: values[0] if len(values) == 1 else values for name, values in said.items()}
