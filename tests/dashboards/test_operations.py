"""The page of operations and what it asks, against a night whose records are counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from compare.rollups.rebuild import Rollups
from compare.store import Store, open_store
from dashboards.questions import dead_letters, endpoints, operations
from dashboards.questions.dead_letters import LetterKey
from dashboards.questions.summary import Series
from dashboards.shell.sign_in import VARIABLE
from ingest.settings import StoreSettings
from tests.dashboards import busy
from tests.dashboards.conftest import HOSTILE
from tests.dashboards.pages import address_of, open_page
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="module")
def filled_at(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> tuple[Path, datetime]:
    """The store's folder and the hour of its pairs."""
    folder = tmp_path_factory.mktemp("busy") / "store"
    settings = migrated_at(folder)
    with open_store(settings, role="owner") as store:
        begin = busy.fill(store)
        Rollups(store, settings).rebuild_touched()
    return folder, begin


@pytest.fixture
def store(filled_at: tuple[Path, datetime]) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{filled_at[0]}"), role="owner") as opened:
        yield opened


@pytest.fixture
def page(filled_at: tuple[Path, datetime], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The application on this store; it keeps its connection, so each test starts without one."""
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{filled_at[0]}")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def words(app: AppTest) -> str:
    assert not app.exception, app.exception
    kinds = ("title", "subheader", "markdown", "caption", "text", "info", "warning", "error", "code")
    return "\n".join(str(one.value) for kind in kinds for one in getattr(app, kind))


def column(app: AppTest, name: str) -> list[object]:
    """The column of the one table that has it."""
    (found,) = (one.value for one in app.dataframe if name in one.value)
    return list(found[name])


@pytest.mark.parametrize("rolled", [False, True])
def test_records_by_outcome_and_their_lag(
    store: Store, filled_at: tuple[Path, datetime], rolled: bool
) -> None:
    _, begin = filled_at
    series = Series("busy", "awq", begin + timedelta(minutes=59) if rolled else None)
    found, step = operations.throughput(store, series, None, None)
    # From the first pair's minute to the last failure's: between 60 and 180 minutes.
    assert step in (1, 2)
    sums = found.groupby("kind")["records"].sum().to_dict()
    assert sums == {"compared": 120, "skipped": 30, "failed": 15, "dead_letter": 5}
    reasons = found[found["kind"] == "failed"].groupby("reason")["records"].sum().to_dict()
    assert reasons == {"endpoint_away": 12, "budget": 3}
    compared = found[found["kind"] == "compared"]
    mean = (compared["lag_mean_s"] * compared["records"]).sum() / 120
    assert mean == pytest.approx((2.0 + 8.0) / 2)
    assert compared["lag_max_s"].max() == 8.0
    within, _ = operations.throughput(
        store, series, begin + timedelta(minutes=10), begin + timedelta(minutes=20)
    )
    assert within["records"].sum() == 20
    # Whoever gives the range may give any year.
    forever = datetime(1960, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
    whole, _ = operations.throughput(store, series, *forever)
    assert whole["records"].sum() == 170
    hours = operations.hours(store, series, None, None)
    first = hours.iloc[-1]
    assert (first["at"], first["compared"], first["skipped"]) == (begin, 120, 0)
    assert (first["lag_mean_s"], first["lag_max_s"]) == (5.0, 8.0)
    assert hours["failed"].sum() == 15
    parts = operations.partitions(store, series).set_index("partition")
    assert list(parts.loc[0, ["next_offset", "records", "pairs", "lag_mean_s"]]) == [110, 110, 60, 2.0]
    assert list(parts.loc[1, ["next_offset", "records", "pairs", "lag_mean_s"]]) == [60, 60, 60, 8.0]


def test_endpoints_their_tokens_failures_and_pauses(store: Store) -> None:
    series, now = Series("busy", "awq"), datetime.now(UTC)
    known = endpoints.endpoints(store, series)
    assert known[["endpoint", "role", "tokens_per_day"]].to_dict("list") == {
        "endpoint": ["fp16", "awq"],
        "role": ["reference", "candidate"],
        "tokens_per_day": [1_000, 10_000],
    }
    use = endpoints.token_use(store, ["awq"], now)
    assert sorted(use["prompt_tokens"]) == [1_000, 2_000, 3_000]
    failed = endpoints.failed(store, series, now - timedelta(hours=24)).set_index("endpoint")
    assert failed["records"].to_dict() == {"awq": 12, "fp16": 3}
    assert not failed["is_paused"].any()
    held = endpoints.pauses(store, series)
    assert list(held["endpoint"]) == ["awq"]
    assert len(endpoints.orders(store, series)) == 1
    assert endpoints.endpoints(store, Series("nobody", "x")).empty


def test_dead_letters_with_and_without_what_they_hold(store: Store) -> None:
    counts = dead_letters.counts(store, "busy", None, None)
    assert list(zip(counts["reason"], counts["records"], strict=True)) == [("invalid_json", 5)]
    forever = datetime(1960, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
    assert dead_letters.counts(store, "busy", *forever).equals(counts)
    whole = dead_letters.newest(store, "busy", None, None)
    assert list(whole["offset"]) == [109, 108, 107, 106, 105]
    assert set(whole["schema_guess"]) == {"json"}
    bare = dead_letters.newest(store, "busy", None, None, with_text=False)
    assert sorted(bare["offset"]) == [105, 106, 107, 108, 109]
    assert "detail" not in bare
    assert dead_letters.newest(store, "busy", None, None, "other_reason").empty
    found = dead_letters.bytes_of(store, "busy", LetterKey(busy.TOPIC_ID, 0, 107, "record"))
    assert found is not None
    value = b"{\xff" + HOSTILE.encode() + b"\x00\x00"
    assert (found["value"], found["total_bytes"]) == (value, len(value))
    assert found["header_names"] == ["trace"]
    assert dead_letters.bytes_of(store, "busy", LetterKey(busy.TOPIC_ID, 0, 1, "record")) is None


@pytest.mark.usefixtures("page")
def test_the_page_tells_all_of_it() -> None:
    app = open_page("operations", experiment="busy", cost="1", input_price="2.5")
    text = words(app)
    assert "**Paused by command**: endpoint awq" in text
    assert "consumed 170 = compared 120 + skipped 30 + failed 15 + dead-lettered 5 - 0 stored ahead" in text
    assert {one.label: one.value for one in app.metric}["failed in the range"] == "15"
    assert column(app, "state") == ["✕ budget used up", "‖ paused"]
    # Pair 0 of each ten, in both partitions, is a candidate_error.
    assert column(app, "errors") == [0, 12]
    assert column(app, "budget_used") == [1.2, 0.12]
    assert "Errors are evidence: a 500, a hang or a cut stream in 120 pairs" in text
    # Eight calls of 100 prompt tokens at 2.5 a million.
    assert "0.0020 for 8 calls, 0 of which failed." in text
    assert [one for one in column(app, "table") if one in ("pairs", "dead_letters")]
    links = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    assert "verdict=candidate_error" in links["Pairs with an error"]
    assert "recipe=replay_cost" in links["Open as SQL"]


@pytest.mark.usefixtures("page")
def test_a_letters_bytes_are_read_on_demand_only() -> None:
    key = f"{busy.TOPIC_ID}/0/107/record"
    app = open_page("operations", experiment="busy", letter=key)
    assert f"gnomon dlq show {busy.TOPIC_ID}/0/107" in words(app)
    assert address_of(app)["letter"] == key
    assert "of 171 bytes" not in words(app)
    (toggle,) = (one for one in app.toggle if one.label == "Show its first bytes")
    text = words(toggle.set_value(True).run())
    assert "{\\xff<script>" in text
    assert "\\x1b[31mred" in text
    assert "7bff" in text


@pytest.mark.usefixtures("page")
def test_a_letter_that_is_none_is_said() -> None:
    text = words(open_page("operations", experiment="busy", letter="abc", input_price="-1"))
    assert "letter of the link is not known here (any more): “` abc `”. It is left out" in text
    assert "input\\_price of the link is no number that it may be: “` -1 `”" in text


@pytest.mark.usefixtures("page")
def test_an_account_without_texts_sees_no_letter_and_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, '{"text_readers": []}')
    app = open_page("operations", experiment="busy", letter=f"{busy.TOPIC_ID}/0/107/record", cost="1")
    text = words(app)
    assert "Your account does not show what dead letters hold" in text
    assert "Your account does not read the answers" in text
    assert f"gnomon dlq show {busy.TOPIC_ID}/0/107" in text
    assert not [one for one in app.toggle if one.label == "Show its first bytes"]
    # The pause's reason was typed by a colleague; of the letters nothing is there.
    tables = "\n".join(one.value.to_string() for one in app.dataframe if "order" not in one.value)
    assert "script" not in tables


@pytest.mark.usefixtures("page")
def test_a_time_without_records_says_so_and_the_rest_still_shows() -> None:
    app = open_page("operations", **{"experiment": "busy", "window": "fixed", "to": "2020-01-01"})
    text = words(app)
    assert "No record was taken up in this time range." in text
    assert "No dead letter in this time range." in text
    assert column(app, "next_offset") == [110, 60]
