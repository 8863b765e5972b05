"""The page of SQL: recipes and own statements, limits, the file, and accounts without texts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from compare.recipes import shipped_recipes
from compare.store.answer import Cost, Result
from compare.store.client import open_store
from compare.store.errors import StoreBusyError
from dashboards.questions import sql_box
from dashboards.questions.sql_box import Statement
from dashboards.screens.sql_result import table_of
from dashboards.shell import reader as reader_module
from dashboards.shell.clock import Clock
from dashboards.shell.handles import Handles
from dashboards.shell.hidden_text import TextHidden
from dashboards.shell.reader import Answers, Reader
from dashboards.shell.sign_in import VARIABLE
from dashboards.words import Words
from ingest.settings import StoreSettings
from tests.dashboards.conftest import HOSTILE
from tests.dashboards.pages import address_of, open_page


@pytest.fixture
def page(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The application on the night's store; it keeps its connection, so each test starts without one."""
    monkeypatch.setenv("GNOMON_STORE_URL", f"chdb://{filled}")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def words(app: AppTest) -> str:
    assert not app.exception, app.exception
    kinds = ("title", "caption", "text", "info", "warning", "error", "code")
    return "\n".join(str(one.value) for kind in kinds for one in getattr(app, kind))


def run_own(sql: str) -> AppTest:
    app = open_page("sql", experiment="night", mode="own", sql=sql)
    assert not app.dataframe
    (button,) = (one for one in app.button if one.label == "Run")
    return button.click().run()


@pytest.mark.usefixtures("page")
def test_a_linked_recipe_runs_with_the_links_values_and_says_its_cost() -> None:
    link = {"recipe": "verdicts_by_day", "run": "1", "verdicts_by_day.days": "3"}
    app = open_page("sql", experiment="night", **link)
    text = words(app)
    (table,) = (one.value for one in app.dataframe)
    assert dict(zip(table["verdict"], table["pairs"], strict=True)) == {"match": 4, "candidate_worse": 2}
    assert "2 rows in " in text
    # The six pairs of the night, as the store tells it.
    assert "read 6 rows" in text
    assert address_of(app)["verdicts_by_day.days"] == "3"
    assert address_of(app)["verdicts_by_day.experiment"] == "night"
    assert app.get("download_button")
    # Another recipe is another question: it waits for a press.
    (choice,) = (one for one in app.selectbox if one.label == "Recipe")
    app = choice.set_value("worst_pairs").run()
    assert "Press Run to ask the store." in words(app)
    assert "run" not in address_of(app)


@pytest.mark.usefixtures("page")
def test_a_link_to_a_recipe_that_is_not_ours_runs_none() -> None:
    app = open_page("sql", experiment="night", recipe="nope", run="1")
    assert not app.dataframe
    assert "Press Run to ask the store." in words(app)


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("days", ["1) OR 1=1 --", "4294967296", "99999999999999999999", "-5"])
def test_a_value_that_its_type_does_not_hold_is_not_sent(days: str) -> None:
    link = {"recipe": "verdicts_by_day", "run": "1", "verdicts_by_day.days": days}
    app = open_page("sql", experiment="night", **link)
    assert not app.exception and not app.dataframe
    (error,) = app.error
    assert "days: a whole number from 0 to 4294967295, not" in error.value
    (box,) = (one for one in app.text_input if one.label == "days")
    app = box.set_value("3").run()
    (run,) = (one for one in app.button if one.label == "Run")
    app = run.click().run()
    assert not app.error and len(app.dataframe) == 1


@pytest.mark.usefixtures("page")
def test_run_asks_anew_what_was_cancelled_or_went_over_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    app = run_own("SELECT 41 + 1 AS answer")
    assert app.dataframe[0].value["answer"].tolist() == [42]
    asked: list[bool] = []

    def run(reader: Reader, statement: Statement, *, is_wanted: bool = False) -> Result:
        asked.append(is_wanted)
        raise StoreBusyError("too slow", code=160)

    with monkeypatch.context() as patched:
        patched.setattr(sql_box, "run", run)
        for presses in (1, 2):
            (button,) = (one for one in app.button if one.label == "Run")
            app = button.click().run()
            assert asked == [True] * presses
            assert "Let it read less" in app.error[0].value
    # What the button of the note sets, for any question.
    monkeypatch.setattr(reader_module, "_name_of", lambda _: "cancelled")
    app.session_state["cancelled"] = True
    (button,) = (one for one in app.button if one.label == "Run")
    app = button.click().run()
    assert app.dataframe[0].value["answer"].tolist() == [42]


@pytest.mark.usefixtures("page")
def test_a_name_of_ones_own_is_no_reason_to_migrate() -> None:
    text = words(run_own("SELECT * FROM nowhere"))
    assert "no table, column or database of a name in your statement" in text
    assert "nowhere" in text and "migrate" not in text


@pytest.mark.usefixtures("page")
def test_a_linked_statement_waits_for_run_and_binds_the_side_bar() -> None:
    app = run_own("SELECT count() AS pairs FROM pairs_v1 WHERE experiment = {experiment:String}")
    assert not app.exception
    assert app.dataframe[0].value["pairs"].tolist() == [6]


@pytest.mark.usefixtures("page")
def test_an_error_says_where() -> None:
    text = words(run_own("SELECT 1,\n  2 FROM FROM x"))
    assert "see line 2, column" in text
    # The caret stands under the place, below the line as it was written.
    shown = text.split("SELECT 1,\n")[-1].splitlines()
    assert shown[0].startswith("  2 FROM")
    assert "The store could not run it" in text


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE pairs", "cannot run DROP"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT * FROM url('http://127.0.0.1:1')", "cannot call url"),
        ("SELECT 1 FORMAT CSV", "leave FORMAT CSV out"),
    ],
)
def test_what_does_not_only_read_is_not_sent(sql: str, reason: str) -> None:
    app = run_own(sql)
    assert not app.exception
    (error,) = app.error
    assert error.value == "This statement is not sent."
    assert reason in app.text[0].value


@pytest.mark.usefixtures("page")
def test_an_answer_is_cut_at_the_rows_of_the_page() -> None:
    app = run_own("SELECT number AS n FROM numbers(20000)")
    assert not app.exception
    assert "Only the first 10,000 rows are here" in app.warning[0].value
    assert len(app.dataframe[0].value) == 1_000
    assert "first 1,000 of 10,000 rows" in words(app)


@pytest.mark.usefixtures("page")
def test_an_account_without_texts_gets_recipes_that_read_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, '{"text_readers": []}')
    app = open_page("sql", experiment="night", mode="own", sql="SELECT text FROM observations_v1")
    text = words(app)
    assert "it runs recipes that read none" in text
    assert not app.text_area
    (choice,) = (one for one in app.selectbox if one.label == "Recipe")
    offered = {option.split(":")[0].removeprefix("@") for option in choice.options}
    assert "verdicts_by_day" in offered
    assert offered.isdisjoint({"dead_letters", "replay_cost", "not_compared", "schema_regressions_by_path"})


def test_recipes_that_touch_texts_are_told_by_any_mention() -> None:
    assert sql_box.recipes(shows_text=True).keys() == shipped_recipes().keys()
    assert sql_box.touches_text("SELECT x AS y FROM `tokens_v1`")
    assert sql_box.touches_text("SELECT any(detail) AS harmless FROM outcomes_v1")
    assert not sql_box.touches_text("SELECT 'detail', count() FROM pairs_v1 -- message")


def test_the_first_rows_and_bytes_are_read_and_no_more(filled: Path) -> None:
    with open_store(StoreSettings(url=f"chdb://{filled}"), role="reader", over_port=True) as store:
        reader = Reader(Handles(store), Answers(), Words("en"))
        wide = sql_box.run(reader, Statement("SELECT repeat('x', 1000000) AS x FROM numbers(1000)"))
        assert wide.is_cut
        # 16 MiB of a million letters each.
        assert len(wide) == 16
        narrow = sql_box.run(reader, Statement("SELECT {a:UInt8} AS b, NULL AS c", {"a": 7}))
        assert (narrow.column_names, narrow.rows, narrow.is_cut) == (("b", "c"), [(7, None)], False)
        assert sql_box.file_of(reader, Statement("SELECT '=1+1' AS f")) == b"f\r\n'=1+1\r\n"
        blind = Reader(Handles(store), Answers(), Words("en"), shows_text=False)
        with pytest.raises(TextHidden):
            sql_box.file_of(blind, Statement("SELECT any(message) AS m FROM findings_v1"))


def test_a_file_runs_no_formula_and_keeps_numbers() -> None:
    times = datetime(2026, 11, 29, 3, tzinfo=UTC)
    texts = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\tx", "\rx", "＝1", "plain", HOSTILE]
    rows = [(text, -1.5, None, True, times, ["=a", None], Decimal("0.10")) for text in texts]
    names = ("=name", "n", "none", "flag", "at", "list", "decimal")
    read = list(csv.reader(io.StringIO(sql_box.as_csv(Result(names, rows)).decode(), newline="")))
    assert read[0] == ["'=name", *names[1:]]
    assert [row[0] for row in read[1:]] == [*(f"'{text}" for text in texts[:7]), "plain", HOSTILE]
    rest = ["-1.5", "", "true", "2026-11-29T03:00:00+00:00", '["=a",null]', "0.10"]
    assert all(row[1:] == rest for row in read[1:])


def test_a_table_shows_visible_text_whole_numbers_and_the_clocks_times() -> None:
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    names = ("a", "a", "big", "at", "day", "id", "d", "\u202ename")
    row = (HOSTILE, ["\x1b", 1], 2**53 + 1, at, date(2026, 7, 1), UUID(int=1), Decimal("1.5"), "x" * 5_000)
    result = Result(names, [row, (None,) * len(names)], Cost(1, 2, 3.0))
    table = table_of(result, Clock("Europe/Berlin"))
    assert list(table) == ["a", "a (2)", "big", "at (Europe/Berlin)", "day", "id", "d", "\\u202ename"]
    first = table.iloc[0]
    assert "\x1b" not in first["a"] and "\\x1b[31m" in first["a"] and "\\u202e" in first["a"]
    # JSON writes the escape out already.
    assert first["a (2)"] == '["\\u001b",1]'
    assert first["big"] == "9007199254740993"
    assert first["at (Europe/Berlin)"] == pd.Timestamp(2026, 7, 1, 14)
    assert (first["day"], first["d"], len(first["\\u202ename"])) == ("2026-07-01", 1.5, 2_000)
    assert table.iloc[1].isna().all()
