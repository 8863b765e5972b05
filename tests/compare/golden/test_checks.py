"""Checks of cases: what they accept, what they refuse, and that no pattern is slow."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from compare.golden.checks import (
    MAX_PATTERN_CHARACTERS,
    Answered,
    Exact,
    Pattern,
    Schema,
    Similarity,
    checked,
    failures,
    needs_expected,
    read_checks,
    value_at,
)
from compare.metrics.structure import read_json


def answered(text: str = "", **more: Any) -> Answered:
    values: dict[str, Any] = {"is_exact": None, "cosine": None, "edit": None} | more
    return Answered(text=text, json=read_json(text), **values)


def why(check: dict[str, Any], answer: Answered) -> list[str]:
    return [one.reason for one in failures(read_checks(json.dumps([check])), answer)]


def test_exact() -> None:
    check = {"check": "exact"}
    assert why(check, answered(is_exact=True)) == []
    assert why(check, answered(is_exact=False)) == ["is not just the expected answer"]


@pytest.mark.parametrize(("measure", "value", "reasons"), [
    ("cosine", 0.9, []),
    ("cosine", 0.89, ["cosine 0.890 is under 0.9"]),
    ("edit", 0.95, []),
    ("edit", None, ["edit similarity could not be measured"]),
])  # fmt: skip
def test_similarity(measure: str, value: float | None, reasons: list[str]) -> None:
    check = {"check": "similarity", "measure": measure, "least": 0.9}
    answer = answered(cosine=value) if measure == "cosine" else answered(edit=value)
    assert why(check, answer) == reasons


def test_schema() -> None:
    check = {"check": "schema", "schema": {"type": "object", "required": ["a"]}}
    assert why(check, answered('{"a": 1}')) == []
    assert why(check, answered('{"b": 1}')) == ["is not valid under the schema"]
    assert why(check, answered("{")) == ["is no JSON"]


def test_keys_compare_values_as_json() -> None:
    check = {
        "check": "keys",
        "keys": [{"path": "$.a.b[1]", "value": 1.0}, {"path": "$['c d']", "value": "x"}],
    }
    assert why(check, answered('{"a": {"b": [0, 1]}, "c d": "x", "more": 1}')) == []
    assert why(check, answered('{"a": {"b": [0, true]}}')) == [
        "$.a.b[1] is true, not 1.0; $['c d'] is missing, not \"x\""
    ]
    assert why(check, answered("no")) == ["is no JSON"]


@pytest.mark.parametrize("path", ["$.a[0]", "$.a.b", "$.c[3]", "$.d.e", "$[0]"])
def test_a_path_that_leads_nowhere_is_missing(path: str) -> None:
    with pytest.raises(LookupError):
        value_at({"a": {"b2": 1}, "c": [1], "d": None}, path)


def test_pattern_is_looked_for_anywhere() -> None:
    check = {"check": "pattern", "pattern": r"ERR-\d{4}"}
    assert why(check, answered("code ERR-1234.")) == []
    assert why(check, answered("code ERR-12.")) == [r"pattern 'ERR-\\d{4}' is not found"]
    absent = check | {"is_absent": True}
    assert why(absent, answered("code ERR-12.")) == []
    assert why(absent, answered("code ERR-1234.")) == [r"pattern 'ERR-\\d{4}' is found"]


def test_no_pattern_backtracks() -> None:
    # Python's own engine needs 2**n steps for this; RE2's time is linear.
    check = {"check": "pattern", "pattern": "^(a+)+$"}
    began = time.process_time()
    assert why(check, answered("a" * 100_000 + "b")) == ["pattern '^(a+)+$' is not found"]
    assert time.process_time() - began < 60


@pytest.mark.parametrize(("check", "said"), [
    ({"check": "pattern", "pattern": "(?=a)"}, "no look-around"),
    ({"check": "pattern", "pattern": r"(a)\1"}, "no back references"),
    ({"check": "pattern", "pattern": "a" * (MAX_PATTERN_CHARACTERS + 1)}, "at most 1000"),
    ({"check": "pattern", "pattern": "((((a{30}){30}){30}){30})"}, "is refused"),
    ({"check": "keys", "keys": [{"path": "$..a", "value": 1}]}, "has a wildcard"),
    ({"check": "keys", "keys": [{"path": "a", "value": 1}]}, "begins with"),
    ({"check": "keys", "keys": []}, "length >= 1"),
    ({"check": "schema", "schema": {"type": "nonsense"}}, "JSON Schema"),
    ({"check": "schema", "schema": {"$ref": "http://127.0.0.1:1/x.json"}}, "JSON Schema"),
    ({"check": "similarity", "measure": "cosine", "least": 1.5}, "<= 1.0"),
    ({"check": "other"}, "Invalid value 'other'"),
    ({"check": "exact", "more": 1}, "unknown field"),
])  # fmt: skip
def test_what_cannot_be_checked_is_refused(check: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=".*") as caught:
        read_checks(json.dumps([check]))
    assert said in str(caught.value)


def test_which_checks_need_an_expected_answer() -> None:
    assert needs_expected([Exact()]) and needs_expected([Similarity("edit", 0.5)])
    assert not needs_expected(checked([Schema({"type": "object"}), Pattern("a")]))
