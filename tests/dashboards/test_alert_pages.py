"""The pages of alerts and drift as the whole application shows them, and what may be done there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from compare.store.client import Store, open_store
from compare.store.errors import StoreQueryError
from dashboards.screens.alerts import most_pressing
from dashboards.shell import actions
from dashboards.shell.sign_in import VARIABLE
from ingest.settings import StoreSettings
from tests.dashboards.alarmed import EXPERIMENT, FIRST, HOSTILE_ROUTE, IN_SLICE, OVER, fill
from tests.dashboards.pages import address_of, open_page
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    made = tmp_path_factory.mktemp("alarmed") / "store"
    fill(made, migrated_at)
    return made


@pytest.fixture(autouse=True)
def _store_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page keeps its connection for the life of the process: each test starts without one."""
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{folder}")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as opened:
        yield opened


def words(app: AppTest) -> str:
    assert not app.exception, app.exception
    kinds = (
        "title",
        "subheader",
        "markdown",
        "caption",
        "text",
        "info",
        "warning",
        "error",
        "success",
        "code",
    )
    said = "\n".join(str(one.value) for kind in kinds for one in getattr(app, kind))
    return said.replace("\u00a0", " ")


def press(app: AppTest, label: str, form: str) -> AppTest:
    (button,) = (one for one in app.button if one.label == label and one.form_id == form)
    return button.click().run()


def test_an_alert_shows_how_much_since_when_and_links_its_worst_pairs() -> None:
    app = open_page("alerts", experiment=EXPERIMENT)
    text = words(app)
    assert "2 firing, all of one cause, 1 resolved; 1 more near an alarm" in text
    assert "Evidence for a change: 60,000 after 60 pairs; the alarm is at 52,000." in text
    assert "against the 2.00% that the settings tolerate" in text
    assert "Told: nobody. No notice was made" in text
    assert "firing, critical: regression\\_rate, whole experiment" in text
    assert "| **Since the change** | 25.00% | 12.69% to 41.20% | 40 pairs |" in text
    assert "| **Noise floor** | 1.25% | reference alone faulty | 80 pairs |" in text
    assert "2 possible starts" in text
    assert "3.5 pairs an hour, while pairs were compared in the last 24 h. At that, a rate of 12.50% " in text
    # Two hours are no line.
    assert "Only 2 hours are kept around it" in text
    assert f"gnomon alerts ack {FIRST}" in text
    # Its own choice is in the address, so that a link shows the same.
    assert address_of(app)["alert"] == FIRST
    links = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    (worst,) = (query for label, query in links.items() if "r\\-0\\-44" in label)
    assert "topic_id=t-1" in worst
    assert "offset=44" in worst
    assert "verdict=candidate_worse&verdict=candidate_error" in links["All pairs like these"]


def test_a_link_to_an_alert_opens_it_and_names_from_traffic_stay_text() -> None:
    text = words(open_page("alerts", experiment=EXPERIMENT, alert=IN_SLICE))
    assert "Evidence is gathered within the next run of the alerts." in text
    assert HOSTILE_ROUTE not in text
    assert "\\*\\*bold\\*\\*" in text
    lost = words(open_page("alerts", experiment=EXPERIMENT, alert="**gone**"))
    assert "any more): “` **gone** `”" in lost


@pytest.mark.parametrize(("page", "name"), [("alerts", "state"), ("drift", "status"), ("drift", "dimension")])
def test_a_choice_that_is_none_is_said_and_matches_nothing(page: str, name: str) -> None:
    app = open_page(page, experiment=EXPERIMENT, **{name: ["abc", "abc", ""]})
    assert f"{name} of the link is not known here (any more): “` abc `”. It stays chosen" in words(app)
    (box,) = (one for one in app.multiselect if one.key == name)
    assert box.value == ["abc"]
    assert address_of(app)[name] == "abc"


def test_a_detector_that_is_none_is_said() -> None:
    text = words(open_page("drift", experiment=EXPERIMENT, detector="a|b|*c*", against="x"))
    assert "detector of the link is not known here (any more): “` a|b|*c* `”. It is left out" in text


@pytest.mark.parametrize("page", ["", "pairs", "drift", "alerts", "golden", "operations"])
def test_a_range_beyond_all_times_is_the_widest(page: str) -> None:
    ends = {"from": "0001-01-01", "to": "9999-12-31T23:59-12:00"}
    app = open_page(page, experiment=EXPERIMENT, window="fixed", **ends)
    words(app)
    assert not app.sidebar.warning
    assert all("firing" in one.value for one in app.error)


def test_the_page_opens_on_the_most_severe_that_fires_and_that_nobody_handles() -> None:
    def row(state: str, severity: str, handled: str = "") -> dict[str, Any]:
        return {
            "state": state,
            "severity": severity,
            "is_acknowledged": handled == "acknowledged",
            "is_silenced": handled == "silenced",
        }

    rows = [
        row("firing", "critical", "acknowledged"),
        row("firing", "critical", "silenced"),
        row("firing", "warning"),
        row("resolved", "critical"),
        row("firing", "critical"),
        row("firing", "critical"),
    ]
    assert most_pressing(rows) == 4
    assert most_pressing(rows[:4]) == 2
    assert most_pressing(rows[:2]) == 0
    assert most_pressing([rows[3], rows[0]]) == 1
    assert most_pressing([rows[3]]) == 0


def test_only_alerts_of_the_time_range_and_state_are_listed() -> None:
    app = open_page("alerts", experiment=EXPERIMENT, state="resolved")
    assert address_of(app)["alert"] == OVER
    nothing = open_page("alerts", experiment=EXPERIMENT, window="fixed", to="2020-01-01")
    assert "No alert in this time range." in words(nothing)


def test_acknowledging_is_written_and_shown_at_once(store: Store) -> None:
    app = open_page("alerts", experiment=EXPERIMENT, alert=FIRST)
    form = f"ack-{FIRST}"
    assert app.text_input(f"{form}-by").value == ""
    app = press(app, "Acknowledge", form)
    assert "Give your name: the others see who looks after it." in words(app)
    assert not store.query("SELECT 1 FROM alert_actions_v1").rows
    app.text_input(f"{form}-by").set_value("ann [x](y)")
    app.text_input(f"{form}-note").set_value("rolled back")
    text = words(press(app, "Acknowledge", form))
    assert "Acknowledged as ann \\[x\\]\\(y\\)" in text
    assert "Acknowledged by ann" in text
    # The name is kept for the other forms of the session.
    assert app.text_input(f"silence-{FIRST}-by").value == "ann [x](y)"
    table = app.dataframe[0].value
    assert list(table["handled"]) == ["acknowledged by ann [x](y)", "", ""]
    # Who comes next is shown what nobody looks after yet.
    assert address_of(open_page("alerts", experiment=EXPERIMENT))["alert"] == IN_SLICE
    ((by, note, alert_id),) = store.query(
        "SELECT acted_by, note, alert_id FROM alert_actions_v1 WHERE action = 'ack'"
    ).rows
    assert (by, note, alert_id) == ("ann [x](y)", "rolled back", FIRST)


def test_a_silence_has_an_end_and_can_be_ended(store: Store) -> None:
    app = open_page("alerts", experiment=EXPERIMENT, alert=OVER)
    form = f"silence-{OVER}"
    # An end can be typed where one is asked for only.
    assert not [one for one in app.text_input if one.key == f"{form}-until"]
    app = app.selectbox(f"{form}-for").set_value("until").run()
    app.text_input(f"{form}-by").set_value("bob")
    app.text_input(f"{form}-until").set_value("tomorrow")
    app = press(app, "Silence", form)
    assert "Not a time: ` tomorrow `" in words(app)
    app.text_input(f"{form}-until").set_value("2020-01-01 00:00")
    app = press(app, "Silence", form)
    assert "the silence would end in the past" in words(app)
    app = app.selectbox(f"{form}-for").set_value("8h").run()
    app.selectbox(f"{form}-scope").set_value("metric")
    app = press(app, "Silence", form)
    assert "nobody is told" in words(app)
    ((metric, alert_id, by, hours),) = store.query(
        "SELECT metric, alert_id, acted_by, dateDiff('minute', acted_at, ends_at) / 60 FROM alert_actions_v1"
        " WHERE action = 'silence'"
    ).rows
    assert (metric, alert_id, by) == ("kl_forced", "", "bob")
    assert hours == pytest.approx(8, abs=0.1)
    app = press(app, "End the silence", f"unsilence-{OVER}")
    assert "nobody is told" not in words(app)


def test_a_visitor_who_may_not_act_sees_why_and_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, '{"actors": [], "text_readers": []}')
    app = open_page("alerts", experiment=EXPERIMENT)
    assert "may look at alerts, but not acknowledge or silence" in words(app)
    assert not [one for one in app.button if one.form_id]


def test_a_store_that_lets_nobody_write_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Any:
        raise StoreQueryError("store x, insert into alert_actions: not enough privileges", code=497)

    monkeypatch.setattr(actions, "connect_to_act", refused)
    app = open_page("alerts", experiment=EXPERIMENT, alert=OVER)
    app.text_input(f"ack-{OVER}-by").set_value("ann")
    text = words(press(app, "Acknowledge", f"ack-{OVER}"))
    assert "Nothing was written: the store's account may only read." in text
    assert "not enough privileges" in text


def test_the_drift_page_shows_detectors_tests_and_slices_over_the_floor() -> None:
    app = open_page("drift", experiment=EXPERIMENT, detector="kl_forced|experiment|", floor="kl_forced")
    text = words(app)
    assert "7 pairs are in slices of tenant beyond alerts.max\\_slices" in text.replace(
        "alerts.max_", "alerts.max\\_"
    )
    assert "baseline: n = 40, mean 0.055 nats" in text
    assert "current: n = 40, mean 0.55 nats" in text
    assert "They describe the two samples and never raise an alert" in text
    tables = [frame.value for frame in app.dataframe]
    (tests,) = (table for table in tables if "test" in table.columns)
    assert list(tests["test"]) == ["mann_whitney_u", "kolmogorov_smirnov", "wasserstein_distance"]
    # Wasserstein's distance of samples of which one is ten times the other, whose means differ by 0.495.
    assert tests["statistic"].iloc[2] == "0.495"
    (ranked,) = (table for table in tables if "bounded_by" in table.columns)
    assert list(ranked["slice"]) == ["chat", "extract"]
    missing = open_page("drift", experiment=EXPERIMENT, floor="cosine_similarity")
    assert "Not measured: no request with this score was asked twice" in words(missing)


def test_both_pages_of_a_series_without_alerts_say_so(store: Store) -> None:
    now = datetime.now(UTC)
    row = {"experiment": "quiet", "candidate": "q4", "topic_id": "t", "mirrored_at": now, "ingested_at": now}
    store.insert("pairs", list(row), [tuple(row.values())])
    assert "No alert in this time range." in words(open_page("alerts", experiment="quiet"))
    assert "No detector runs for this candidate yet" in words(open_page("drift", experiment="quiet"))


def test_the_pages_speak_chinese() -> None:
    app = open_page("alerts", experiment=EXPERIMENT)
    (window,) = (box for box in app.selectbox if box.label == "Time range")
    app = window.set_value("30d").run()
    (language,) = (box for box in app.selectbox if box.label == "Language")
    app = language.set_value("zh").run()
    text = words(app)
    # A box that is not told its value anew keeps the English words.
    (window,) = (box for box in app.selectbox if box.label == "时间范围")
    assert (window.proto.raw_value, window.proto.set_value) == ("最近 30 天", True)
    assert address_of(app)["window"] == "30d"
    assert "最差的回答对" in text
    assert "Worst pairs" not in text
