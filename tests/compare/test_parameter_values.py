"""Values of parameters against their types. What the types hold is ClickHouse's documentation of each."""

from __future__ import annotations

import pytest

from compare.parameter_values import BadValueError, check_value
from compare.store import Store

TIME = "Nullable(DateTime64(3, 'UTC'))"


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        *(("UInt32", value) for value in ("0", "+7", "007", "4294967295")),
        *(("Int8", value) for value in ("-128", "127")),
        *(("Float64", value) for value in ("-1.5", "1e3", ".5", "5.")),
        *((TIME, value) for value in ("2026-11-29", "2026-11-29 03:00:00.123456", "1764000000.5")),
        ("String", "abc"),
        ("Array(UInt8)", "[1]"),
    ],
)
def test_what_the_type_holds_is_let_through_and_bound(
    migrated_store: Store, type_name: str, value: str
) -> None:
    check_value("name", type_name, value)
    rows = migrated_store.query(f"SELECT toString({{name:{type_name}}})", {"name": value}).rows
    if type_name.endswith(("8", "32", "64")):
        assert float(rows[0][0]) == float(value)
    elif type_name == TIME:
        # As far as milliseconds go; the last one is 2025-11-24, 16:00 and a half.
        assert rows[0][0] in {
            "2026-11-29 00:00:00.000", "2026-11-29 03:00:00.123", "2025-11-24 16:00:00.500"
        }  # fmt: skip
    else:
        assert rows == [(value,)]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        *(("UInt32", value) for value in ("", "-5", "4294967296", "1e3", " 1", "1_0", "\u0661", "9" * 5_000)),
        *(("Nullable(Int8)", value) for value in ("-129", "128")),
        *(("Float64", value) for value in ("nan", "inf", "1e999", "abc", "")),
        *(
            (TIME, value)
            for value in ("2026-02-30 03:00:00", "2026-13-01", "3026-01-01", "noon", "2026-11-29.5")
        ),
        ("DateTime('UTC')", "2120-01-01 00:00:00"),
    ],
)
def test_what_the_type_does_not_hold_is_one_line(type_name: str, value: str) -> None:
    with pytest.raises(BadValueError) as raised:
        check_value("name", type_name, value)
    line = str(raised.value)
    assert line.startswith("name: a ") and len(line) < 200 and "\n" not in line
