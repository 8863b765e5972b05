"""The page of golden sets and rollback: what it asks, and what it shows with and without runs and calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from compare.golden.run_log import write_run
from compare.golden.sets import promote, write_cases
from compare.result import Family, VerdictKind
from compare.rollback import show
from compare.rollback.condition import Condition, Conditions, Says, to_json
from compare.rollback.decisions import Decision, Evaluation, write_decision, write_evaluation
from compare.rollback.snapshots import Snapshot, add
from compare.store.client import Store, open_store
from compare.writer import Writer
from dashboards.questions import golden as questions
from dashboards.questions.summary import Series
from dashboards.screens import golden_rollback
from dashboards.screens.golden_rollback import evidence_rows
from dashboards.shell.clock import Clock
from dashboards.shell.sign_in import VARIABLE
from dashboards.words import Words
from ingest.observation import Observation
from ingest.settings import StoreSettings
from tests.compare import batches
from tests.compare.golden.rig import case, result, run
from tests.dashboards.conftest import HOSTILE, night_pair
from tests.dashboards.pages import open_page
from tests.fixtures.stores import MigratedAt

SERIES = Series("night", "q4")
CALL = "rb-0123456789"
CONDITIONS = Conditions(
    Condition("firing", "golden set s: 0.6, 0.7", {"sets": [{"set": "s", "scores": [0.6, 0.7]}]}),
    Condition("firing", "30 of 120 requests faulty", {"pairs": 120, "window_s": 600.0}),
    Condition("quiet", "2 rules quiet"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    """One pair of `night`; runs 0 (the baseline) to 2 of set `s`, one of another candidate; a call."""
    made = tmp_path_factory.mktemp("golden") / "store"
    with open_store(migrated_at(made), role="owner") as store:
        pair = night_pair(4, VerdictKind.CANDIDATE_WORSE, (Family.JSON,))
        Writer(store, threading.Event()).write(batches.batch(pair, experiment="night"))
        write_cases(store, "s", [case("a", HOSTILE), case("b"), case("c")])
        good = [result("a", answer=Observation(text="fine")), result("b"), result("gone"), result("c", 0.5)]
        bad = [
            result("a", 0.2, "failed", reasons=(HOSTILE,), answer=Observation(text=HOSTILE)),
            result("b", case_hash="edited"),
            result("new"),
            result("c", 0.75),
        ]
        for number, results in enumerate((good, good, bad)):
            made_run = run(number, experiment="night", endpoint_name="q4")
            write_run(store, made_run, results, None)
        write_run(store, run(3, experiment="night", endpoint_name="other"), good, None)
        promote(store, "s", "run0000", "me")
        _call(store)
    return made


def _call(store: Store) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    quiet = msgspec.structs.replace(CONDITIONS, a=Condition("quiet", "fine"))
    for number, conditions, is_called in ((1, quiet, False), (2, CONDITIONS, False), (3, CONDITIONS, True)):
        at = now - timedelta(minutes=30 - number)
        decision = Decision(
            experiment="night", candidate="q4", number=number, decision_id=CALL if is_called else "",
            event="called" if is_called else "conditions", is_called=is_called,
            condition_a=conditions.a.state, condition_b=conditions.b.state, condition_c=conditions.c.state,
            decided_at=at, called_at=at if is_called else None, summary=conditions.reason(),
            evidence=to_json(conditions), settings_hash="s", served_hash="v",
        )  # fmt: skip
        write_decision(store, decision, number)
    a, b, c = CONDITIONS.states
    evaluation = Evaluation(
        experiment="night", candidate="q4", evaluated_at=now, evaluated_by="host:1", interval_s=3600.0,
        says="yes", is_called=True, decision_id=CALL, held=3, clear=0, condition_a=a, condition_b=b,
        condition_c=c, evidence=to_json(CONDITIONS), version=1,
    )  # fmt: skip
    write_evaluation(store, evaluation, "[]")
    for name, status in (("good", "passed"), ("bad", None)):
        snapshot = Snapshot(
            experiment="night", name=name, endpoint_name="q4", added_at=now, added_by="me", source="file",
            golden_run_id="run0000" if status else None, golden_set="s" if status else None,
        )  # fmt: skip
        add(store, msgspec.structs.replace(snapshot, golden_status=status))


class FakeCall:
    called_at = None
    summary = "why"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as opened:
        yield opened


@pytest.fixture
def _page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{folder}")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def words(app: AppTest) -> str:
    assert not app.exception, app.exception
    kinds = ("title", "header", "subheader", "markdown", "caption", "text", "info", "code")
    return "\n".join(str(one.value) for kind in kinds for one in getattr(app, kind))


def test_runs_are_of_the_candidate_and_the_baseline_stays(store: Store) -> None:
    assert questions.sets(store, SERIES) == ["s"]
    assert questions.sets(store, Series("night", "nobody")) == []
    found = questions.runs(store, SERIES, "s", None, None)
    assert list(found["run_id"]) == ["run0000", "run0001", "run0002"]
    assert list(found["is_baseline"]) == [1, 0, 0]
    start = found["started_at"].iloc[2].to_pydatetime()
    assert list(questions.runs(store, SERIES, "s", start, None)["run_id"]) == ["run0000", "run0002"]


def test_cases_say_what_became_of_them(store: Store) -> None:
    runs = questions.runs(store, SERIES, "s", None, None)
    found = questions.cases(store, runs.iloc[2], "run0000")
    assert list(zip(found["case_id"], found["change"], strict=True)) == [
        ("a", "newly_failing"),
        ("c", "moved"),
        ("new", "added"),
        ("b", "edited"),
        ("gone", "removed"),
    ]
    scores = dict(zip(found["case_id"], found["score_before"], strict=True))
    assert (scores["a"], scores["c"], scores["gone"]) == (1.0, 0.5, 1.0)
    assert set(questions.cases(store, runs.iloc[0], "run0000")["change"]) == {"same"}
    assert set(questions.cases(store, runs.iloc[1], "run0000")["change"]) == {"same"}


def test_since_when_a_condition_stands(store: Store) -> None:
    known = questions.decisions(store, SERIES)
    times = [one.decided_at for one in known]
    # Newest first: the call, A's change, and the first look.
    assert questions.since(known, "A", "firing") == times[1]
    assert questions.since(known, "C", "quiet") == times[2]
    assert questions.since(known, "A", "quiet") is None


def test_evidence_is_told_key_by_key() -> None:
    assert evidence_rows(CONDITIONS.a.evidence) == [("sets[0].set", "s"), ("sets[0].scores", "[0.6,0.7]")]
    assert evidence_rows(CONDITIONS.b.evidence) == [("pairs", "120"), ("window_s", "600.0")]


@pytest.mark.usefixtures("_page")
def test_the_page_tells_of_a_call_and_of_the_newest_run() -> None:
    app = open_page("golden", case="a")
    said = words(app)
    assert "▲ A rollback is called for" in said
    assert [one.value for one in app.metric] == ["▲ firing", "▲ firing", "✓ quiet"]
    assert f"gnomon rollback approve {CALL} --snapshot good" in said
    assert "3 runs of s" in said
    assert "▼ newly failing 1 · score moved 1 · new 1 · edited 1 · gone 1" in said
    # The reason quotes the hostile answer: control characters are written out.
    assert "\\x1b[31mred" in said and "\x1b" not in said


@pytest.mark.parametrize(
    ("minutes", "says", "is_called", "headline", "line"),
    [
        (1, "no", False, "✓ No rollback is called for", "(A and B) or C says no, 7 in a row; evaluated"),
        (1, "yes", False, "✓ No rollback", "once `rollback.hold_evaluations` in a row say yes"),
        (1, "no", True, "▲ A rollback is called for", "holds until `rollback.clear_evaluations` in a row"),
        (1, "unknown", False, "? It cannot be said whether a rollback is called for", "or C says unknown;"),
        (600, "no", False, "? It cannot be said whether a rollback is called for: nobody has looked for 10 h",
         "(A and B) or C said no, 7 in a row. That was 10 h ago, with one due every 600 s: it says nothing"),
        (600, "no", True, "▲ A rollback is called for", "(A and B) or C said no, 7 in a row. That was"),
    ],
)  # fmt: skip
def test_the_headline_and_what_the_last_look_said_agree(
    monkeypatch: pytest.MonkeyPatch, minutes: int, says: Says, is_called: bool, headline: str, line: str
) -> None:
    now = datetime.now(UTC)
    last = Evaluation(
        experiment="night", candidate="q4", evaluated_at=now - timedelta(minutes=minutes),
        evaluated_by="host:1", interval_s=600.0, says=says, is_called=is_called,
        decision_id=CALL if is_called else "", held=1, clear=7, condition_a="quiet", condition_b="quiet",
        condition_c="quiet", evidence=to_json(CONDITIONS), version=1,
    )  # fmt: skip
    monkeypatch.setattr(show, "_changes", lambda store, call: [FakeCall()])
    monkeypatch.setattr(show, "_untried", lambda changes, told, sinks, at: [])
    monkeypatch.setattr(show, "read_snapshots", lambda store, experiment: [])
    monkeypatch.setattr(show, "_told", lambda store, call: [])
    monkeypatch.setattr(show, "read_approvals", lambda store, call: [])
    status = show.status_of(cast(Any, None), last, now)
    said: list[str] = []
    for name in ("header", "caption", "warning", "markdown"):
        monkeypatch.setattr(st, name, lambda text, **more: said.append(text))
    context = SimpleNamespace(say=Words("en"), clock=Clock())
    golden_rollback._answer(cast(Any, context), status)
    assert said[0].startswith(headline)
    assert any(line in one for one in said), said


@pytest.mark.usefixtures("_page")
def test_a_role_without_texts_sees_runs_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, '{"text_readers": []}')
    said = words(open_page("golden", case="a"))
    assert "3 runs of s" in said and "does not show the texts" in said
    assert "<script>" not in said


def test_without_runs_it_says_how_to_make_a_set(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{filled}")
    st.cache_resource.clear()
    said = words(open_page("golden"))
    st.cache_resource.clear()
    assert "gnomon golden add --set core --source night" in said
    assert "Nobody has evaluated this candidate's rollback conditions yet." in said
