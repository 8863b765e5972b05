"""The way from an alert to a pair in a real browser, and that names from traffic stay text there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboards.alarmed import EXPERIMENT, FIRST, IN_SLICE, fill
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    """What `explorer` serves here."""
    folder = tmp_path_factory.mktemp("alarmed") / "store"
    fill(folder, migrated_at)
    return folder


def test_from_an_alert_to_its_worst_pair_and_hostile_names_stay_text(browser: Browser, explorer: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.goto(f"{explorer}/alerts?experiment={EXPERIMENT}&alert={IN_SLICE}")
    heading = page.get_by_role("heading", name=re.compile("firing, warning: regression_rate"))
    expect(heading).to_contain_text(
        "route **bold** [x](javascript:\u2060alert(1)) <script>alert(1)</script> \\u202eabc"
    )
    # Links that carry the name in a query may stand there already; none of them runs it.
    assert page.locator("a[href^='javascript' i]").count() == 0

    page.goto(f"{explorer}/alerts?experiment={EXPERIMENT}&alert={FIRST}")
    worst = page.get_by_role("link", name=re.compile("r-0-44"))
    expect(worst).to_be_visible()
    # In sight without scrolling.
    assert worst.bounding_box()["y"] < 900  # type: ignore[index]
    worst.click()
    page.wait_for_url(re.compile(r"/pair\?.*topic_id=t-1.*offset=44"))
    assert [url for url in asked if not url.startswith((explorer, "data:", "blob:"))] == []
    page.close()


def test_what_was_done_is_said_and_nothing_stays_open_over_it(browser: Browser, explorer: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    page.goto(f"{explorer}/alerts?experiment={EXPERIMENT}&alert={FIRST}")
    page.get_by_role("button", name="Acknowledge").click()
    form = page.get_by_test_id("stPopoverBody")
    form.get_by_label("Your name").fill("Li")
    form.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("Acknowledged as Li.")).to_be_visible()
    expect(form).to_have_count(0)
    page.close()
