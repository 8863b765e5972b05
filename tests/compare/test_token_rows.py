"""A row of tokens is the same whether its tokens are columns and text or objects."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest

from bench.answers import chinese, entries, json_records, prose, words
from compare.side_rows import DISPLAY_ALTERNATIVES, Row, token_row
from compare.store.native_columns import plain
from ingest.observation import Observation
from ingest.packed_answer import pack
from ingest.reference_answers import KnownAnswer
from tests.compare import batches
from tests.ingest.both_ways import is_scanned, read
from tests.ingest.test_scanned import BODIES, chat, regular, streamed
from tests.ingest.test_triples import body
from tests.ingest.test_triples import regular as regular_triples

_TEXT_COLUMNS = ("token", "token_id", "logprob", "ranked", "top_token", "top_logprob")
_ODD = ['"', "\\", '\\"', "{", "}", '},{"token":"x"', "token", '"top_logprobs":[{"token":"z"}]', "\n", "\x00"]
_ODD += ["\ufffd", "caf\u00e9", "\u4f60", "\U0001f389", "", "\\u0041"]


def row_of(seen: Observation) -> Row | None:
    row = token_row(batches.compared(3), "reference", "a", seen)
    return None if row is None else {name: plain(row[name]) for name in _TEXT_COLUMNS}


def single(value: float) -> float:
    """The number as Float32 has it."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def by_objects(seen: Observation) -> Row | None:
    """The row, token by token."""
    if not seen.tokens:
        return None
    tops = [token.top[:DISPLAY_ALTERNATIVES] for token in seen.tokens]
    return {
        "token": [token.text for token in seen.tokens],
        "token_id": [token.id for token in seen.tokens],
        "logprob": [None if token.logprob is None else single(token.logprob) for token in seen.tokens],
        "ranked": [min(token.ranked, 255) for token in seen.tokens],
        "top_token": [[entry.text for entry in top] for top in tops],
        "top_logprob": [
            [None if math.isinf(entry.logprob) else single(entry.logprob) for entry in top] for top in tops
        ],
    }


def check(data: bytes, asked: int | None) -> bool:
    """Compare the rows, signs of zeros too; returns whether there were no objects."""
    seen, known = read([data], asked, scans=True), read([data], asked, scans=False)
    assert repr(row_of(seen)) == repr(by_objects(known))
    is_without_objects = is_scanned(seen)
    assert pack(KnownAnswer(seen, 7)) == pack(KnownAnswer(known, 7))
    return is_without_objects


@pytest.mark.parametrize("asked", [None, 2])
def test_rows_of_every_answer_on_record(asked: int | None) -> None:
    assert sum(check(data, asked) for data in BODIES) > 5


@pytest.mark.parametrize("make", [words, prose, json_records, chinese])
def test_rows_of_long_lists(make: Callable[[int, int], list[str]]) -> None:
    pieces = make(1, 200)
    listed = entries(1, pieces, has_ids=True)
    for separators in (None, (",", ":")):
        data = json.dumps(chat(listed, "".join(pieces)), separators=separators).encode()
        # With 19 asked for, the last may be the one that was sampled.
        assert check(data, 20) and check(data, 19)


def test_rows_of_what_looks_like_json_itself() -> None:
    listed = regular(_ODD, has_ids=True)
    for place, one in enumerate(listed):
        one["top_logprobs"][1]["token"] = _ODD[place - 1] + "!"
    data = json.dumps(chat(listed, "".join(_ODD)))
    assert check(data.encode(), 3)
    assert check(json.dumps(json.loads(data), sort_keys=True, ensure_ascii=False).encode(), 3)
    assert check(json.dumps(json.loads(data), indent=1).encode(), 3)


def test_no_object_is_made_for_a_row() -> None:
    listed = regular(["a", " b"] * 1_100, has_ids=False)
    seen = read([streamed(listed, 1, json.dumps)], 3, scans=True)
    row = row_of(seen)
    assert row is not None and len(row["token"]) == 2_048
    assert row["top_token"][:2] == [["a", " x", " y"], [" b", " x", " y"]]
    assert row["token_id"][0] is None
    assert is_scanned(seen)


def test_rows_of_triples() -> None:
    heads, tops = regular_triples(12)
    assert check(body(heads, tops), 3) and check(body(heads, tops), 2) and check(body(heads, None), None)
    seven: list[Any] = [
        [*top, *([-10.0 - n, 1_000 + n, None if n % 2 else "z"] for n in range(4))] for top in tops
    ]
    assert check(body(heads, seven), 7)
    seven[3][2].append("more")
    check(body(heads, seven), 7)
    seven[4][1][2] = 5
    check(body(heads, seven), 7)
