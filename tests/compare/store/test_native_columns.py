"""Cells are stored as the lists are that they stand for."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import numpy as np
import pytest

from compare.store import Store
from compare.store.native_columns import Lists, Words, as_bytes, end_to_end, plain
from ingest.packed_texts import PackedTexts

NAN = float("nan")
CASES: list[tuple[str, list[Any], list[Any]]] = [
    (
        "Array(String)",
        [PackedTexts.of(["a", "", "\u4f60"]), PackedTexts.of([]), PackedTexts.of(["x" * 300])],
        [["a", "", "\u4f60"], [], ["x" * 300]],
    ),
    (
        "Array(Nullable(Float32))",
        [np.array([-0.5, NAN], dtype="f4"), np.array([], dtype="f4"), np.array([0.25], dtype="f4")],
        [[-0.5, None], [], [0.25]],
    ),
    (
        "Array(Nullable(UInt32))",
        [np.ma.masked_array(np.array([7, 0], dtype="u4"), [False, True]), np.ma.masked_array([2**32 - 1])],
        [[7, None], [2**32 - 1]],
    ),
    ("Array(UInt8)", [np.array([255, 0], dtype="u1"), np.array([3], dtype="u1")], [[255, 0], [3]]),
    (
        "Array(LowCardinality(String))",
        [
            Words(("prose", "key"), np.array([1, 0, 1], dtype="u1")),
            Words((), np.array([], dtype="u1")),
            Words(("digits", "prose"), np.array([0, 1], dtype="u1")),
        ],
        [["key", "prose", "key"], [], ["digits", "prose"]],
    ),
    (
        "Array(Array(String))",
        [
            Lists(np.array([2, 2, 3]), (PackedTexts.of(["a", "b", "c"]),)),
            Lists(np.array([], dtype="i8"), (PackedTexts.of([]),)),
            Lists(np.array([1]), (PackedTexts.of(["d"]),)),
        ],
        [[["a", "b"], [], ["c"]], [], [["d"]]],
    ),
    (
        "Array(Array(Nullable(Float32)))",
        [Lists(np.array([0, 2]), (np.array([-1.0, NAN], dtype="f4"),))],
        [[[], [-1.0, None]]],
    ),
]


@pytest.mark.parametrize(("kind", "cells", "values"), CASES)
def test_cells_are_stored_as_their_lists(
    migrated_store: Store, kind: str, cells: list[Any], values: list[Any]
) -> None:
    table = f"cells_{uuid.uuid4().hex}"
    migrated_store.command(f"CREATE TABLE {table} (k UInt8, c {kind}) ENGINE = Memory")
    # A row that somebody had to change is a list again.
    for column in (tuple(cells), [values[0], *cells[1:]], values):
        migrated_store.insert_columns(table, {"k": np.arange(len(cells), dtype="u1"), "c": column})
        assert [row[0] for row in migrated_store.query(f"SELECT c FROM {table} ORDER BY k").rows] == values
        migrated_store.command(f"TRUNCATE TABLE {table}")
    migrated_store.command(f"DROP TABLE {table}")
    assert [plain(cell) for cell in cells] == values
    assert end_to_end(cells).ends.tolist() == np.cumsum(list(map(len, values))).tolist()


def test_what_is_no_cell_is_plain_already() -> None:
    assert plain("text") == "text" and plain(None) is None and plain([1, None]) == [1, None]
    assert plain(Words(("a",), np.array([0, -1]))) == ["a", None]


def test_cells_are_hashed_by_all_that_they_hold() -> None:
    def encoded(cell: Any) -> bytes:
        return msgspec.msgpack.encode(cell, enc_hook=as_bytes)

    values = np.array([1, 2], dtype="u4")
    some = [
        values,
        values.astype("u8"),
        np.array([1, 3], dtype="u4"),
        np.ma.masked_array(values, [False, True]),
        PackedTexts.of(["1", "2"]),
        Words(("a", "b"), values),
        Lists(values, (values,)),
    ]
    assert len({encoded(cell) for cell in some}) == len(some)
    # What lies behind a mask is not stored.
    hidden = [np.ma.masked_array(np.array([1, n], dtype="u4"), [False, True]) for n in (2, 3)]
    assert encoded(hidden[0]) == encoded(hidden[1])
    with pytest.raises(TypeError, match="object is no value of a row"):
        encoded(object())
