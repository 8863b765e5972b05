"""Every link of every page leads somewhere; links to other hosts are listed, not fetched."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, name, spans

_FILE = re.compile(r"(?:docs|bench|tests|deploy|sql|dashboards|ingest|compare|\.ci)/[\w./-]+\.\w+")
# Files of other projects, which docs/dialects.md cites.
_ELSEWHERE = {"docs/openapi.json", "docs/openapi.yaml"}
# Taken of the running explorer; where the folder is there, each picture must be.
_PICTURES = ROOT / "docs" / "pictures"


def _wrong(page: Path, target: str) -> str:
    """What is wrong with a link; empty if nothing is."""
    parts = urlsplit(target)
    if parts.scheme:
        return (
            "" if parts.scheme in ("http", "https", "mailto") and parts.path + parts.netloc else "odd scheme"
        )
    place = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not place.is_relative_to(ROOT):
        return "leads out of the repository"
    if not place.exists():
        return "" if place.parent == _PICTURES and not _PICTURES.exists() else "is not there"
    if parts.fragment and place.suffix == ".md" and unquote(parts.fragment) not in anchors(place):
        return "has no such heading"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_link_leads_somewhere(page: Path) -> None:
    found = {target: _wrong(page, target) for target in links(page)}
    assert {target: problem for target, problem in found.items() if problem} == {}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_file_that_is_named_exists(page: Path) -> None:
    named = {span.split("::")[0] for span in spans(page) if _FILE.fullmatch(span.split("::")[0])}
    assert sorted(file for file in named - _ELSEWHERE if not (ROOT / file).exists()) == []


def test_every_document_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in links(page):
            place = (page.parent / urlsplit(target).path).resolve()
            if place.is_dir():
                todo += place.glob("*.md")
            elif place.suffix == ".md" and place.exists():
                todo.append(place)
    assert [name(page) for page in PAGES if page not in seen] == []


def test_the_checker_finds_what_is_wrong() -> None:
    page = ROOT / "docs" / "verdict.md"
    assert _wrong(page, "no-such-page.md") == "is not there"
    assert _wrong(page, "alerts.md#no-such-heading") == "has no such heading"
    assert _wrong(page, "alerts.md#at-night") == ""
    assert _wrong(page, "../../outside.md") == "leads out of the repository"
    assert _wrong(page, "javascript:alert(1)") == "odd scheme"
