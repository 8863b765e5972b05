"""The SQL page in a real browser: an answer as a file, a query cancelled, and one cut off by the end."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboards.conftest import explorer_on

LONG = "SELECT sum(cityHash64(number, number + 1)) AS long FROM numbers(20000000000)"
"""Some minutes of work."""
NAMES = "SELECT number AS n, concat('=', toString(number), ',\"') AS name FROM numbers(3)"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 1400})
    opened.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    yield opened
    opened.close()


def run(page: Page, explorer: str, sql: str) -> None:
    """Open the page on a statement and press Run."""
    page.goto(f"{explorer}/sql?mode=own&sql={quote(sql)}")
    expect(page.get_by_role("textbox", name="Statement")).to_have_value(sql)
    page.get_by_role("button", name="Run").click()


def test_an_answer_is_downloaded_as_csv(page: Page, explorer: str) -> None:
    run(page, explorer, NAMES)
    # The table's own file would have no apostrophes: its toolbar is there, without that.
    page.get_by_test_id("stDataFrame").hover()
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
    with page.expect_download() as begun:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    assert begun.value.suggested_filename.endswith(".csv")
    rows = list(csv.reader(io.StringIO(Path(begun.value.path()).read_text(encoding="utf-8-sig"))))
    # A spreadsheet would run what begins with an equals sign.
    assert rows == [["n", "name"], ["0", "'=0,\""], ["1", "'=1,\""], ["2", "'=2,\""]]


def test_a_long_query_is_cancelled_and_the_page_goes_on(page: Page, explorer: str) -> None:
    run(page, explorer, LONG)
    expect(page.get_by_text("Reading")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("cancelled")).to_be_visible()
    # Run asks anew, and there is one query to cancel.
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("Reading")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(1)
    expect(page.get_by_text("cancelled")).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("cancelled")).to_be_visible()
    run(page, explorer, NAMES)
    expect(page.get_by_test_id("stDownloadButton")).to_be_visible()


def test_the_explorer_ends_while_a_query_is_under_way(page: Page, filled: Path) -> None:
    with explorer_on(filled) as (address, child):
        run(page, address, LONG)
        expect(page.get_by_text("Reading")).to_be_visible()
        child.terminate()
        assert child.wait(timeout=20) == 0
