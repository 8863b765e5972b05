"""Signing in by OpenID Connect in a real browser, at a provider that runs here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboards.conftest import explorer_on, free_port, wait_until_healthy

READER, OTHER, NOBODY = "anna@example.org", "li@example.org", "nobody"
PEOPLE = ((READER, READER, True), (OTHER, OTHER, True), (NOBODY, READER, False))
"""`sub`, `email` and whether the provider has checked that."""
SETTINGS = f"""
[experiment]
name = "night"
reference = "q8"
candidates = ["q4"]
models = {{ "*" = {{ q8 = "m", q4 = "m" }} }}

[endpoints.q8]
url = "http://127.0.0.1:1"

[endpoints.q4]
url = "http://127.0.0.1:1"

[kafka]
bootstrap_servers = ["127.0.0.1:1"]

[dashboard]
sign_in = true
text_readers = ["{READER}"]

[store]
"""
PAIR = "/pair?topic_id=topic-1&partition=0&offset=4"

COPIED = """() => {
    const note = [...document.querySelectorAll("[data-testid=stCaptionContainer]")]
        .find((one) => one.textContent.includes("Signed in as"));
    getSelection().selectAllChildren(note);
    const event = new ClipboardEvent("copy",
        {clipboardData: new DataTransfer(), bubbles: true, cancelable: true});
    note.dispatchEvent(event);
    return event.clipboardData.getData("text/plain").trim();
}"""


@contextmanager
def provider() -> Iterator[str]:
    """An OpenID Connect provider that knows three people; its address."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    for sub, email, is_verified in PEOPLE:
        claims = {"sub": sub, "email": email, "email_verified": is_verified}
        command += ["--user-claims", json.dumps(claims)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_healthy(f"{address}/.well-known/openid-configuration", child)
            yield address
        finally:
            child.kill()


@pytest.fixture(scope="module")
def explorer(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`gnomon dashboard` with sign-in."""
    folder = tmp_path_factory.mktemp("signed")
    (folder / ".streamlit").mkdir()
    port = free_port()
    with provider() as address:
        (folder / ".streamlit" / "secrets.toml").write_text(
            f"""
            [auth]
            redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
            cookie_secret = "{"0123456789abcdef" * 4}"
            client_id = "gnomon"
            client_secret = "told to nobody"
            server_metadata_url = "{address}/.well-known/openid-configuration"
            """
        )
        (folder / "gnomon.toml").write_text(f'{SETTINGS}url = "chdb://{filled}"\n')
        with explorer_on(port=port, home=folder) as (here, _):
            yield here


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A browser that nobody has signed in with."""
    context = browser.new_context(viewport={"width": 1280, "height": 1400}, locale="en-US")
    context.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    yield context.new_page()
    context.close()


def sign_in(page: Page, link: str, name: str) -> None:
    """From the explorer to the provider and back."""
    page.goto(link)
    page.get_by_test_id("stMain").get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name=name).click()
    # An address is kept from becoming a link by a joiner without width.
    expect(page.get_by_text(f"Signed in as {name}".replace("@", "@\u2060"))).to_be_visible()


def test_a_reader_of_texts_signs_in_reads_and_signs_out(page: Page, explorer: str) -> None:
    page.goto(explorer + PAIR)
    expect(page.get_by_text("sign in to read it")).to_be_visible()
    expect(page.get_by_text("night")).to_have_count(0)

    # The link that was followed opens after the sign-in, and is forgotten then.
    sign_in(page, explorer + PAIR, READER)
    expect(page.get_by_role("heading", name=re.compile("^Pair "))).to_be_visible()
    expect(page).to_have_url(re.compile(r"/pair\?.*offset=4"))
    expect(page.get_by_role("group").filter(has_text="document.title").first).to_be_visible()

    # What is copied has no joiner.
    assert page.evaluate(COPIED) == f"Signed in as {READER}"

    page.get_by_role("button", name="Sign out").click()
    # The provider asks whether its own session is to end too.
    page.get_by_role("button", name="End session").click()
    expect(page.get_by_text("sign in to read it")).to_be_visible()
    page.goto(explorer + PAIR)
    expect(page.get_by_text("sign in to read it")).to_be_visible()


@pytest.mark.parametrize("name", [OTHER, NOBODY])
def test_another_is_shown_no_text(page: Page, explorer: str, name: str) -> None:
    sign_in(page, explorer, name)
    expect(page.get_by_role("heading", name="Is it safe to ship?")).to_be_visible()
    page.goto(explorer + PAIR)
    expect(page.get_by_role("heading", name=re.compile("^Pair "))).to_be_visible()
    expect(page.get_by_text("does not show the texts of prompts and answers").first).to_be_visible()
    expect(page.get_by_text("document.title")).to_have_count(0)
