"""Rows that are made where a pair is compared are those that the writer would make of it."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from bench.compare import read, wires_of
from compare.compare_child import ready_comparison
from compare.comparison import compare_pairs
from compare.outcomes import ComparedPair
from compare.packed_rows import PackedRows, PairRow
from compare.redact_rows import RowRedactor
from compare.result import Comparison
from compare.rows import TableRows, rows_of
from compare.store.native_columns import plain
from ingest.pair import ResponsePair
from ingest.redact import redactor_of
from ingest.reference_answers import ReferenceAnswer
from ingest.settings import RedactionRule, RedactionSettings, Settings
from ingest.tokens import Tokens
from tests.compare import batches
from tests.compare.test_comparison import _SETTINGS

HIDING = msgspec.structs.replace(
    _SETTINGS, redaction=RedactionSettings(rules=[RedactionRule("mask", pattern="ferry|bolt")], key="k" * 16)
)


def pairs_of(count: int) -> list[ResponsePair]:
    answer = ReferenceAnswer("reference", "a" * 32, is_reused=False)
    return [
        msgspec.structs.replace(read(*wire), mirrored=batches.mirrored(place), reference_answers=(answer,))
        for place, wire in enumerate(wires_of(count))
    ]


def listed(tables: dict[str, TableRows]) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [
            {name: plain(value) for name, value in zip(content.columns, row, strict=True)}
            for row in content.rows
        ]
        for table, content in tables.items()
    }


@pytest.mark.parametrize("settings", [_SETTINGS, HIDING])
def test_the_comparison_makes_the_rows_that_the_writer_would(settings: Settings) -> None:
    redactor = redactor_of(settings.redaction)
    row_redactor = None if redactor is None else RowRedactor(redactor)
    made = []
    for pair, result in zip(pairs_of(4), ready_comparison(settings)(pairs_of(4)), strict=True):
        assert isinstance(result, Comparison)
        made.append(ComparedPair.of(pair, result))
    late = []
    for pair, early, result in zip(
        pairs_of(4), made, compare_pairs(pairs_of(4), None, settings), strict=True
    ):
        assert isinstance(result, Comparison)
        late.append(ComparedPair(early.attempt_id, pair, result))
    tables = listed(rows_of(batches.batch(*made), redactor=row_redactor))
    assert tables == listed(rows_of(batches.batch(*late), redactor=row_redactor))
    assert {"requests", "observations", "tokens", "positions", "findings", "pairs"} <= tables.keys()
    hidden = [row["is_redacted"] for row in tables["tokens"]]
    assert any(hidden) == (settings is HIDING)
    # An answer of which something had to be hidden is not kept.
    assert len(tables.get("reference_answers", [])) == sum(
        not row["is_redacted"] for row in tables["tokens"] if row["role"] == "reference"
    )


def test_with_its_rows_a_pair_holds_no_words() -> None:
    (pair,) = pairs_of(1)
    (result,) = ready_comparison(_SETTINGS)([pair])
    assert isinstance(result, Comparison)
    compared = ComparedPair.of(pair, result)
    assert compared.rows is not None and compared.rows.attempt_id == compared.attempt_id
    assert compared.comparison.rows is None
    assert compared.pair.mirrored.position == pair.mirrored.position
    assert compared.pair.reference.timings == pair.reference.timings
    assert compared.pair.reference.tokens == compared.pair.candidate.tokens == Tokens()
    assert compared.pair.mirrored.body == compared.pair.reference_body == compared.pair.candidate_body == {}


def test_rows_come_back_as_they_were_packed() -> None:
    rows = (PairRow("requests", {"offset": 3, "body": "x"}, (3,)), PairRow("pairs", {"severity": None}))
    packed = PackedRows.of("an id", rows)
    assert packed.rows() == rows and not packed.is_compressed


def test_a_large_prompt_is_held_once() -> None:
    """It stands in three rows; of random digits nothing else is alike."""
    prompt = "".join(random.Random(1).choices("0123456789", k=4 * 2**20))
    bodies = [f'{{"model":"{name}","prompt":"{prompt}"}}' for name in ("served", "full", "q4")]
    rows = (
        PairRow("requests", {"body": bodies[0]}),
        *(PairRow("observations", {"sent_body": body}) for body in bodies[1:]),
    )
    packed = PackedRows.of("an id", rows)
    assert packed.rows() == rows
    # One digit of ten has ln 10 of ln 256: no packing holds fewer bytes of one prompt.
    assert 0.415 * len(prompt) < len(packed) < 0.6 * len(prompt)
