"""Hidden characters are written out; ordinary text of any script stays as it is."""

from __future__ import annotations

from compare.visible import visible_block, visible_line


def test_control_and_bidi_characters_are_written_out() -> None:
    assert visible_block("a\x1b[0m\u202eb\x00\ud800\tc\nd") == "a\\x1b[0m\\u202eb\\x00\\ud800\tc\nd"


def test_a_line_has_no_line_feed_or_line_separator() -> None:
    assert visible_line("a\nb\tc\u2028d") == "a\\nb\\tc\\u2028d"


def test_ordinary_text_of_any_script_stays() -> None:
    text = "日志 é 🙂 <b> عربي"
    assert visible_block(text) == text
    assert visible_line(text) == text


def test_a_cut_is_said() -> None:
    assert visible_block("x" * 12, limit=10) == "xxxxxxxxxx\n[cut here: 2 more characters]"
    assert visible_line("x" * 12, limit=10) == "xxxxxxxxx…"
    assert visible_line("x" * 10, limit=10) == "x" * 10
