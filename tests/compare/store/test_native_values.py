"""Columns of Python values reach the engine as they are, and what does not fit is refused by name."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from compare.store import Store
from compare.store.native_block import ColumnValueError, native_block
from compare.store.native_types import item_types
from ingest.errors import DeadLetterError

TABLE = """
CREATE OR REPLACE TABLE python_values
(
    k UInt64, u8 UInt8, i16 Int16, u32 Nullable(UInt32), i64 Nullable(Int64), f Float32, d Nullable(Float64),
    nf Nullable(Float32), b Bool, nb Nullable(Bool), w LowCardinality(String),
    nw LowCardinality(Nullable(String)), s String, ns Nullable(String), u UUID, nu Nullable(UUID), day Date,
    at DateTime('UTC'), ms DateTime64(3, 'UTC'), us Nullable(DateTime64(6, 'UTC')),
    a Array(Nullable(Float32)), aa Array(Array(String)),
    m Map(LowCardinality(String), LowCardinality(String)), ab Array(Bool),
    t Array(Tuple(name String, value String))
)
ENGINE = MergeTree ORDER BY k
"""
KEY = uuid.UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")
AT = datetime(2026, 11, 29, 3, 0, 0, 120_999, UTC)
KOLKATA = timezone(timedelta(hours=5, minutes=30))
COLUMNS: dict[str, list[Any]] = {
    "k": [0, 2**64 - 1, 5],
    "u8": [0, 255, 1],
    "i16": [-(2**15), 2**15 - 1, 0],
    "u32": [None, 2**32 - 1, 0],
    "i64": [-(2**63), None, 2**63 - 1],
    "f": [0.5, -2, 3.4028234663852886e38],
    "d": [1e300, None, -0.0],
    "nf": [None, 0.25, float("-inf")],
    "b": [True, False, True],
    "nb": [None, False, True],
    "w": ["one", "", "one"],
    "nw": [None, "", "x"],
    "s": ["é\x00", b"plain", "x" * 300],
    "ns": [None, "", b"b"],
    "u": [KEY, str(KEY), KEY.bytes],
    "nu": [None, KEY, None],
    "day": [date(1970, 1, 2), date(2026, 11, 29), AT.date()],
    "at": [AT, AT.astimezone(KOLKATA), datetime(1970, 1, 1, tzinfo=UTC)],
    "ms": [AT, AT.astimezone(KOLKATA), datetime(1970, 1, 1, tzinfo=UTC)],
    "us": [AT, None, None],
    "a": [[None, 1.5], [], [-1.0]],
    "aa": [[["p", "q"], []], [], [["r"]]],
    "m": [{"a": "b", "c": "b"}, {}, {"a": "a"}],
    "t": [[("h", "v"), ("i", "w")], [], [("j", "")]],
    "ab": [[True, False], [], [True]],
}


@pytest.fixture(scope="module")
def store(migrated_store: Store) -> Iterator[Store]:
    migrated_store.command(TABLE)
    yield migrated_store
    migrated_store.command("DROP TABLE python_values SYNC")


def test_values_of_every_type_come_back(store: Store) -> None:
    store.insert_columns("python_values", COLUMNS)
    names = ", ".join(name for name in COLUMNS if name not in ("at", "ms", "us"))
    rows = store.query(
        f"SELECT {names}, toString(at), toString(ms), toString(us) FROM python_values ORDER BY k"
    ).rows
    assert rows == [
        (0, 0, -32768, None, -(2**63), 0.5, 1e300, None, True, None, "one", None, "é\x00", None, KEY, None)
        + (date(1970, 1, 2), [None, 1.5], [["p", "q"], []], {"a": "b", "c": "b"})
        + ([{"name": "h", "value": "v"}, {"name": "i", "value": "w"}], [True, False])
        + ("2026-11-29 03:00:00", "2026-11-29 03:00:00.120", "2026-11-29 03:00:00.120999"),
        (5, 1, 0, 0, 2**63 - 1, 3.4028234663852886e38, -0.0, float("-inf"), True, True, "one", "x")
        + ("x" * 300, "b", KEY, None, date(2026, 11, 29), [-1.0], [["r"]], {"a": "a"})
        + ([{"name": "j", "value": ""}], [True])
        + ("1970-01-01 00:00:00", "1970-01-01 00:00:00.000", None),
        (2**64 - 1, 255, 32767, 2**32 - 1, None, -2.0, None, 0.25, False, False, "", "", "plain", "", KEY)
        + (KEY, date(2026, 11, 29), [], [], {}, [], [])
        + ("2026-11-29 03:00:00", "2026-11-29 03:00:00.120", None),
    ]


def test_rows_are_turned_into_columns(store: Store) -> None:
    store.command("TRUNCATE TABLE python_values")
    store.insert("python_values", ("k", "ns"), [(1, "a"), (2, None)])
    assert store.query("SELECT k, ns FROM python_values ORDER BY k").rows == [(1, "a"), (2, None)]
    store.insert("python_values", ("k", "ns"), [])
    assert store.query("SELECT count() FROM python_values").rows == [(2,)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("UInt8", 256),
        ("UInt64", -1),
        ("UInt32", 1.5),
        ("UInt32", None),
        ("Nullable(Int16)", 2**15),
        ("Float32", 1e39),
        ("Float64", None),
        ("Float64", "1.5"),
        ("Bool", 2),
        ("Bool", None),
        ("Nullable(Bool)", 3),
        ("String", None),
        ("String", "\ud800"),
        ("LowCardinality(String)", None),
        ("LowCardinality(String)", 5),
        ("UUID", b"short"),
        ("UUID", "no uuid"),
        ("DateTime64(3, 'UTC')", datetime(2026, 1, 1)),  # noqa: DTZ001
        ("DateTime('UTC')", datetime(1969, 1, 1, tzinfo=UTC)),
        ("Date", "2026-11-29"),
        ("Array(String)", "text"),
        ("Array(String)", None),
        ("Map(String, String)", [("a", "b")]),
        ("Array(Tuple(a String, b String))", [("one",)]),
        ("IPv4", "127.0.0.1"),
    ],
)
def test_a_value_that_does_not_fit_names_its_column(kind: str, value: Any) -> None:
    with pytest.raises(ColumnValueError, match=r"^column c of type "):
        native_block({"c": [value]}, {"c": kind}, 1)


def test_nan_in_a_nullable_column_is_null(store: Store) -> None:
    store.command("TRUNCATE TABLE python_values")
    store.insert("python_values", ("k", "nf"), [(1, float("nan"))])
    assert store.query("SELECT nf FROM python_values").rows == [(None,)]


@pytest.mark.parametrize("rows", [[(1, 2**32)], [(1,)], [(1, 2), (3,)]])
def test_rows_that_can_never_be_stored_are_refused_as_such(store: Store, rows: list[tuple[int, ...]]) -> None:
    with pytest.raises(DeadLetterError, match="insert into python_values") as refused:
        store.insert("python_values", ("k", "u32"), rows)
    assert refused.value.reason == "store_refused"


def test_item_types_of_lists_maps_and_tuples() -> None:
    assert item_types("Array(Array(String))") == ["Array(String)"]
    assert item_types("Map(String, Array(Nullable(Float32)))") == ["String", "Array(Nullable(Float32))"]
    assert item_types("Array(Tuple(name String, at DateTime64(3, 'UTC')))") == [
        "String",
        "DateTime64(3, 'UTC')",
    ]
