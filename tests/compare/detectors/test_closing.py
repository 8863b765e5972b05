"""Runs that close what was opened, counted by hand."""

from __future__ import annotations

import pytest

from compare.detectors.closing import closes_what_was_opened, opens_what_is_closed


@pytest.mark.parametrize(
    ("before", "run", "period"),
    [
        ("f(" * 30, ")" * 30, 1),
        ("f(" * 24, ")" * 32, 1),  # three of four
        ('[{"k":' * 10 + "1", "}]" * 10, 2),
        ("<b><i>" * 8, "</i></b>" * 8, 8),
        ('<li class="a">' * 8 + "x", "</li>\n" * 8, 6),
        ("<ul>" * 8 + "x</", "ul></" * 7 + "ul>", 5),
        (r"\begin{quote}" * 6, r"\end{quote}" * 6, 11),
        ("\uff08" * 20 + "a", "\uff09" * 20, 1),
    ],
)
def test_closers_with_their_openers(before: str, run: str, period: int) -> None:
    text = before + run
    assert closes_what_was_opened(text, len(before), len(text), period)


@pytest.mark.parametrize(
    ("before", "run", "period"),
    [
        ("", ")" * 30, 1),
        ("f(" * 23, ")" * 32, 1),
        ("f()" * 30, ")" * 30, 1),
        ("<br/>" * 30, "</br>" * 30, 5),
        ("f(" * 30, "-)" * 30, 2),
        ("{" * 30, "ab" * 30, 2),
        ("{" * 30, " \n" * 30, 2),
        ("<div>x</div>", "</div>" * 40, 6),
    ],
)
def test_what_closes_nothing_or_is_no_closer(before: str, run: str, period: int) -> None:
    text = before + run
    assert not closes_what_was_opened(text, len(before), len(text), period)


def test_openers_count_where_the_rest_closes_them() -> None:
    text = '{"a":' * 60 + "1" + "}" * 60
    assert opens_what_is_closed(text, 0, 300)
    assert not opens_what_is_closed(text[:320], 0, 300)
    assert not opens_what_is_closed("ab" * 60 + "}" * 60, 0, 120)
