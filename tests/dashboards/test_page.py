"""The page in a real browser, on the real engine: what a person sees and can do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def page(browser: Browser, explorer: str) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 1600})
    opened.set_default_timeout(30_000)
    expect.set_options(timeout=30_000)
    opened.goto(explorer)
    expect(opened.get_by_role("heading", name="Divergence over time")).to_be_visible(timeout=60_000)
    yield opened
    opened.close()


def metric(page: Page, label: str) -> str:
    card = page.get_by_test_id("stMetric").filter(has=page.get_by_text(label, exact=True))
    return card.get_by_test_id("stMetricValue").inner_text()


def test_the_totals_are_those_of_the_store(page: Page) -> None:
    assert metric(page, "consumed") == "6"
    assert metric(page, "compared") == "6"
    assert metric(page, "regressions") == "2 (33.3 %)"
    assert metric(page, "faults, candidate only") == "2"
    assert metric(page, "faults, reference only") == "0"
    # The mean of 0, 1, ..., 5 eighths.
    assert metric(page, "forced KL, mean (nats)") == "0.312"


def test_a_link_opens_a_pair_and_hostile_text_stays_text(page: Page, explorer: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{explorer}/?experiment=night&candidate=q4&topic_id=topic-1&partition=0&offset=4")
    # A new visit is a session with a store handle of its own.
    expect(page.get_by_role("heading", name="Pair", exact=True)).to_be_visible(timeout=60_000)
    answer = page.get_by_test_id("stCode").filter(has_text="<script>").first
    expect(answer).to_be_visible()
    assert "\\x1b[31mred\\x1b[0m \\u202eabc **bold** $x^2$ :skull: end" in answer.inner_text()
    assert page.title() == "Gnomon"
    assert page.locator("img[src*='leak']").count() == 0
    assert page.locator("a[href*='javascript']").count() == 0
    assert [url for url in asked if not url.startswith((explorer, "data:", "blob:"))] == []


def test_choosing_a_verdict_narrows_the_table(page: Page) -> None:
    expect(page.get_by_text("6 pairs, regressions first")).to_be_visible()
    page.get_by_role("combobox", name=re.compile("Verdict")).click()
    page.get_by_role("option", name="candidate_worse").click()
    expect(page.get_by_text("2 pairs, regressions first")).to_be_visible()


def test_choosing_a_row_shows_its_two_answers_and_puts_it_into_the_address(page: Page) -> None:
    grid = page.get_by_test_id("stDataFrame").first
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    # The grid is a canvas: the box to choose a row is at the left edge, under the header row.
    page.mouse.click(box["x"] + 15, box["y"] + 52)
    expect(page.get_by_role("heading", name="Pair", exact=True)).to_be_visible()
    expect(page.get_by_text("Reference", exact=True)).to_be_visible()
    expect(page.get_by_text("Candidate", exact=True)).to_be_visible()
    # A loop of weight 0.7 and half a nat ranks over broken JSON of 0.6 and five eighths.
    expect(page).to_have_url(re.compile(r"offset=4"))
