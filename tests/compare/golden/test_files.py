"""JSON Lines in and out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare.golden.case import Expected
from compare.golden.checks import Pattern
from compare.golden.files import lines_of, read_file, read_line
from ingest.errors import FatalError
from ingest.observation import ToolCall
from tests.compare.golden.rig import body, case


def line(**more: Any) -> bytes:
    values = {"request": body(), "expected": {"text": "a"}} | more
    return json.dumps({name: value for name, value in values.items() if value is not None}).encode()


def test_what_is_written_is_read_again() -> None:
    cases = [
        case("1", 'wörld "q"\n\x1b', note="why", route="r", tenant="t"),
        case("2", None, checks=(Pattern("a|b", is_absent=True),)),
        case("3", expected=Expected("", (ToolCall("f", '{"a":1}', "x"),), "tool_calls")),
    ]
    again = [read_line(text.encode(), "here") for text in lines_of(cases)]
    assert again == cases


def test_a_case_without_id_is_named_by_its_request() -> None:
    names = {read_line(line(expected={"text": text}), "here").case_id for text in ("a", "b")}
    assert len(names) == 1 and len(names.pop()) == 16


@pytest.mark.parametrize(("text", "said"), [
    (b"{", "Input data was truncated"),
    (b'"\xff"', "here"),
    (line(request=None), "missing required field `request`"),
    (line(expected=None), "neither an expected answer nor a check"),
    (line(expected=None, checks=[{"check": "exact"}]), "there is none"),
    (line(checks=[{"check": "pattern", "pattern": "(?<=a)"}]), "is refused"),
    (line(path="/v1/embeddings"), "/v1/embeddings is not replayed"),
    (line(request={"model": "m", "prompt": ["a", "b"]}), "2 prompts in one request"),
    (line(extra=1), "unknown field `extra`"),
    (line(id=""), "length >= 1"),
    (b'{"request":' + b'{"a":' * 100_000, "here"),
])  # fmt: skip
def test_a_line_that_will_not_do_is_named(text: bytes, said: str) -> None:
    with pytest.raises(FatalError) as caught:
        read_line(text, "here")
    assert str(caught.value).startswith("here: ")
    assert said in str(caught.value)


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(line(id="a") + b"\n\n" + line(id="b") + b"\n")
    assert [one.case_id for one in read_file(file)] == ["a", "b"]
    file.write_bytes(line(id="a") + b"\n" + line(id="a"))
    with pytest.raises(FatalError, match=r"line 2: the case id 'a' is in the file twice"):
        read_file(file)
    file.write_bytes(b"\n")
    with pytest.raises(FatalError, match="has no cases"):
        read_file(file)
    with pytest.raises(FatalError, match="cannot be read: No such file"):
        read_file(tmp_path / "none")
