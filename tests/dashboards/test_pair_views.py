"""What a pair's page makes of two answers: marks, differences, heat, paths, and the replay command."""

from __future__ import annotations

import math
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from dashboards.pair_views.heat import alternatives, both_of, entropy_lower, heat, note, strength
from dashboards.pair_views.json_paths import by_path, json_side, schema_of, tool_calls_by_path
from dashboards.pair_views.parting import Parting, box, parting_of, taken_before, token_span
from dashboards.pair_views.plain import HEAD, LEAD, MAX_CHARACTERS, Span, plain
from dashboards.pair_views.replay_command import replay_command
from dashboards.pair_views.word_diff import MAX_WORDS, word_diff
from dashboards.questions.pair import PairKey, Values
from dashboards.screens.pair_table import is_click
from dashboards.shell.marks import Piece, boxed
from dashboards.words import Words

SAY = Words("en")


def shown(pieces: Any) -> list[tuple[str, str]]:
    return [(piece.text, piece.kind) for piece in pieces]


def test_evidence_and_parting_are_marked_where_they_stand() -> None:
    parting = token_span("The sky sky", ["The", " sky", " sky"], 1, "part")
    assert parting == Span(3, 7, "part")
    pieces = plain("The sky sky", [Span(4, 11, "a loop")], parting, "gap").pieces
    assert shown(pieces) == [("The", ""), (" sky", "divergence"), (" sky", "evidence")]
    assert (pieces[1].mark, pieces[1].note) == ("≠", "part\na loop")


def test_an_answer_that_ends_first_parts_at_its_end() -> None:
    parting = token_span("One.", ["One", "."], 2, "ends")
    assert parting == Span(4, 4, "ends")
    pieces = plain("One.", [], parting, "gap").pieces
    assert shown(pieces) == [("One.", ""), ("", "divergence")]
    assert pieces[-1].mark == "≠ <end>"


def test_tokens_that_do_not_spell_the_text_mark_nothing() -> None:
    assert token_span("naïve", ["na", "\ufffd"], 1, "") is None


def parting(left: tuple[str, list[str]], right: tuple[str, list[str]], position: int | None) -> Parting:
    return parting_of(
        {"reference": left[0], "candidate": right[0]},
        {"reference": left[1], "candidate": right[1]},
        position,
        {"reference": "r", "candidate": "c"},
        "texts",
    )


def test_the_texts_part_where_they_show_it_if_the_server_took_the_token_away() -> None:
    left, right = ('{"city": 1}', ["\n", '{"city"', ": 1}"]), ('{"data"', ["```", '{"data"'])
    assert taken_before(*left) == 1
    assert taken_before(*right) == 3
    found = parting(left, right, 0)
    assert not found.is_token
    assert dict(found.spans) == {"reference": Span(2, 6, "texts"), "candidate": Span(2, 6, "texts")}
    boxes = [piece for piece in plain(left[0], [], found.spans["reference"], "gap").pieces if piece.kind]
    assert [(piece.text, piece.mark) for piece in boxes] == [("city", "≠")]
    words = word_diff(left[0], right[0], "gap")[1]
    assert [piece.text for piece in box(words, found.spans["candidate"]) if piece.mark] == ["data"]


def test_the_token_is_the_place_if_both_texts_show_it_behind_what_was_taken() -> None:
    found = parting(("The sky", ["\n", "The", " sky"]), ("The sea", ["\n", "The", " sea"]), 2)
    assert found == Parting({"reference": Span(3, 7, "r"), "candidate": Span(3, 7, "c")}, True)


def test_texts_without_tokens_part_too_and_equal_ones_never_do() -> None:
    assert dict(parting(("One", []), ("One two", []), None).spans) == {
        "reference": Span(3, 3, "texts"),
        "candidate": Span(3, 4, "texts"),
    }
    assert not parting(("One", []), ("One", []), None).spans
    end = list(box([Piece("One")], Span(3, 3, "texts")))
    assert [(piece.text, piece.mark) for piece in end] == [("One", ""), ("", "≠ <end>")]


@pytest.mark.parametrize(
    ("text", "tokens", "taken"),
    [
        ("Four.", ["<think>", "2+2", "</think>", "Four", "."], 18),
        ("Four. More", ["\n", "Four", "."], 1),
        ("Four", ["Fo", "\ufffd", "r"], None),
        ("", ["<tool_call>"], 11),
    ],
)
def test_what_the_tokens_have_before_the_text(text: str, tokens: list[str], taken: int | None) -> None:
    assert taken_before(text, tokens) == taken


def test_a_box_is_on_one_line() -> None:
    assert shown(boxed(Piece("↵\n\n"))) == [("↵", "divergence"), ("\n\n", "")]


@pytest.mark.parametrize(
    ("before", "cell", "is_mouse"),
    [
        (None, (2, "verdict"), True),
        (None, (0, "row"), False),
        ((0, "row"), (1, "row"), False),
        ((0, "row"), (0, "at"), False),
        ((0, "row"), (3, "verdict"), True),
        ((0, "row"), None, False),
    ],
)
def test_the_keyboard_passes_by_a_table_without_opening_a_pair(
    before: tuple[int, str] | None, cell: tuple[int, str] | None, is_mouse: bool
) -> None:
    assert is_click(before, cell) is is_mouse


@pytest.mark.parametrize("at", [0, 30_000, 150_000])
def test_a_long_answer_is_cut_around_its_evidence(at: int) -> None:
    text = "".join(chr(97 + index % 26) for index in range(200_000))
    made = plain(text, [Span(at, at + 50, "here")], None, "gap")
    texts = "".join(piece.text for piece in made.pieces if piece.kind != "missing")
    assert len(texts) == MAX_CHARACTERS
    assert made.left_out == 200_000 - MAX_CHARACTERS
    (evidence,) = (piece for piece in made.pieces if piece.kind == "evidence")
    assert evidence.text == text[at : at + 50]
    if at == 150_000:
        assert texts == text[:HEAD] + text[at - LEAD :][: MAX_CHARACTERS - HEAD]


def test_words_of_one_side_only_are_marked() -> None:
    left, right = word_diff("the sky is blue.", "the sea is blue!", "gap")
    assert shown(left) == [("the ", ""), ("sky", "removed"), (" is blue", ""), (".", "removed")]
    assert shown(right) == [("the ", ""), ("sea", "added"), (" is blue", ""), ("!", "added")]


def test_chinese_is_compared_by_character() -> None:
    left, right = word_diff("天空蓝色", "天空红色", "gap")
    assert shown(left) == [("天空", ""), ("蓝", "removed"), ("色", "")]
    assert shown(right) == [("天空", ""), ("红", "added"), ("色", "")]


def test_a_long_word_diff_says_its_cut() -> None:
    left, right = word_diff("a " * MAX_WORDS, "a", "gap")
    assert (left[-1].text, left[-1].kind) == ("\ngap", "missing")
    assert "missing" not in {piece.kind for piece in right}


def stored() -> tuple[dict[str, Values], Values, Values]:
    """Tokens by role, positions and forced, as `questions.pair.Beside` has them."""
    half, third, tenth = math.log(0.5), math.log(0.3), math.log(0.1)
    tokens: dict[str, Values] = {
        "candidate": {
            "token": ["The", " sea", "\n"],
            "logprob": [half, third, None],
            "ranked": [2, 2, 0],
            "top_token": [["The", "A"], [" sea", " sky"], []],
            "top_logprob": [[half, third], [third, tenth], []],
        },
        "reference": {
            "token": ["The", " sky"],
            "logprob": [half, half],
            "ranked": [2, 2],
            "top_token": [["The", "A"], [" sky", " sea"]],
            "top_logprob": [[half, third], [half, tenth]],
        },
    }
    positions: Values = {
        "index": [0, 1],
        "kl_lower_nats": [0.0, 0.5],
        "reference_entropy_lower_nats": [1.25, None],
        "candidate_entropy_lower_nats": [1.5, 2.5],
    }
    return tokens, positions, {"token": ["The", " sky"], "kl_lower_nats": [9.0, 9.0]}


def test_tokens_have_the_numbers_of_both_sides_up_to_the_parting() -> None:
    both = both_of(*stored(), 1)
    assert both.reference.kls == [0.0, 0.5]
    assert both.candidate.kls == [0.0, 0.5, None]
    assert both.reference.entropy(0) == 1.25
    assert both.candidate.entropy(1) == 2.5
    # 0.5 and 0.1 are listed: 0.4 is left, at most 0.1 a token, so at least four more of 0.1.
    expected = -(0.5 * math.log(0.5) + 5 * 0.1 * math.log(0.1))
    assert both.reference.entropy(1) == pytest.approx(expected)
    lines = note(both, "candidate", 1, SAY).split("\n")
    assert lines[0] == "≠ here the answers part"
    assert lines[1] == "token 1 “ sea”: 30.0 %"
    assert lines[2:4] == [
        "reference: “ sky” 50.0 %, “ sea” 10.0 %",
        "candidate: “ sea” 30.0 %, “ sky” 10.0 %",
    ]
    behind = note(both, "candidate", 2, SAY)
    assert "behind the parting" in behind
    assert "reference:" not in behind


def test_heat_marks_the_parting_and_the_end() -> None:
    both = both_of(*stored(), 1)
    pieces = heat(both, "candidate", "probability", SAY, ended="<end>")
    assert [(piece.text, piece.kind, piece.mark) for piece in pieces] == [
        ("The", "", ""),
        (" sea", "divergence", "≠ 1"),
        ("↵\n", "", ""),
        ("", "quiet", "<end>"),
    ]
    assert [piece.strength for piece in pieces] == [pytest.approx(0.5), pytest.approx(0.7), None, None]
    ended = heat(both_of(*stored(), 2), "reference", "kl", SAY, ended="")
    assert (ended[-1].kind, ended[-1].mark) == ("divergence", "≠ 2 <end>")
    assert strength("kl", both.reference, 1) == pytest.approx(0.5)
    assert strength("entropy", both.candidate, 1) == pytest.approx(2.5 / 3)


def test_alternatives_where_they_part() -> None:
    table = alternatives(both_of(*stored(), 1))
    assert list(table["token"]) == ["“ sky”", "“ sea”"]
    assert list(table["reference"]) == pytest.approx([0.5, 0.1])
    assert list(table["candidate"]) == pytest.approx([0.1, 0.3])
    assert alternatives(both_of(*stored(), None)).empty


def test_forced_numbers_fill_the_reference_behind_the_parting() -> None:
    tokens, _, forced = stored()
    both = both_of(tokens, None, forced, 0)
    assert both.reference.kls == [9.0, 9.0]
    assert both.candidate.kls == [None, None, None]


def test_no_tokens_at_all() -> None:
    both = both_of({}, None, None, 3)
    assert (both.reference.texts, both.candidate.texts) == ([], [])
    assert alternatives(both).empty
    assert entropy_lower([]) is None


def test_json_is_compared_by_path_and_held_against_the_schema() -> None:
    body = (
        '{"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":'
        '{"type":"object","properties":{"urgent":{"type":"boolean"}}}}}}'
    )
    schema = schema_of(body)
    assert schema is not None
    left = json_side('{"a": 1, "b": [], "urgent": true}', schema)
    right = json_side('{"a": 1.0, "b": {}, "urgent": "yes"}', schema)
    assert (left.state, left.errors) == ("valid", [])
    ((path, message),) = right.errors
    assert (path, "boolean" in message) == ("/urgent", True)
    rows = by_path(left, right).to_dict("records")
    assert [(row["path"], row["reference"], row["candidate"], row["differs"]) for row in rows] == [
        ("$.b", "[]", "{}", True),
        ("$.urgent", "true", '"yes"', True),
        ("$.a", "1", "1.0", False),
    ]


def test_broken_json_is_repaired_and_says_why() -> None:
    side = json_side('{"a": 1, "b": "x', None)
    assert side.state == "repaired"
    assert side.value == {"a": 1, "b": "x"}
    assert "string still open" in side.why
    assert json_side("The answer", None).state == "broken"
    assert json_side(" ", None).state == "empty"
    assert by_path(json_side("", None), json_side("", None)).empty
    assert (schema_of("[1]"), schema_of("no"), schema_of("{}")) == (None, None, None)


def test_tool_calls_are_compared_by_path() -> None:
    table = tool_calls_by_path(
        [("look_up", '{"city": "Rome"}')], [("look_up", '{"city": "Oslo"}'), ("x", "{")]
    )
    assert table[table["differs"]]["path"].tolist() == [
        "$.tool_calls[0].arguments.city",
        "$.tool_calls[1].name",
        "$.tool_calls[1].arguments",
    ]


@pytest.mark.parametrize("topic_id", ["0a-1", 'it\'s $(rm) "x" \\'])
def test_the_replay_command_survives_the_shell(topic_id: str) -> None:
    key = PairKey("night's", "q4", topic_id, 2, 30)
    command = replay_command(key, datetime(2026, 11, 30, 3, 54, 30, 193_000, tzinfo=UTC))
    written = topic_id.replace("\\", "\\\\").replace("'", "\\'")
    assert shlex.split(command) == [
        *("gnomon", "replay", "--config", "gnomon.toml", "--source", "night's"),
        *("--from", "2026-11-30T03:54:30Z", "--to", "2026-11-30T03:54:31Z"),
        *("--where", f"topic_id = '{written}' AND partition = 2 AND offset = 30"),
    ]
