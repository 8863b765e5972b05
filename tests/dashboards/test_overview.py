"""The overview: the verdict in both languages, what it does without one, and the page as a person sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from compare.ship.bounds import Counts
from compare.ship.decide import at_margin, decide
from compare.ship.model import Evidence, ShipVerdict, Tally, Terms
from compare.ship.statements import headline, need_line
from compare.store.answer import Result
from compare.store.errors import StoreQueryError
from dashboards.questions import overview as questions
from dashboards.questions.summary import Series
from dashboards.screens import overview_words
from dashboards.shell.sign_in import VARIABLE
from dashboards.words import Words
from tests.compare.ship.test_decide import NOW, SERVED, calm, evidence
from tests.dashboards.pages import open_page

LARGE = Series("night", "q4", datetime(2026, 11, 29, tzinfo=UTC))
ENGLISH, CHINESE = Words("en"), Words("zh")
LATER = msgspec.structs.replace(SERVED, seen_at=NOW.replace(hour=4), quantization="mxfp4")
CASES: dict[str, tuple[Evidence, Terms]] = {
    "no data": (calm(Counts()), Terms(0.01)),
    "ship": (calm(Counts(0, 0, 3_000)), Terms(0.01)),
    "little coverage": (calm(Counts(0, 0, 3_000)), Terms(0.01, min_coverage=0.51)),
    "need more": (calm(Counts(0, 0, 100)), Terms(0.01)),
    "hold": (calm(Counts(100, 0, 900)), Terms(0.01)),
    "between": (calm(Counts(100, 100, 800)), Terms(0.01)),
    "slice on hold": (evidence(), Terms(0.01)),
    "mixed": (calm(Counts(0, 0, 3_000), served=(SERVED, LATER)), Terms(0.01)),
    "mixed, allowed": (calm(Counts(0, 0, 3_000), served=(SERVED, LATER)), Terms(0.01, may_mix=True)),
    "unsaid": (calm(Counts(0, 0, 3_000), served=(), references=("a", "b")), Terms(0.01)),
    "cut": (
        calm(Counts(0, 0, 10), tally=Tally(whole=Counts(0, 0, 10), cut=("route",))),
        Terms(0.01),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sentences_are_those_of_the_command(name: str) -> None:
    verdict = decide(*CASES[name], NOW)
    assert overview_words.reasons(ENGLISH, verdict) == list(verdict.reasons)
    assert overview_words.warnings(ENGLISH, verdict) == list(verdict.warnings)
    # The command's headlines, except that a change is a no-verdict in both.
    assert overview_words.headline(ENGLISH, verdict) == headline(verdict)
    assert (need_line(verdict) is None) == (verdict.need is None)


@pytest.mark.parametrize("name", CASES)
def test_in_chinese_the_numbers_are_the_same(name: str) -> None:
    verdict = decide(*CASES[name], NOW)
    ours, theirs = overview_words.reasons(CHINESE, verdict), list(verdict.reasons)
    for line, english in zip(ours, theirs, strict=True):
        assert re.search("[\u4e00-\u9fff]", line)
        assert re.findall(r"\d[\d.]*", line) == re.findall(r"\d[\d.]*", english)
    made = overview_words.warnings(CHINESE, verdict)
    assert len(made) == len(verdict.warnings)
    # What the numbers do not tell stays as it is.
    assert (name == "cut") == any(line in verdict.warnings for line in made)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("margin", [0.0, 0.002, 0.04, 0.5])
def test_another_margin_is_as_if_it_had_been_asked_for(name: str, margin: float) -> None:
    made, terms = CASES[name]
    other = decide(made, msgspec.structs.replace(terms, margin=margin), NOW)
    assert at_margin(decide(made, terms, NOW), margin) == other


class Kept:
    """A store that holds these verdicts, newest first; None stands for a store without a place for them."""

    def __init__(self, verdicts: list[ShipVerdict] | None, code: int = 60) -> None:
        self.verdicts, self.code = verdicts, code

    def query(self, sql: str, parameters: Any = None, settings: Any = None) -> Result:
        assert "verdicts_v1" in sql
        if self.verdicts is None:
            raise StoreQueryError("refused", code=self.code)
        return Result(("verdict",), [(msgspec.json.encode(one).decode(),) for one in self.verdicts])


def test_a_large_series_shows_the_verdict_that_is_kept() -> None:
    verdict = decide(*CASES["need more"], NOW)
    assert questions.verdict(Kept([verdict]), LARGE, Terms(0.01)) == verdict
    found = questions.verdict(Kept([verdict]), LARGE, Terms(0.5))
    assert found is not None and found.decision == "ship"
    assert questions.verdict(Kept([]), LARGE, Terms(0.01)) is None
    assert questions.verdict(Kept(None), LARGE, Terms(0.01)) is None
    with pytest.raises(StoreQueryError):
        questions.verdict(Kept(None, code=241), LARGE, Terms(0.01))


@pytest.fixture
def _page(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{filled}")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def metrics(app: AppTest) -> dict[str, str]:
    assert not app.exception, app.exception
    return {one.label: one.value for one in app.metric}


@pytest.mark.usefixtures("_page")
def test_the_page_shows_the_numbers_of_the_store() -> None:
    app = open_page(margin="0.05")
    shown = metrics(app)
    # 2 of 6; KL 0, 1/8, ... 5/8.
    assert shown["Regression rate"] == "33.3 %"
    assert shown["Forced KL, mean"] == "0.3125 nats"
    assert shown["Edit similarity, mean"] == "0.500"
    assert shown["Schema validity lost"] == "–"
    assert [shown[name] for name in ("consumed", "compared", "skipped", "unaccounted")] == [
        "6",
        "6",
        "0",
        "0",
    ]
    assert app.selectbox(key="margin").value == 0.05
    # Two faults in six pairs: no bound is past 5 %.
    assert any(one.value.startswith("… Need about") for one in app.header)
    words = "\n".join(one.value for one in app.caption)
    assert "6 pairs counted: only the candidate faulty in 2, only the reference in 0" in words
    assert "Coverage 100 % of the mirrored records: 6 of 6 consumed" in words
    (warning,) = (one.value for one in app.warning if "pairs are kept" in one.value)
    assert warning.startswith("6 pairs are kept, mirrored within ")


@pytest.mark.usefixtures("_page")
def test_a_role_without_texts_sees_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, '{"text_readers": []}')
    assert metrics(open_page())["Regression rate"] == "33.3 %"


@pytest.mark.usefixtures("_page")
def test_a_range_without_pairs_says_so() -> None:
    app = open_page(window="fixed", **{"from": "2020-01-01", "to": "2020-01-02"})
    assert "consumed" in metrics(app)
    assert any(one.value == "? No data" for one in app.header)
    assert any(one.value == "Nothing in this time range." for one in app.info)
