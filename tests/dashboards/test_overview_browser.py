"""The overview in a real browser: every number leads to its pairs, and a link keeps the margin."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def page(browser: Browser, explorer: str) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 2400})
    opened.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    opened.goto(f"{explorer}/?margin=0.02")
    yield opened
    opened.close()


def test_a_verdict_leads_to_its_pairs_and_the_margin_stays_in_the_address(page: Page) -> None:
    expect(page.get_by_role("heading", name="Accounting")).to_be_visible(timeout=90_000)
    expect(page.get_by_text("margin 2 %").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"margin=0\.02"))
    link = page.get_by_role("link", name=re.compile("candidate_worse 2"))
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/pairs\?.*verdict=candidate_worse"))
    expect(page.get_by_text("Pairs 1 to 2, the last ones.")).to_be_visible()


def test_a_hostile_answer_stays_text(page: Page, explorer: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{explorer}/pair?topic_id=topic-1&partition=0&offset=4")
    answer = page.get_by_role("group").filter(has_text="<script>document.title='owned'</script>").first
    expect(answer).to_contain_text(r"![x](http://127.0.0.1:1/leak.png)")
    expect(answer).to_contain_text(r"\x1b[31mred\x1b[0m \u202eabc **bold**")
    expect(page).not_to_have_title("owned")
    assert page.locator("img[src*='leak'], a[href*='javascript']").count() == 0
    assert [url for url in asked if not url.startswith((explorer, "data:", "blob:"))] == []
