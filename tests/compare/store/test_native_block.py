"""Columns go to the engine as they are, on the embedded client and over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from compare.store import Store
from compare.store.client import connect_http
from compare.store.lockfile import read_owner
from compare.store.native_block import native_block
from compare.store.native_columns import Column, Lists, Words
from ingest.errors import DeadLetterError, FatalError
from ingest.settings import StoreSettings

TABLE = """
CREATE TABLE columns
(
    k UInt64, w LowCardinality(String), nw LowCardinality(Nullable(String)), f Nullable(Float32), d Float64,
    b Bool, nb Nullable(Bool), s String, ns Nullable(String), u UUID, at DateTime64(3, 'UTC'),
    a Array(LowCardinality(String)), sa Array(String), m Map(LowCardinality(String), LowCardinality(String)),
    i Int16
)
ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100
"""
KEYS = [uuid.UUID(int=7), uuid.UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff"), uuid.UUID(int=2**128 - 2)]


def columns() -> dict[str, Column]:
    ends = np.array([2, 2, 3])
    names = Words(["p", "qé"], np.array([1, 0, 1]))
    return {
        "k": np.arange(3),
        "w": Words(["a", "", "c"], np.array([2, 1, 0])),
        "nw": Words(["x"], np.array([-1, 0, -1])),
        "f": np.ma.masked_invalid([1.5, np.nan, -0.25]),
        "d": np.array([1e300, 0.0, -1.0]),
        "b": np.array([True, False, True]),
        "nb": np.ma.masked_array([True, False, True], mask=[False, False, True]),
        "s": np.frombuffer(("é\x00" * 100 + "plain" * 60 + "x" * 300).encode(), "u1").reshape(3, 300),
        "ns": Words(["", "y"], np.array([-1, 0, 1])),
        "u": np.frombuffer(b"".join(key.bytes for key in KEYS), "u1").reshape(3, 16),
        "at": np.array(["2026-11-29T03:00:00.120", "1970-01-01", "2026-01-01"], "datetime64[ms]").astype(
            "i8"
        ),
        "a": Lists(ends, (names,)),
        "sa": Lists(ends, (Words(["", "33", "1"], np.array([2, 0, 1], "u1")),)),
        "m": Lists(ends, (names, Words(["v"], np.zeros(3, "u1")))),
        "i": np.array([-300, 0, 300], "i2"),
    }


@pytest.fixture(scope="module", params=["here", "loopback", "far"])
def store(
    request: pytest.FixtureRequest, migrated_store: Store, store_settings: StoreSettings
) -> Iterator[Store]:
    owner = read_owner(Path(store_settings.url.removeprefix("chdb://")))
    assert owner is not None
    migrated_store.command("CREATE OR REPLACE" + TABLE.removeprefix("\nCREATE"))
    if request.param == "here":
        yield migrated_store
        return

    def connect() -> object:
        made = connect_http(owner.url, "default", owner.writer_token, settings=store_settings, where="port")
        assert made.place == "loopback"
        return msgspec.structs.replace(made, place=request.param, where=f"port, {request.param}")

    with Store(connect, database=migrated_store.database) as over_http:  # type: ignore[arg-type]
        yield over_http


def test_values_come_back_as_they_went(store: Store) -> None:
    store.insert_columns("columns", columns())
    rows = store.query(
        "SELECT k, w, nw, f, d, b, nb, s, ns, u, toString(at), a, sa, m, i FROM columns ORDER BY k"
    ).rows
    assert rows == [
        (0, "c", None, 1.5, 1e300, True, True, "é\x00" * 100, None, KEYS[0], "2026-11-29 03:00:00.120")
        + (["qé", "p"], ["1", ""], {"qé": "v", "p": "v"}, -300),
        (1, "", "x", None, 0.0, False, False, "plain" * 60, "", KEYS[1], "1970-01-01 00:00:00.000")
        + ([], [], {}, 0),
        (2, "a", None, -0.25, -1.0, True, None, "x" * 300, "y", KEYS[2], "2026-01-01 00:00:00.000")
        + (["qé"], ["33"], {"qé": "v"}, 300),
    ]


def test_one_token_is_stored_once_and_many_rows_are_one_block(store: Store) -> None:
    before = store.query("SELECT count() FROM columns").rows[0][0]
    many = {"k": np.arange(70_000), "w": Words([str(n) for n in range(70_000)], np.arange(70_000))}
    for _ in range(2):
        store.insert_columns("columns", many, dedup_token=f"many {store.where}")
    assert store.query("SELECT count() FROM columns").rows == [(before + 70_000,)]
    assert store.query("SELECT countIf(w = toString(k)) FROM columns").rows[0][0] >= 70_000


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        (np.arange(2), "UInt64", "column c has 2 rows, the block 3"),
        (Words(["a"], np.array([0, 1, 0])), "LowCardinality(String)", "outside 1 words"),
        (Words(["a"], np.array([0, -1, 0])), "LowCardinality(String)", "outside 1 words"),
        (np.arange(3), "String", "column c is of type String: a ndarray cannot be stored in it"),
        (np.zeros((3, 15), "u1"), "UUID", "a ndarray cannot be stored in it"),
        (Words(["a"], np.array([0, -1, 0])), "String", "a Words cannot be stored in it"),
        (Words(["a"], np.array([0, 1, -1])), "Nullable(String)", "outside 1 words"),
        (np.ma.masked_invalid([1.0, np.nan, 2.0]), "Float32", "a MaskedArray cannot be stored in it"),
    ],
)
def test_a_column_that_does_not_fit_is_named(column: Column, kind: str, message: str) -> None:
    with pytest.raises(FatalError, match=message):
        native_block({"c": column}, {"c": kind}, 3)


def test_a_column_that_the_table_lacks_is_named(store: Store) -> None:
    with pytest.raises(FatalError, match="table columns lacks nothing"):
        store.insert_columns("columns", {"nothing": np.arange(1)})


def test_a_defect_of_the_way_there_costs_no_rows(
    migrated_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the run; taken for a bad row, every row of the batch would become a dead letter."""
    store = migrated_store.another()
    try:

        def broken(*arguments: object, **options: object) -> None:
            raise TypeError("a defect of ours")

        monkeypatch.setattr(store._connected().client, "raw_insert", broken)
        columns = {"experiment": ["e"], "action": ["pause"]}
        with pytest.raises(TypeError, match="a defect of ours"):
            store.insert_columns("controls", columns)
        with pytest.raises(DeadLetterError):
            store.insert_columns("controls", columns | {"partition": [object()]})
    finally:
        monkeypatch.undo()
        store.close()
