"""The list and the pair's page in their states, and in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from playwright.sync_api import Browser, Page, expect
from streamlit.testing.v1 import AppTest

from compare.store.errors import StoreBusyError
from dashboards.questions import pairs
from dashboards.words import TEXTS
from tests.dashboards.pages import address_of, open_page

CAUSES = {
    "engine",
    "history",
    "memory",
    "numeric",
    "request",
    "sampler",
    "transport",
    "truncation",
    "unknown",
}
"""As docs/glossary.md has them."""
PAIR = {"experiment": "night", "candidate": "q4", "topic_id": "topic-1", "partition": 0, "offset": 4}


@pytest.fixture
def store(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The filled folder is the page's store, opened anew."""
    st.cache_resource.clear()
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{filled}")
    yield monkeypatch
    st.cache_resource.clear()


def words(app: AppTest) -> str:
    assert not app.exception
    kinds = (app.caption, app.text, app.info, app.warning, app.markdown, app.subheader, app.title)
    return "\n".join(str(one.value) for kind in kinds for one in kind)


def test_the_list_is_narrowed_by_the_address(store: pytest.MonkeyPatch) -> None:
    app = open_page("pairs", experiment="night", candidate="q4", verdict=["candidate_worse"])
    assert "Pairs 1 to 2, the last ones." in words(app)
    app = open_page("pairs", experiment="night", candidate="q4", family=["json"], side="reference_only")
    assert "No pair passes the filters" in words(app)


def test_what_a_link_does_not_get_is_said_in_one_warning(store: pytest.MonkeyPatch) -> None:
    link = {"candidate": "q5", "zone": "Mars/Base", "window": "2h", "sort": "*best*", "page": "?"}
    app = open_page("pairs", experiment="night", severity_min="2", verdict="good", **link)
    (warning,) = app.warning
    said = " of the link is not known here (any more): "
    assert warning.value.split("\n\n") == [
        f"candidate{said}“` q5 `”. Shown instead: night\\: q4",
        f"zone{said}“` Mars/Base `”. Shown instead: UTC",
        f"window{said}“` 2h `”. Shown instead: Everything kept",
        f"verdict{said}“` good `”. It stays chosen, but nothing matches it.",
        f"sort{said}“` *best* `”. Shown instead: severity, regressions first",
        "severity\\_min of the link is no number that it may be: “` 2 `”. It is left out.",
        f"page{said}“` ? `”. Shown instead: First page",
    ]
    # The address is what is shown now.
    assert address_of(app)["candidate"] == "q4"
    assert not app.run().warning
    assert not open_page("pairs", candidate="q4").warning
    lost = open_page("", experiment="day", margin="7").warning[0]
    assert lost.value.split("\n\n")[0] == f"experiment{said}“` day `”. Shown instead: night\\: q4"
    assert f"margin{said}“` 7 `”" in lost.value


def test_the_list_searches_texts_only_for_who_may_see_them(store: pytest.MonkeyPatch) -> None:
    app = open_page("pairs", experiment="night", candidate="q4", text="SCRIPT owned")
    assert "Pairs 1 to 6" in words(app)
    assert "Searched for “script”, “owned” in prompts" in words(app)
    app = open_page("pairs", experiment="night", candidate="q4", text="?!")
    assert "There is no word in it" in words(app)
    store.setenv("GNOMON_DASHBOARD", '{"text_readers": []}')
    app = open_page("pairs", experiment="night", candidate="q4", text="owned")
    assert "Your account does not search texts." in words(app)
    assert "Pairs 1 to 6" in words(app)


def test_a_list_that_takes_too_long_leaves_the_filters(store: pytest.MonkeyPatch) -> None:
    def too_long(*_: object, **__: object) -> None:
        raise StoreBusyError("the store took too long", code=159)

    store.setattr(pairs, "page", too_long)
    app = open_page("pairs", experiment="night", candidate="q4", sort="kl")
    assert "the store took too long" in words(app)
    assert "over its limit" in app.error[0].value
    assert "Verdict" in [one.label for one in app.multiselect]


@pytest.mark.parametrize("view", ["plain", "words", "tokens", "json"])
def test_each_view_of_a_pair_shows(store: pytest.MonkeyPatch, view: str) -> None:
    app = open_page("pair", **PAIR, view=view, number="kl")
    shown = words(app)
    assert "candidate\\_worse" in shown
    assert "**Findings** (1)" in shown
    assert any("gnomon replay" in code.value for code in app.code)


def test_a_pair_from_elsewhere_has_neighbours_and_its_cause_words(store: pytest.MonkeyPatch) -> None:
    app = open_page("pair", **PAIR)
    shown = words(app)
    assert "of 6 on the first page of all pairs, worst first" in shown
    assert {button.label for button in app.button} & {"Previous in the list", "Next in the list"}
    assert {f"pair.cause_{one}" for one in CAUSES} <= set(TEXTS)


def test_a_role_without_texts_sees_the_numbers(store: pytest.MonkeyPatch) -> None:
    store.setenv("GNOMON_DASHBOARD", '{"text_readers": []}')
    app = open_page("pair", **PAIR)
    shown = words(app)
    assert "Your account does not show the texts" in shown
    assert "**Scores**" in shown
    assert "owned" not in shown
    assert "owned" not in "\n".join(str(frame.value.to_dict()) for frame in app.dataframe)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"offset": 999}, "This pair is not in the store (any more)."),
        ({"offset": "x"}, "offset of the link is no number that it may be: “` x `”."),
        ({"offset": "-1"}, "offset of the link is no number that it may be: “` -1 `”."),
        ({"partition": 2**32}, "partition of the link is no number that it may be: “` 4294967296 `”."),
        ({"topic_id": "", "partition": "", "offset": ""}, "Choose a pair in the list first."),
    ],
)
def test_a_pair_that_is_not_there(store: pytest.MonkeyPatch, changes: dict[str, Any], expected: str) -> None:
    assert expected in words(open_page("pair", **{**PAIR, **changes}))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900}, locale="en-US")
    opened.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    yield opened
    opened.close()


def test_a_row_leads_to_its_pair_and_back(page: Page, explorer: str) -> None:
    page.goto(f"{explorer}/pairs?experiment=night&candidate=q4")
    expect(page.get_by_text("Pairs 1 to 6, the last ones.")).to_be_visible()
    # A run that has not ended yet writes its own address over that of a link which is followed so early: it
    # is written last.
    expect(page).to_have_url(re.compile(r"sort=worst"))
    expect(page.locator("[data-test-script-state=notRunning]")).to_be_attached()
    page.get_by_role("link", name="Regressions").click()
    expect(page.get_by_text("Pairs 1 to 2, the last ones.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"verdict=candidate_worse&verdict=candidate_error"))
    page.get_by_test_id("stDataFrame").first.locator("canvas").first.focus()
    # The arrow chooses a row's number and opens nothing; the box does, here that of the second row:
    # a loop of weight 0.7 and half a nat ranks over broken JSON of 0.6 and five eighths.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    expect(page.get_by_role("heading", name="Pair r-")).to_be_visible()
    expect(page).to_have_url(re.compile(r"offset=5"))
    first = page.url
    page.get_by_role("button", name=re.compile("(Next|Previous) in the list")).click()
    expect(page).not_to_have_url(first)
    page.get_by_role("link", name="Back to the list").click()
    expect(page.get_by_text("Pairs 1 to 2, the last ones.")).to_be_visible()
    table = page.get_by_test_id("stDataFrame").first.locator("canvas").first
    table.click(position={"x": 300, "y": 50}, force=True)
    expect(page.get_by_role("heading", name="Pair r-")).to_be_visible()


def test_hostile_text_stays_text_and_the_parting_is_in_sight(page: Page, explorer: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    query = "&".join(f"{name}={value}" for name, value in PAIR.items())
    page.goto(f"{explorer}/pair?{query}")
    answer = page.locator(".marks").filter(has_text="<script>")
    expect(answer).to_be_visible()
    assert "\\x1b[31mred\\x1b[0m \\u202eabc **bold** $x^2$ :skull: end" in answer.inner_text()
    page.get_by_text("Token heat map", exact=True).click()
    expect(page).to_have_url(re.compile("view=tokens"))
    parting = page.locator(".piece.divergence").first
    expect(parting).to_be_in_viewport()
    parting.focus()
    expect(page.locator(".note").filter(has_text="here the answers part").first).to_be_visible()
    assert page.title() == "Gnomon"
    assert page.locator("img[src*='leak']").count() == 0
    assert page.locator("a[href*='javascript']").count() == 0
    assert [url for url in asked if not url.startswith((explorer, "data:", "blob:"))] == []
