"""Golden sets and runs on the real engine: cases, redaction, purge, runs, the baseline."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from compare.golden.case import Expected
from compare.golden.checks import Exact, Pattern
from compare.golden.run import Known
from compare.golden.run_log import baseline_of, find_run, read_known, read_runs, write_run
from compare.golden.sets import (
    list_sets,
    promote,
    read_cases,
    redacted,
    remove_cases,
    require_cases,
    write_cases,
)
from compare.purge import Selection, purge
from compare.store import Store
from compare.writer import Writer
from ingest.errors import FatalError
from ingest.observation import Observation, Timings, ToolCall
from ingest.records import SourcePosition
from ingest.redact import Redactor
from ingest.settings import RedactionRule, RedactionSettings
from tests.compare import batches
from tests.compare.golden.rig import body, case, result, run

TABLES = ("golden_cases", "golden_runs", "golden_results", "golden_baselines")


@pytest.fixture
def store(migrated_store: Store) -> Iterator[Store]:
    for table in TABLES:
        migrated_store.command(f"TRUNCATE TABLE {table}")
    yield migrated_store


def redactor() -> Redactor:
    rule = RedactionRule(action="mask", pattern=r"card-\d{4}")
    return Redactor(RedactionSettings(rules=[rule], key="k" * 32))


def test_cases_are_read_as_they_were_written(store: Store) -> None:
    position = SourcePosition("t", "tid", 3, 2**40)
    cases = [
        case("a", 'text "q" \n\x00', checks=(Exact(), Pattern("x")), note="n", tenant="t", route="r"),
        case("b", None, checks=(Pattern("y"),)),
        case("c", expected=Expected("", (ToolCall("f", '{"a":1}', None),), None), source="stored",
             source_experiment="e", position=position, request_id="r-1", expected_by="reference"),
    ]  # fmt: skip
    write_cases(store, "s", cases)
    assert read_cases(store, "s") == cases
    assert read_cases(store, "other") == []
    with pytest.raises(FatalError, match="golden set other has no cases; there are: s"):
        require_cases(store, "other")


def test_a_case_with_the_same_id_replaces_and_a_removed_one_is_gone(store: Store) -> None:
    write_cases(store, "s", [case("a", "one"), case("b", "two")])
    write_cases(store, "other", [case("a", "other")])
    write_cases(store, "s", [case("a", "changed")])
    assert [(one.case_id, one.expected) for one in read_cases(store, "s")] == [
        ("a", Expected("changed", finish_reason="stop")),
        ("b", Expected("two", finish_reason="stop")),
    ]
    assert remove_cases(store, "s", ["a", "nobody", "a"]) == 1
    assert [one.case_id for one in read_cases(store, "s")] == ["b"]
    # Nothing of a removed case is left once its versions are merged.
    store.command("OPTIMIZE TABLE golden_cases FINAL")
    rows = store.query(
        "SELECT body, expected_text FROM golden_cases WHERE set_name = 's' AND case_id = 'a'"
    ).rows
    assert rows == [("{}", None)]
    write_cases(store, "s", [case("a", "again")])
    assert len(read_cases(store, "s")) == 2


def test_sets_are_listed_with_their_last_run(store: Store) -> None:
    write_cases(store, "s", [case("a"), case("b")])
    write_cases(store, "t", [case("a")])
    write_run(store, run(0, 0.9), [], None)
    write_run(store, run(1, None, status="incomplete"), [], None)
    promote(store, "s", "run0000", "me@here")
    first, second = list_sets(store)
    assert (first.name, first.cases, first.baseline_run_id) == ("s", 2, "run0000")
    assert (first.last_run_id, first.last_status, first.last_mean_score) == ("run0001", "incomplete", None)
    assert (second.name, second.last_run_id, second.baseline_run_id) == ("t", None, None)


def test_runs_are_read_as_they_were_written(store: Store) -> None:
    runs = [
        run(0, 0.5, status="failed", reasons=("low",), newly_failing=1, newly_passing=0, baseline_run_id="b"),
        run(1, endpoint_name="ref", role="reference", started_by="command"),
        run(2, None, set_name="t", status="incomplete"),
    ]
    for one in runs:
        write_run(store, one, [], None)
    assert read_runs(store) == runs[::-1]
    assert read_runs(store, "s", endpoint_name="cand") == runs[:1]
    assert read_runs(store, experiment="nobody") == []
    assert find_run(store, "run0001") == find_run(store, "run0001"[:7]) == runs[1]
    for text, said in (
        ("run0", "several golden runs have"),
        ("nobody", "no golden run has"),
        ("", "no golden"),
    ):
        with pytest.raises(FatalError, match=said):
            find_run(store, text)


def test_the_last_promotion_of_a_set_holds(store: Store) -> None:
    assert baseline_of(store, "s") is None
    for number in (0, 1):
        write_run(store, run(number), [], None)
    write_run(store, run(2, set_name="t"), [], None)
    promote(store, "t", "run0002", "me")
    for run_id in ("run0000", "run0001", "run0000"):
        promote(store, "s", run_id, "me")
    assert (baseline_of(store, "s"), baseline_of(store, "t")) == ("run0000", "run0002")
    assert [(one.run_id, one.is_baseline) for one in read_runs(store)] == [
        ("run0002", True), ("run0001", False), ("run0000", True),
    ]  # fmt: skip


def test_results_are_stored_case_by_case(store: Store) -> None:
    answer = Observation(
        text="an answer", tool_calls=(ToolCall("f", "{}", "1"),), finish_reason="stop", prompt_tokens=3,
        completion_tokens=2, timings=Timings(12.5, 4.0),
    )  # fmt: skip
    results = [
        result(
            "a", 0.25, "failed", answer=answer, reasons=("why",), failed_checks=("exact",), is_exact=False
        ),
        result("b", None, "away", reasons=("gone",)),
    ]
    write_run(store, run(0), results, None)
    columns = "case_id, status, score, is_exact, reasons, answer_text, total_ms, prompt_tokens, finish_reason"
    assert store.query(f"SELECT {columns} FROM golden_results_v1 ORDER BY case_id").rows == [
        ("a", "failed", 0.25, False, ["why"], "an answer", 12.5, 3, "stop"),
        ("b", "away", None, None, ["gone"], "", None, None, None),
    ]
    assert read_known(store, "run0000", "s") == {"a": Known("h", False, 0.25)}


def test_nothing_that_the_rules_take_out_is_stored(store: Store) -> None:
    dirty = case("a", "pay with card-1234", body=body("my card-1234"), note="see card-1234")
    clean = redacted(dirty, redactor())
    assert clean.is_redacted and not redacted(case("b"), redactor()).is_redacted
    assert redacted(dirty, None) is dirty
    write_cases(store, "s", [clean])
    answer = Observation(text="card-9876", tool_calls=(ToolCall("f", '{"n":"card-9876"}', "1"),))
    bad = result("a", 0.1, "failed", answer=answer, reasons=("fields: is card-9876",))
    write_run(store, run(0), [bad, result("b", answer=Observation(text="fine"))], redactor())
    for table in TABLES:
        rows = store.query(f"SELECT * FROM {table}").rows
        assert "card-" not in repr(rows), table
    flags = store.query("SELECT case_id, is_redacted FROM golden_results_v1 ORDER BY case_id").rows
    assert flags == [("a", True), ("b", False)]


@pytest.mark.parametrize("selection", [Selection(request_id="r-5"), Selection(tenant="leaving")])
def test_a_purge_takes_cases_and_results_of_the_request_out(store: Store, selection: Selection) -> None:
    where = batches.position(5, topic_id="purged")
    request = batches.mirrored(5, position=where, tenant="leaving")
    Writer(store, threading.Event()).write(batches.batch(batches.compared(5, request=request)))
    mine = case("mine", "secret", source="stored", position=where, request_id="other name", tenant="x")
    write_cases(store, "s", [mine, case("other", "kept")])
    write_cases(store, "s", [msgspec.structs.replace(mine, note="edited")])
    write_cases(store, "t", [case("named", "secret", tenant="leaving", request_id="r-5")])
    write_run(store, run(0), [result("mine", answer=Observation(text="secret")), result("other")], None)
    report = purge(store, selection)
    assert (report.is_clean, report.golden_cases) == (True, 2)
    assert [one.case_id for one in read_cases(store, "s")] == ["other"]
    assert read_cases(store, "t") == []
    for table in TABLES:
        assert "secret" not in repr(store.query(f"SELECT * FROM {table}").rows), table
    assert store.query("SELECT case_id FROM golden_results").rows == [("other",)]
    assert purge(store, selection).golden_cases == 0


def test_a_case_of_another_version_is_refused_by_name(store: Store) -> None:
    write_cases(store, "s", [case("a")])
    row: dict[str, Any] = {
        "set_name": "s",
        "case_id": "b",
        "body": "{}",
        "checks": json.dumps([{"check": "new"}]),
    }
    row["expected_tool_calls"], row["version"] = "[]", 2**62
    store.insert("golden_cases", tuple(row), [tuple(row.values())])
    with pytest.raises(FatalError, match="golden set s, case b: its checks cannot be read"):
        read_cases(store, "s")
