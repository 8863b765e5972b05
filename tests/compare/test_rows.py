from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare import row_values
from compare.pair_rows import SCORE_COLUMNS
from compare.result import Family, Finding, Scores
from compare.rows import TableRows, rows_of
from compare.store import Store
from compare.store.native_columns import plain
from ingest.errors import FatalError
from ingest.observation import Timings
from tests.compare import batches


def only(table: TableRows) -> dict[str, Any]:
    (row,) = table.rows
    return dict(zip(table.columns, row, strict=True))


def test_a_pair_fills_every_side_table_once() -> None:
    tables = rows_of(batches.batch(batches.compared(3)))
    counts = {name: len(table.rows) for name, table in tables.items()}
    assert counts == {
        "requests": 1,
        "observations": 3,
        "tokens": 3,
        "positions": 1,
        "findings": 1,
        "noise_pairs": 1,
        "forced_pairs": 1,
        "pairs": 1,
    }


def test_what_two_candidates_share_is_written_once() -> None:
    request = batches.mirrored(3)
    pairs = [batches.compared(3, request=request, candidate_name=name) for name in ("q4", "q8")]
    tables = rows_of(batches.batch(*pairs))
    assert len(tables["requests"].rows) == 1
    assert len(tables["pairs"].rows) == 2
    roles = [
        (dict(zip(tables["observations"].columns, row, strict=True))["role"])
        for row in tables["observations"].rows
    ]
    assert sorted(roles) == ["candidate", "candidate", "reference", "reference_again"]


def test_a_pair_row_holds_scores_reasons_and_what_is_unscored() -> None:
    row = only(rows_of(batches.batch(batches.compared(3)))["pairs"])
    assert row["edit_similarity"] == 0.5
    assert row["cosine_similarity"] is None
    assert row["unscored"] == {"cosine_similarity": "disabled"}
    assert row["tags"] == ["history_faulty"]
    assert row["verdict"] == "candidate_worse"
    assert row["is_regression"] is True
    assert row["candidate_fault_families"] == ["repetition"]
    assert (row["is_candidate_only_fault"], row["is_reference_only_fault"]) == (True, False)
    assert (row["divergence_position"], row["divergence_candidate_gap_nats"]) == (1, None)
    assert row["version"] == (batches.NOON - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def finding(side: Any, *, is_fault: bool = True) -> Finding:
    return Finding(family=Family.JSON, code="c", side=side, message="m", is_fault=is_fault)


@pytest.mark.parametrize(
    ("findings", "changes", "expected"),
    [
        ((), {}, (False, False)),
        ((finding("candidate"),), {}, (True, False)),
        ((finding("reference"),), {}, (False, True)),
        ((finding("candidate"), finding("reference")), {}, (False, False)),
        ((finding("candidate", is_fault=False),), {}, (False, False)),
        ((), {"candidate": batches.failed_observation()}, (True, False)),
        ((finding("candidate"),), {"reference": batches.failed_observation()}, (False, False)),
    ],
)
def test_a_fault_on_one_side_only_counts_findings_and_failures(
    findings: tuple[Finding, ...], changes: dict[str, Any], expected: tuple[bool, bool]
) -> None:
    row = only(rows_of(batches.batch(batches.compared(3, findings=findings, **changes)))["pairs"])
    assert (row["is_candidate_only_fault"], row["is_reference_only_fault"]) == expected


def test_impossible_logprobs_are_null() -> None:
    columns, rows = rows_of(batches.batch(batches.compared(3)))["tokens"]
    row = dict(zip(columns, rows[0], strict=True))
    assert plain(row["logprob"]) == [-0.25, None]
    assert plain(row["top_logprob"]) == [[-0.25, None], []]


def test_a_score_outside_its_column_is_unscored_with_a_reason() -> None:
    row = only(
        rows_of(batches.batch(batches.compared(3, scores=Scores({"kl_prefix_max_nats": 1e39}))))["pairs"]
    )
    assert row["kl_prefix_max_nats"] is None
    assert row["unscored"] == {"kl_prefix_max_nats": "out_of_range"}


def test_a_score_without_a_column_is_a_defect() -> None:
    with pytest.raises(FatalError, match="score brand_new has no column"):
        rows_of(batches.batch(batches.compared(3, scores=Scores({"brand_new": 1.0}))))


def test_a_dead_letter_keeps_its_bytes() -> None:
    tables = rows_of(batches.batch(others=(batches.other(5, "dead_letter", "invalid_json"),)))
    row = only(tables["dead_letters"])
    assert (row["key"], row["value"], row["headers"]) == (b"key", b"\xff\x00broken", [("h", b"\xfe")])
    assert only(tables["outcomes"])["kind"] == "dead_letter"


def test_ranges_are_dated_by_the_time_of_storing() -> None:
    at = datetime(2026, 11, 29, 13, 0, tzinfo=UTC)
    row = only(rows_of(batches.batch(ranges=(batches.delivered(0, 7, 5),)), at)["delivered_ranges"])
    assert (row["first_offset"], row["end_offset"], row["records"], row["ingested_at"]) == (0, 7, 5, at)


@pytest.mark.parametrize(
    ("function", "given_value", "expected"),
    [
        (row_values.text, "a\ud800b", "a\ufffdb"),
        (row_values.text, "\ud83d\ude00", "\U0001f600"),
        (row_values.text, "nul\x00é", "nul\x00é"),
        (row_values.uint32, -1, None),
        (row_values.uint32, 2**32, None),
        (row_values.uint32, 2**32 - 1, 2**32 - 1),
        (row_values.float32, float("nan"), None),
        (row_values.float32, float("-inf"), None),
        (row_values.moment, datetime(9999, 1, 1, tzinfo=UTC), None),
        (row_values.json_text, {"k": "\udcff"}, '{"k":"\ufffd"}'),
    ],
)
def test_odd_values(function: Callable[[Any], Any], given_value: Any, expected: Any) -> None:
    assert function(given_value) == expected


any_text = st.text(st.characters(codec=None), max_size=12)


@given(any_text, any_text, st.integers(-(2**70), 2**70), st.floats())
def test_no_text_and_no_number_of_a_record_can_raise(one: str, two: str, count: int, number: float) -> None:
    seen = batches.observation(one, finish_reason=two, prompt_tokens=count, timings=Timings(number, number))
    request = batches.mirrored(
        3, request_id=two, body={"model": one, "x": [two, number]}, tags={one: two}, tenant=one, route=two
    )
    tables = rows_of(batches.batch(batches.compared(3, request=request, reference=seen, candidate=seen)))
    for table in tables.values():
        for row in table.rows:
            for value in row:
                # Neither a lone surrogate nor NaN can be written so.
                assert json.dumps(plain(value), default=str, ensure_ascii=False, allow_nan=False).encode()


def test_score_columns_are_those_of_the_table(migrated_store: Store) -> None:
    for table in ("pairs", "noise_pairs"):
        described = migrated_store.query(f"DESCRIBE TABLE {table}").rows
        names = [row[0] for row in described]
        first = names.index(SCORE_COLUMNS[0])
        assert tuple(names[first : first + len(SCORE_COLUMNS)]) == SCORE_COLUMNS


def test_every_column_of_every_table_is_filled_by_rows(migrated_store: Store) -> None:
    whole = batches.batch(
        batches.compared(3),
        others=(batches.other(5, "dead_letter", "invalid_json"),),
        ranges=(batches.delivered(0, 7, 5),),
    )
    for table, content in rows_of(whole).items():
        described = migrated_store.query(f"DESCRIBE TABLE {table}").rows
        assert sorted(content.columns) == sorted(row[0] for row in described), table
