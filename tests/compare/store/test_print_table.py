from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

from compare.store.print_table import format_result

AT = datetime(2026, 11, 29, 3, 0, 0, 120000, tzinfo=UTC)


def test_a_table_aligns_and_names_what_is_missing() -> None:
    text = format_result(["verdict", "n", "kl"], [("match", 12, 0.1234567), ("中文", 3, None)], "table")
    assert text.splitlines() == [
        "verdict   n        kl",
        "-------  --  --------",
        "match    12  0.123457",
        "中文      3      NULL",
        "(2 rows)",
    ]


def test_an_empty_result_still_shows_its_columns() -> None:
    assert format_result(["a", "bb"], [], "table") == "a  bb\n-  --\n(0 rows)"
    assert format_result(["a", "bb"], [], "csv") == "a,bb"
    assert format_result(["a", "bb"], [], "json") == "[]"


def test_control_characters_never_reach_the_terminal() -> None:
    text = format_result(["t"], [("\x1b[31mred\n\u202e",)], "table")
    assert "\\x1b[31mred\\n\\u202e" in text
    assert "\x1b" not in text


def test_csv_quotes_by_rfc_4180() -> None:
    rows = [('a "b", c', None, True, [1, "x"], AT)]
    text = format_result(["one", "two", "three", "four", "five"], rows, "csv")
    assert text.splitlines() == [
        "one,two,three,four,five",
        '"a ""b"", c",,true,"[1, ""x""]",2026-11-29T03:00:00.120000+00:00',
    ]


def test_json_is_one_object_a_row() -> None:
    key = uuid.UUID(int=5)
    row = (1, None, float("inf"), {"k": (AT, key)}, b"\xff", "é")
    text = format_result(["a", "b", "c", "d", "e", "f"], [row], "json")
    assert json.loads(text) == [
        {
            "a": 1,
            "b": None,
            "c": "inf",
            "d": {"k": ["2026-11-29T03:00:00.120000+00:00", str(key)]},
            "e": "0xff",
            "f": "é",
        }
    ]
