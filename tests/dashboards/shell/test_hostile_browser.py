"""Hostile texts in a real browser: in every place they are text, and nothing is asked of anybody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.shell.hostile import visible_line
from tests.dashboards.conftest import free_port, wait_until_healthy
from tests.dashboards.shell.hostile_texts import TEXTS

ROOT = Path(__file__).parents[3]
APP = Path(__file__).with_name("hostile_app.py")
JOINER = "\u2060"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.headless=true", "--browser.gatherUsageStats=false"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as child:
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_healthy(address, child)
            opened = browser.new_page(viewport={"width": 1280, "height": 1400})
            opened.set_default_timeout(90_000)
            asked: list[str] = []
            opened.on("request", lambda request: asked.append(request.url))
            opened.goto(address)
            expect(opened.get_by_text("all drawn", exact=True)).to_be_visible(timeout=90_000)
            yield opened
            assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
            opened.close()
        finally:
            child.terminate()
            child.wait(timeout=20)


def main_text(page: Page) -> str:
    return page.locator("[data-testid=stMain]").inner_text().replace(JOINER, "")


def test_nothing_in_them_runs_or_becomes_an_element(page: Page) -> None:
    assert page.title() != "owned"
    made = page.evaluate(
        """() => [...document.querySelectorAll(`[data-testid=stMain] :is(a, img, script, h1, h2, ul, ol,
            blockquote, b, i, em, del, [role=img], .katex, iframe)`)]
            .filter((one) => !one.closest('[data-testid=stDataFrame]'))
            .map((one) => one.outerHTML.slice(0, 200))"""
    )
    assert made == []
    # Bold is of our own making only; and no emoji, colour or icon of theirs.
    assert page.locator("[data-testid=stMain] strong").count() == 0
    text = main_text(page)
    assert "💀" not in text
    assert ":skull:" in text and ":red[red]" in text and ":material/skull:" in text
    assert page.locator("[data-testid=stMain] .stMarkdownColoredText").count() == 0


def test_every_text_is_there_to_read_in_markdown_and_notes(page: Page) -> None:
    for number, text in enumerate(TEXTS):
        shown = visible_line(text, 400)
        for kind in ("markdown", "caption"):
            (place,) = page.get_by_text(f"{kind} {number} ").all()
            assert " ".join(shown.split()) in " ".join(place.inner_text().replace(JOINER, "").split())


def test_an_error_is_copied_as_it_is(page: Page) -> None:
    for number, text in enumerate(TEXTS):
        shown = " ".join(visible_line(text, 400).split())
        (place,) = page.get_by_text(f"error {number} ").all()
        copied = " ".join(place.inner_text().split())
        # Streamlit looks for its icons in code too.
        assert (JOINER in copied) == (":material/" in text)
        assert copied.replace(JOINER, "") == f"error {number} {shown} end"


def test_controls_and_directions_are_written_out(page: Page) -> None:
    everything = page.evaluate("() => document.body.textContent")
    for hidden in ("\x1b", "\x07", "\u202e", "\u202c", "\u2066", "\u2069", "\u200b"):
        assert hidden not in everything
    assert "\\u202eabc" in everything


def test_marked_pieces_are_text_and_reached_by_keyboard(page: Page) -> None:
    box = page.get_by_role("group", name="pieces")
    pieces = box.locator("span.piece")
    assert pieces.count() == len(TEXTS)
    assert "<script>document.title='owned'</script>" in pieces.nth(0).inner_text()
    assert box.locator("script, img, a").count() == 0
    pieces.nth(0).focus()
    note = box.locator("xpath=following-sibling::*[@role='status']")
    expect(note).to_contain_text("<script>document.title='owned'</script>")
    page.keyboard.press("Tab")
    assert pieces.nth(1).evaluate("one => one.matches(':focus')")
    expect(note).to_contain_text("[a](javascript:alert(1))")
    # One that sees the focus: an outline.
    style = pieces.nth(1).evaluate("one => getComputedStyle(one).outlineStyle")
    assert style == "solid"


def test_a_line_of_a_mebibyte_is_cut_and_does_not_widen_the_page(page: Page) -> None:
    box = page.get_by_role("group", name="line")
    assert "more characters]" in box.inner_text()
    assert len(box.inner_text()) < 60_000
    wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
