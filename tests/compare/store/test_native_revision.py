"""Native blocks for clients of a later revision, on the real engine's blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import chdb
import pytest

from compare.store import Store
from compare.store.native_revision import at_revision
from ingest.errors import FatalError
from ingest.settings import StoreSettings

EXPRESSIONS = [
    "number",
    "repeat('x', number * 50)",
    "toNullable(number)",
    "[number, 1]",
    "[[toString(number)], []]",
    "map('a', number)",
    "map(toLowCardinality('k'), toLowCardinality('v'))",
    "toLowCardinality(toString(number))",
    "CAST(if(number % 2, NULL, 'x'), 'LowCardinality(Nullable(String))')",
    "CAST([], 'Array(LowCardinality(String))')",
    "CAST((1, 'a'), 'Tuple(a UInt8, `b c` String)')",
    "NULL",
    "[NULL]",
    "toDecimal64(1, 3)",
    "CAST(1, 'Decimal(5, 2)')",
    "CAST(NULL, 'Nullable(Decimal(20, 3))')",
    "toFixedString('abc', 5)",
    "toUUID('00000000-0000-0000-0000-000000000001')",
    "toIPv4('1.2.3.4')",
    "toDate('2026-01-01')",
    "now64(3, 'UTC')",
    "CAST('a', 'Enum8(\\'a\\' = 1, \\'(b, \\' = 2)')",
    "true",
    "toIntervalDay(1)",
    "CAST([(1, 'a')], 'Nested(a UInt8, b LowCardinality(String))')",
    "CAST(1, 'SimpleAggregateFunction(sum, Float64)')",
]


@pytest.fixture(scope="module")
def engine(migrated_store: Store, store_settings: StoreSettings) -> Iterator[Any]:
    connect: Any = chdb.connect
    handle = connect(store_settings.url.removeprefix("chdb://"))
    yield handle
    handle.close()


def native(engine: Any, expression: str) -> bytes:
    data: bytes = engine.query(f"SELECT {expression} AS v, 'end' AS z FROM numbers(5)", "Native").bytes()
    return data


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_type_is_measured_right(engine: Any, expression: str) -> None:
    """A column measured wrong by one byte would put the second column's byte in a wrong place."""
    plain = native(engine, expression)
    # The second column, by hand: name z, type String, five times "end".
    tail = b"\x01z\x06String" + b"\x03end" * 5
    assert plain.endswith(tail)
    revised = at_revision(plain, 54460)
    assert revised.endswith(b"\x01z\x06String\x00" + b"\x03end" * 5)
    assert revised.startswith(bytes([1, 0, 2, 255, 255, 255, 255, 0, 2, 5, 1]) + b"v")
    assert len(revised) == len(plain) + 8 + 2


def test_a_block_by_hand() -> None:
    plain = b"\x01\x02\x01n\x05UInt8\x07\x08"
    header = bytes([1, 0, 2, 255, 255, 255, 255, 0])
    assert at_revision(plain, 0) == plain
    assert at_revision(plain * 2, 54405) == (header + plain) * 2
    assert at_revision(plain, 54454) == header + b"\x01\x02\x01n\x05UInt8\x00\x07\x08"
    assert at_revision(b"\x01\x00\x01n\x05UInt8", 54454) == header + b"\x01\x00\x01n\x05UInt8\x00"


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (b"\x01\x01\x01n\x04JSON\x00", "type JSON cannot be sent"),
        (b"\x01\x05\x01n\x05UInt8\x07", "cut off"),
        (b"\x01\x05\x01n\x06String\x01a", "cut off"),
    ],
)
def test_what_cannot_be_measured_is_refused(block: bytes, words: str) -> None:
    with pytest.raises(FatalError, match=words):
        at_revision(block, 54460)
