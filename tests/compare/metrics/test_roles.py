from __future__ import annotations

from collections.abc import Sequence

import pytest

from compare.metrics.roles import ROLES, roles_of
from ingest.observation import Observation, ToolCall
from ingest.tokens import Token, Tokens


def roles(pieces: Sequence[str], **more: object) -> list[str]:
    fields: dict[str, object] = {"text": "".join(pieces), **more}
    seen = Observation(tokens=Tokens(Token(piece, -0.1) for piece in pieces), **fields)  # type: ignore[arg-type]
    return [ROLES[code] for code in roles_of(seen).tolist()]


def test_json_syntax_keys_values_and_numbers() -> None:
    pieces = [
        "{",
        '"',
        "na",
        'me"',
        ":",
        ' "',
        "bolt",
        '",',
        ' "price',
        '":',
        " ",
        "12",
        ".5",
        ",",
        ' "ok":',
        " true",
        "}",
    ]
    expected = ["syntax", "syntax", "key", "key", "syntax", "syntax", "value", "syntax", "key", "syntax"]
    expected += ["syntax", "number", "number", "syntax", "key", "value", "syntax"]
    assert roles(pieces) == expected


def test_what_a_token_says_counts_before_the_syntax_around_it() -> None:
    assert roles(['{"a', '": "x', '"}']) == ["key", "value", "syntax"]


def test_quotes_and_colons_inside_strings_are_part_of_them() -> None:
    pieces = ['{"', "a", '":"', 'say \\"', "hi", '\\": {', "1", '}"', "}"]
    assert roles(pieces) == ["syntax", "key", "syntax", "value", "value", "value", "value", "value", "syntax"]


def test_json_that_is_cut_or_broken_is_read_as_far_as_it_goes() -> None:
    assert roles(["[", "1", ",", ' "half of a']) == ["syntax", "number", "syntax", "value"]
    assert roles(["{", "'a'", ":", "1", "}}"]) == ["syntax", "syntax", "syntax", "number", "syntax"]


def test_prose_and_its_numbers() -> None:
    assert roles(["It", " costs", " 1", ",", "250", " in", " all", "."]) == [
        "prose", "prose", "number", "number", "number", "prose", "prose", "prose",
    ]  # fmt: skip


def test_a_fenced_block_of_json_within_prose() -> None:
    pieces = ["Here", ":\n", "```", "json", "\n", "{", '"a"', ": ", "1", "}\n", "```", " done"]
    expected = ["prose"] * 5 + ["syntax", "key", "syntax", "number", "syntax", "prose", "prose"]
    assert roles(pieces) == expected


def test_reasoning_and_its_markup_before_the_text() -> None:
    found = roles(
        ["<think>", "Is it", " 2?", "</think>", "\n\n", "Yes", "."], text="Yes.", reasoning="Is it 2?"
    )
    assert found == ["reasoning", "reasoning", "reasoning", "unknown", "unknown", "prose", "prose"]


def test_a_tool_call_that_the_tokens_cover() -> None:
    pieces = [
        "<tool_call>",
        '{"name": "',
        "look",
        "_up",
        '", "arguments": ',
        '{"',
        "city",
        '": "',
        "Oslo",
        '"}',
        "}",
    ]
    call = ToolCall("look_up", '{"city": "Oslo"}')
    expected = ["unknown", "unknown", "tool_name", "tool_name", "unknown"]
    expected += ["syntax", "key", "syntax", "value", "syntax", "unknown"]
    assert roles(pieces, text="", tool_calls=(call,)) == expected


def test_tokens_that_do_not_cover_the_tool_call_stay_with_the_text() -> None:
    call = ToolCall("look_up", "{}")
    assert roles(["Let", " me", " see"], tool_calls=(call,)) == ["prose"] * 3
    assert roles(["??"], text="", tool_calls=(call,)) == ["unknown"]


def test_pieces_of_characters_and_empty_tokens() -> None:
    assert roles(["\ufffd", "\ufffd", "!", ""], text="\u4f60!") == ["prose", "prose", "prose", "unknown"]


def test_lists_that_end_before_the_answer_does() -> None:
    assert roles(["Thin", "king"], text="An answer", reasoning="Thinking of it") == ["reasoning"] * 2
    assert roles(["Hm", "An", " an"], text="An answer", reasoning="Hm") == ["reasoning", "prose", "prose"]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_only_the_first_tokens_are_asked_for(count: int) -> None:
    seen = Observation(text="ab", tokens=Tokens([Token("a", -0.1), Token("b", -0.1)]))
    assert roles_of(seen, count).tolist() == [ROLES.index("prose")] * count


def test_no_tokens() -> None:
    assert roles([]) == []
