from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import scan
from ingest.packed_texts import PackedTexts, utf8


@given(st.lists(st.text(max_size=200)))
def test_what_is_packed_is_listed(texts: list[str]) -> None:
    packed = PackedTexts.of(texts)
    assert packed.listed() == texts
    assert len(packed) == len(texts)


def test_a_length_is_before_each_text() -> None:
    assert PackedTexts.of(["a", "", "\u00e9"]).data == b"\x01a\x00\x02\xc3\xa9"
    # 300 is 44 + 2 * 128; a length of one byte ends at 127.
    assert PackedTexts.of(["x" * 300, "y"]).data == b"\xac\x02" + b"x" * 300 + b"\x01y"
    assert PackedTexts.of(["x" * 127, "y" * 128]).data == b"\x7f" + b"x" * 127 + b"\x80\x01" + b"y" * 128


def test_lone_surrogates_are_replaced() -> None:
    assert PackedTexts.of(["a\ud800b", "\ud83d\ude00"]).listed() == ["a\ufffdb", "\U0001f600"]
    assert utf8("\udcff") == b"\xef\xbf\xbd"


def place(start: int, length: int, flags: int = 0) -> int:
    return start << 16 | flags | length


@pytest.mark.parametrize("text", ["plain", "", "\u4f60", 'a"b', "\\", "\n\x00", "\U0001f389", "x" * 200])
def test_a_text_is_read_at_its_place(text: str) -> None:
    for written in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        source = f"[{written}]".encode()
        length = len(source) - 4
        flags = scan.PLACE_ESCAPED if "\\" in written else 0
        places = np.array([place(2, length, flags)] * 2)
        assert scan.texts_at(source, places) == PackedTexts.of([text, text])
        assert scan.listed_at(source, places) == [text, text]
    assert scan.listed_at(b"", places[:0]) == []


@pytest.mark.parametrize("wrong", [place(1, 3), place(0, 5), place(-1, 1), place(9, 1), place(1, 2, 1 << 15)])
def test_any_other_place_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="no text"):
        scan.texts_at(b'"\\x"', np.array([wrong]))
