from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ingest.answer import read_answer
from ingest.observation import Observation


def entry(token: str, logprob: Any, *top: tuple[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"token": text, "logprob": number, "bytes": list(text.encode())} for text, number in top]
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": listed, **more}


def read(text: str, *entries: dict[str, Any], asked: int | None = None) -> Observation:
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": entries}}
    return read_answer(json.dumps({"choices": [choice]}).encode(), asked=asked)


def stream(*chunks: tuple[str, list[dict[str, Any]]]) -> Observation:
    lines = [
        "data: " + json.dumps({"choices": [{"delta": {"content": text}, "logprobs": {"content": entries}}]})
        for text, entries in chunks
    ]
    return read_answer("\n\n".join([*lines, "data: [DONE]", ""]).encode())


@pytest.mark.parametrize("floor", [-100.0, -1000, -9999.0, -1e4, -3.4028234663852886e38, None, "-Infinity"])
def test_every_sentinel_is_impossible(floor: Any) -> None:
    seen = read("a", entry("a", -0.001, ("a", -0.001), ("b", floor), ("c", floor)))
    assert [item.logprob for item in seen.tokens[0].top] == [-0.001, -math.inf, -math.inf]


def test_a_measured_logprob_far_down_is_kept() -> None:
    seen = read("a", entry("a", -0.001, ("a", -0.001), ("b", -101.37), ("c", -240.5)))
    assert [item.logprob for item in seen.tokens[0].top] == [-0.001, -101.37, -240.5]
    assert seen.notes == ()


def test_a_token_listed_twice() -> None:
    same = read("a", entry("a", -0.5, ("a", -0.5), ("a", -0.5), ("b", -1.5)))
    assert [item.text for item in same.tokens[0].top] == ["a", "b"] and same.tokens[0].ranked == 2
    assert same.notes == ("alternatives_repeated",)
    other = read("a", entry("a", -0.5, ("a", -0.5), ("a", -2.5), ("b", -1.5)))
    assert (other.tokens[0].top, other.tokens[0].logprob) == ((), -0.5)
    assert other.notes == ("alternatives_conflict",)


def test_the_list_knows_what_the_token_lacks() -> None:
    seen = read("a", entry("a", None, ("b", -0.25), ("a", -1.75)))
    assert (seen.tokens[0].logprob, seen.notes) == (-1.75, ("logprob_from_list",))
    differs = read("a", entry("a", -0.9, ("a", -0.2), ("b", -2.0)))
    assert (differs.tokens[0].logprob, differs.notes) == (None, ("logprob_differs",))
    assert len(differs.tokens[0].top) == 2


def test_a_stale_list_is_emptied() -> None:
    top = (("Good", -0.25), ("Bad", -1.75))
    seen = read("Good day", entry("Good", -0.25, *top), entry(" day", -0.5, *top))
    assert [len(token.top) for token in seen.tokens] == [2, 0]
    assert (seen.tokens[1].logprob, seen.notes) == (-0.5, ("alternatives_stale",))


def test_a_repeated_token_with_the_same_list_is_not_stale() -> None:
    top = (("ha", -0.25), ("ho", -1.75))
    seen = read("haha", entry("ha", -0.25, *top), entry("ha", -0.25, *top))
    assert [len(token.top) for token in seen.tokens] == [2, 2] and seen.notes == ()


def test_logprobs_that_are_all_zero_say_nothing() -> None:
    seen = read("a b c d e", *[entry(text, 0.0, (text, 0.0)) for text in ("a", " b", " c", " d", " e")])
    assert all(token.logprob is None and token.top == () for token in seen.tokens)
    assert seen.notes == ("logprobs_all_zero",)
    few = read("a b", *[entry(text, 0.0, (text, 0.0)) for text in ("a", " b")])
    assert [token.logprob for token in few.tokens] == [0.0, 0.0]


def test_lists_that_top_p_has_cut() -> None:
    # 0.6 + 0.4 and 0.5 + 0.3 + 0.2: the mass is whole, though the vocabulary is not.
    cut = entry("a", math.log(0.6), ("a", math.log(0.6)), ("b", math.log(0.4)))
    full = entry(" c", math.log(0.5), (" c", math.log(0.5)), ("d", math.log(0.3)), ("e", math.log(0.2)))
    seen = read("a c", cut, full, asked=3)
    assert seen.notes == ("logprobs_filtered",)
    assert all(token.logprob is None and token.top == () for token in seen.tokens)


def test_one_alternative_at_zero_where_more_were_asked() -> None:
    seen = read("a b", *[entry(text, 0.0, (text, 0.0)) for text in ("a", " b")], asked=5)
    assert seen.notes == ("logprobs_filtered",)


def test_a_short_list_of_a_sure_model_is_not_cut() -> None:
    sure = entry("a", -1e-6, ("a", -1e-6), ("b", -14.0))
    seen = read("a", sure, asked=5)
    assert (seen.tokens[0].logprob, seen.notes) == (-1e-6, ("alternatives_under_asked",))


def test_lists_longer_than_asked() -> None:
    seen = read("a", entry("a", -0.5, ("a", -0.5), ("b", -1.5), ("c", -2.5), ("d", -3.5)), asked=2)
    assert "alternatives_over_asked" in seen.notes


def test_chunks_that_send_everything_again() -> None:
    one = entry("Good", -0.25, ("Good", -0.25), ("Bad", -1.75))
    two = entry(" day", -0.5, (" day", -0.5), (" night", -1.5))
    three = entry("!", -0.125, ("!", -0.125), (".", -2.5))
    seen = stream(("Good", [one]), (" day", [one, two]), ("!", [one, two, three]), ("", [one, two, three]))
    assert [token.text for token in seen.tokens] == ["Good", " day", "!"]
    assert (seen.text, seen.notes) == ("Good day!", ("logprobs_resent",))


def test_equal_chunks_are_data_not_sent_again() -> None:
    ha = entry("ha", -0.25, ("ha", -0.25), ("ho", -1.75))
    seen = stream(("ha", [ha]), ("ha", [ha]), ("haha", [ha, ha]))
    assert ([token.text for token in seen.tokens], seen.notes) == (["ha"] * 4, ())


def test_tokens_in_the_alphabet_of_their_vocabulary() -> None:
    # Ġ is a space, Ċ a line feed, âĢ¦ the three bytes of an ellipsis (GPT-2's bytes_to_unicode).
    gpt2 = [("Hi", "Hey"), ("Ġyou", "Ġthere"), ("âĢ¦", "!"), ("Ċ", ".")]
    seen = read("Hi you…\n", *[entry(a, -0.5, (a, -0.5), (b, -1.5), bytes=None) for a, b in gpt2])
    assert [token.text for token in seen.tokens] == ["Hi", " you", "…", "\n"]
    assert [token.raw for token in seen.tokens] == [b"Hi", b" you", "…".encode(), b"\n"]
    assert seen.tokens[1].top[1].raw == b" there"
    assert seen.notes == ("tokens_byte_level",)
    pieces = [("▁Hi", "▁Hey"), ("▁you", "▁the"), ("<0x0A>", "!")]
    seen = read("Hi you\n", *[entry(a, -0.5, (a, -0.5), (b, -1.5), bytes=None) for a, b in pieces])
    assert [token.raw for token in seen.tokens] == [b" Hi", b" you", b"\n"]


def test_a_text_that_holds_such_characters_is_left_alone() -> None:
    seen = read("Ġ is a mark", entry("Ġ", -0.5), entry(" is", -0.5), entry(" a mark", -0.5))
    assert [token.text for token in seen.tokens] == ["Ġ", " is", " a mark"] and seen.notes == ()


def test_missing_bytes_are_known_where_the_tokens_add_up() -> None:
    entries = [
        entry("Good", -0.5, ("Good", -0.5), bytes=None),
        entry(" day", -0.5, (" day", -0.5), bytes=None),
    ]
    seen = read("Good day", *entries)
    assert [token.raw for token in seen.tokens] == [b"Good", b" day"] and seen.notes == ("bytes_from_text",)
    assert [token.raw for token in read("Another text", *entries).tokens] == [None, None]


def test_bytes_of_the_replacement_character_are_no_identity() -> None:
    # One emoji of several tokens, each shown as U+FFFD: by their bytes they would all be the same token.
    seen = read("😊", *[entry("\ufffd", -0.5, ("\ufffd", -0.5)) for _ in range(4)])
    assert [token.raw for token in seen.tokens] == [None] * 4
    assert [token.top[0].raw for token in seen.tokens] == [None] * 4
    assert "bytes_undecodable" in seen.notes


def test_legacy_alternatives_with_the_same_name_are_all_kept() -> None:
    body = (
        b'{"choices": [{"text": "ok", "logprobs": {"tokens": ["ok"], "token_logprobs": [-0.3],'
        b' "top_logprobs": [{"": -1, "": -2, "": -3}]}}]}'
    )
    assert [item.logprob for item in read_answer(body).tokens[0].top] == [-1.0, -2.0, -3.0]


def test_a_stale_list_that_holds_the_token_by_chance_costs_only_itself() -> None:
    top = (("Good", -0.25), (" day", -1.75))
    seen = read("Good day", entry("Good", -0.25, *top), entry(" day", -0.5, *top))
    assert [(token.logprob, len(token.top)) for token in seen.tokens] == [(-0.25, 2), (-0.5, 0)]
    assert seen.notes == ("alternatives_stale",)
    # Beside one that is not stale, where nobody knows which of the two numbers is right.
    other = entry("!", -0.5, ("?", -0.25), ("!", -2.5))
    seen = read("Good day!", entry("Good", -0.25, *top), entry(" day", -0.5, *top), other)
    assert [token.logprob for token in seen.tokens] == [-0.25, -0.5, None]
    assert set(seen.notes) == {"alternatives_stale", "logprob_differs"}
