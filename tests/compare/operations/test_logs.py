from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from compare.operations.logs import JsonLines, TextLines, logging_to_stderr
from ingest.settings import OperationsSettings


def record(message: str, *arguments: object, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("gnomon.x", logging.WARNING, __file__, 1, message, arguments, None)
    made.created = 1_790_000_000.25
    vars(made).update(extra)
    return made


def test_json_has_the_fields_and_what_was_added() -> None:
    line = JsonLines().format(record("partition %d \u2028 is held", 3, request_id="r-1", offset=7))
    assert json.loads(line) == {
        "time": "2026-09-21T14:13:20.250Z",
        "level": "warning",
        "logger": "gnomon.x",
        "message": "partition 3 \u2028 is held",
        "request_id": "r-1",
        "offset": 7,
    }
    assert line.isascii() and "\n" not in line


def test_a_traceback_is_part_of_the_line_in_json_and_below_it_in_text() -> None:
    made = record("failed")
    try:
        raise ValueError("bad\x1b[31m")
    except ValueError:
        made.exc_info = sys.exc_info()
    parsed = json.loads(JsonLines().format(made))
    assert parsed["exception"].endswith("ValueError: bad\x1b[31m")
    first, *rest = TextLines().format(made).splitlines()
    assert first == "2026-09-21T14:13:20.250Z warning failed"
    assert rest[0] == "Traceback (most recent call last):"


def test_text_shows_control_characters() -> None:
    shown = TextLines().format(record("a\x1b[2J\nb\u202e"))
    assert shown == r"2026-09-21T14:13:20.250Z warning a\x1b[2J\nb\u202e"


def test_any_value_can_be_added() -> None:
    parsed = json.loads(JsonLines().format(record("x", what=object, lone="\ud800")))
    assert parsed["what"] == "<class 'object'>"
    assert parsed["lone"] == "\ud800"


def test_levels_hold_inside_and_end_outside(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    with logging_to_stderr(OperationsSettings(log_format="json", log_level="info")):
        logging.getLogger("compare.y").info("said")
        logging.getLogger("compare.y").debug("not said")
        logging.getLogger("aiohttp.access").info("not said either")
    logging.getLogger("compare.y").warning("after")
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["message"] for line in lines if line.startswith("{")] == ["said"]
    assert (root.level, root.handlers) == before
