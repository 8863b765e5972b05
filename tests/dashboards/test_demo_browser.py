"""Every page in a real browser on a real run of the demo, and the ways that lead through them."""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from dashboards.words import TEXTS
from tests.fixtures import demo_run
from tests.fixtures.stores import MigratedAt

ERRORS = ("away", "failed", "no_right", "old_store", "refused", "too_large", "cancelled")
"""Words of the boxes that say why there are no figures."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    """What `explorer` serves here."""
    folder = tmp_path_factory.mktemp("demo") / "store"
    demo_run.put(folder, migrated_at)
    return folder


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    """The run's rows a table, to count by hand."""
    _, *lines = map(json.loads, lzma.decompress(demo_run.KEPT.read_bytes()).decode().splitlines())
    return {table: [json.loads(row) for row in found] for table, *found in lines}


class Watched:
    """A browser's tabs, with what they asked for and complained about."""

    def __init__(self, context: BrowserContext, explorer: str) -> None:
        self.context, self.explorer = context, explorer
        self.asked: list[str] = []
        self.complaints: list[str] = []
        context.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        context.on("request", lambda request: self.asked.append(request.url))
        context.on("console", self._note)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def _note(self, message: ConsoleMessage) -> None:
        # Streamlit looks for its own root by trying the page's address first.
        is_probe = "/_stcore/" in message.location.get("url", "")
        if message.type == "error" and not is_probe:
            self.complaints.append(message.text)

    def open(self, path: str) -> Page:
        """A tab with the whole page."""
        page = self.context.new_page()
        page.goto(self.explorer + path)
        settle(page)
        return page


@pytest.fixture(scope="module")
def watched(browser: Browser, explorer: str) -> Iterator[Watched]:
    """Of the whole module, so that a second page finds Streamlit's scripts in the cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    found = Watched(context, explorer)
    yield found
    context.close()
    assert [url for url in found.asked if not url.startswith((explorer, "data:", "blob:"))] == []
    assert found.complaints == []


def settle(page: Page) -> None:
    """Wait until the page's run has ended, without an error box."""
    expect(page.locator("[data-test-script-state=notRunning]")).to_be_visible()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    for name in ERRORS:
        expect(page.get_by_text(TEXTS[f"shell.{name}"][0])).to_have_count(0)


def parting(rows: dict[str, list[dict[str, Any]]], offset: int) -> int:
    """Where the two answers' tokens first differ, found in what the servers sent."""
    answers = {row["role"]: row["token"] for row in rows["tokens"] if int(row["offset"]) == offset}
    pairs = zip(answers["reference"], answers["candidate"], strict=False)
    return next(number for number, (one, other) in enumerate(pairs) if one != other)


def test_every_page_shows_the_faults_of_the_run(
    watched: Watched, rows: dict[str, list[dict[str, Any]]]
) -> None:
    verdicts = Counter(row["verdict"] for row in rows["pairs"])
    firing = len({row["alert_id"] for row in rows["alerts"]})
    assert (firing, len(rows["pairs"]), verdicts["candidate_worse"]) == (8, 48, 17)
    pages = {
        "Overview": (
            "Is it safe to ship?",
            "Hold",
            "8 alerts are firing",
            "17 regressions",
            "8 of 24 slices, worst first",
            "All 24 slices, worst first",
        ),
        "Pairs": ("Pairs 1 to 48, the last ones.",),
        "Pair": ("Choose a pair in the list first.",),
        "Drift": ("What has drifted?", "firing: regression_rate, whole experiment", "Distributions"),
        "Alerts": ("8 firing", "Worst pairs", "Suspected change"),
        "Golden and rollback": ("17 of 48 requests faulty on the candidate alone",),
        "Operations": ("How is the service doing?", "Every record of the range was compared."),
        "SQL": ("Ask the store",),
    }
    page = watched.open("/")
    turned = page.get_by_test_id("stSidebarNav")
    for name, texts in pages.items():
        turned.get_by_role("link", name=name, exact=True).click()
        for text in texts:
            expect(page.get_by_test_id("stMain").get_by_text(text).first).to_be_visible()
        settle(page)
    page.close()


def test_two_clicks_lead_from_a_firing_alert_to_the_token_where_the_answers_part(
    watched: Watched, rows: dict[str, list[dict[str, Any]]]
) -> None:
    page = watched.open("/alerts")
    # The first firing alert is open. First click: one of its worst pairs.
    link = page.get_by_role("link", name=re.compile(r"demo-1-\d+ · .*parts at token [1-9]")).first
    offset = int(link.inner_text().split("demo-1-")[1][:3]) - 1
    at = parting(rows, offset)
    link.click()
    page.wait_for_url(re.compile(rf"/pair\?.*offset={offset}(&|$)"))
    expect(page.get_by_text(f"part at token {at} ")).to_be_in_viewport()
    settle(page)
    # Second click: its tokens. No third one is needed for what both sides had thought of there.
    page.get_by_role("radio", name="Token heat map").click()
    token = page.locator(".divergence").filter(has_text=f"≠ {at}").first
    expect(token).to_be_in_viewport()
    token.focus()
    note = page.get_by_role("status").filter(has_text="here the answers part")
    expect(note).to_contain_text("reference: “")
    expect(note).to_contain_text("candidate: “")
    page.close()


def test_a_link_with_filters_shows_the_same_in_another_tab(
    watched: Watched, rows: dict[str, list[dict[str, Any]]]
) -> None:
    found = [row for row in rows["pairs"] if row["verdict"] == "candidate_worse"]
    loops = [row for row in found if "repetition" in row["candidate_fault_families"]]
    assert 0 < len(loops) < len(found)
    page = watched.open("/pairs")
    for box, option, count in (
        ("Verdict", "candidate_worse", len(found)),
        ("Fault family", "repetition", len(loops)),
    ):
        page.get_by_role("combobox", name=box).fill(option)
        page.get_by_role("option", name=option, exact=True).click()
        page.keyboard.press("Escape")
        expect(page.get_by_text(f"Pairs 1 to {count}, the last ones.")).to_be_visible()
    expect(page).to_have_url(re.compile("verdict=candidate_worse.*family=repetition"))
    other = watched.open(page.url.removeprefix(watched.explorer))
    expect(other.get_by_text(f"Pairs 1 to {len(loops)}, the last ones.")).to_be_visible()
    assert other.url == page.url


def test_back_and_forward_go_one_page_or_one_choice_at_a_press(watched: Watched) -> None:
    page = watched.open("/")
    begun = page.evaluate("history.length")
    turned = page.get_by_test_id("stSidebarNav")
    # With the page's name: the address of the page before has all of this too.
    full = re.compile(r"/pairs\?experiment=.*zone=")
    steps = [page.url]
    turned.get_by_role("link", name="Pairs", exact=True).click()
    expect(page).to_have_url(full)
    settle(page)
    steps.append(page.url)
    page.get_by_role("combobox", name="Fault family").fill("repetition")
    page.get_by_role("option", name="repetition", exact=True).click()
    expect(page).to_have_url(re.compile("family=repetition"))
    settle(page)
    steps.append(page.url)
    # A row: its first cell's box, drawn on a canvas.
    page.get_by_test_id("stDataFrame").click(position={"x": 200, "y": 60})
    expect(page).to_have_url(re.compile(r"/pair\?.*topic_id="))
    expect(page.get_by_role("heading", name=re.compile("^Pair "))).to_be_visible()
    settle(page)
    steps.append(page.url)
    page.get_by_role("button", name="Next").click()
    expect(page).not_to_have_url(steps[-1])
    settle(page)
    steps.append(page.url)
    turned.get_by_role("link", name="Drift", exact=True).click()
    expect(page).to_have_url(re.compile("/drift.*zone="))
    settle(page)
    steps.append(page.url)
    assert page.evaluate("history.length") == begun + len(steps) - 1
    for go, expected in ((page.go_back, steps[-2::-1]), (page.go_forward, steps[1:])):
        for url in expected:
            go(wait_until="commit")
            settle(page)
            expect(page).to_have_url(url)
            if url == steps[2]:
                box = page.get_by_test_id("stMultiSelect").filter(has_text="Fault family")
                expect(box).to_contain_text("repetition")
    page.close()


def test_a_link_that_is_followed_during_a_pages_first_run_holds(watched: Watched) -> None:
    page = watched.open("/")
    turned = page.get_by_test_id("stSidebarNav")
    for name, after in (("Pairs", "/pairs"), ("Drift", "/drift"), ("Alerts", "/alerts")):
        turned.get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_url(re.compile(after))
    turned.get_by_role("link", name="Pairs", exact=True).click()
    page.get_by_role("link", name="Loops").click()
    expect(page).to_have_url(re.compile("/pairs.*family=repetition"))
    settle(page)
    expect(page).to_have_url(re.compile("/pairs.*family=repetition"))
    page.close()


def test_an_answer_over_the_run_is_downloaded(
    watched: Watched, rows: dict[str, list[dict[str, Any]]]
) -> None:
    sql = "SELECT verdict, count() AS pairs FROM pairs_v1 GROUP BY verdict ORDER BY pairs DESC"
    page = watched.open(f"/sql?mode=own&sql={quote(sql)}")
    page.get_by_role("button", name="Run").click()
    with page.expect_download() as begun:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    told = list(csv.reader(io.StringIO(Path(begun.value.path()).read_text(encoding="utf-8-sig"))))
    counted = Counter(row["verdict"] for row in rows["pairs"]).most_common()
    assert told == [["verdict", "pairs"], *([name, str(count)] for name, count in counted)]
