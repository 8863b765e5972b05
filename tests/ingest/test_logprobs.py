from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from ingest.alternative import Alternative
from ingest.logprobs import read_entry, read_tokens
from ingest.tokens import Token
from ingest.wire import Logprobs


def entry(token: Any, logprob: Any, top: list[Any] | None = None, **more: Any) -> bytes:
    return json.dumps({"token": token, "logprob": logprob, "top_logprobs": top, **more}).encode()


def listed(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"token": text, "logprob": logprob, "bytes": list(text.encode())} for text, logprob in pairs]


def read(data: bytes, asked: int | None = 3) -> tuple[Token, list[str]]:
    notes: dict[str, None] = {}
    return read_entry(data, asked=asked, notes=notes), list(notes)


@pytest.mark.parametrize("value", [None, -9999.0, -10000, float("-inf"), -3.4028234663852886e38, "-inf"])
def test_impossible_alternatives(value: Any) -> None:
    token, notes = read(entry("a", -0.5, listed(("a", -0.5), ("b", value))))
    assert token.top == (Alternative("a", -0.5, b"a"), Alternative("b", -math.inf, b"b"))
    assert token.ranked == 2 and notes == []


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (None, "logprob_null"),
        (float("nan"), "logprob_nan"),
        (-9999.0, "logprob_impossible"),
        (float("-inf"), "logprob_impossible"),
        (0.83, "logprob_positive"),
        (float("inf"), "logprob_nan"),
    ],
)
def test_chosen_logprob_that_cannot_be_trusted(value: Any, note: str) -> None:
    token, notes = read(entry("a", value, listed(("b", -0.1))))
    assert token.logprob is None
    assert notes == [note]
    assert token.top == (Alternative("b", -0.1, b"b"),)


def test_rounding_above_zero_is_zero() -> None:
    token, notes = read(entry("a", 1e-6, listed(("a", 1e-6))))
    assert (token.logprob, token.top[0].logprob, notes) == (0.0, 0.0, [])


@pytest.mark.parametrize(
    ("value", "note"), [(float("nan"), "alternatives_nan"), (0.9, "alternatives_positive")]
)
def test_list_that_cannot_be_trusted_is_dropped(value: float, note: str) -> None:
    token, notes = read(entry("a", -0.5, listed(("a", -0.5), ("b", value))))
    assert (token.top, token.ranked, token.logprob, notes) == ((), 0, -0.5, [note])


def test_ranked_leaves_out_an_appended_sampled_token() -> None:
    token, _ = read(entry("z", -4.0, listed(("a", -0.5), ("b", -1.5), ("z", -4.0))), asked=2)
    assert [item.text for item in token.top] == ["a", "b", "z"] and token.ranked == 2


def test_ranked_where_the_sampled_token_comes_first() -> None:
    # vLLM: the sampled token, then the most likely ones.
    token, _ = read(entry("z", -4.0, listed(("z", -4.0), ("a", -0.5), ("b", -1.5))), asked=3)
    assert [item.text for item in token.top] == ["a", "b", "z"] and token.ranked == 2
    token, _ = read(entry("b", -1.5, listed(("b", -1.5), ("a", -0.5), ("c", -2.0))), asked=3)
    assert [item.text for item in token.top] == ["a", "b", "c"] and token.ranked == 3


def test_all_ranked_where_the_list_is_as_long_as_asked() -> None:
    token, _ = read(entry("b", -1.5, listed(("a", -0.5), ("b", -1.5))), asked=2)
    assert token.ranked == 2


def test_merged_character_of_llama_cpp_is_not_taken_for_its_last_token() -> None:
    top = [{"id": 227, "token": "\ufffd", "bytes": [137], "logprob": -0.02}]
    token, notes = read(entry("🎉", -0.02, top, id=227, bytes=list("🎉".encode())))
    assert token == Token("🎉", None, "🎉".encode())
    assert notes == ["tokens_merged"]


@pytest.mark.parametrize("is_odd", [False, True])
def test_a_token_named_by_its_id_has_the_text_of_its_bytes(is_odd: bool) -> None:
    """vLLM's `return_tokens_as_token_ids`; an odd field sends the entry to the lenient reader."""
    top = [
        {"token": f"token_id:{number}", "logprob": logprob, "bytes": list(f"token_id:{number}".encode())}
        for number, logprob in ((42, -0.5), (7, -1.5))
    ]
    odd = {"id": "x"} if is_odd else {}
    token, notes = read(entry("token_id:42", -0.5, top, bytes=list(" caf\u00e9".encode()), **odd))
    listed = (Alternative("token_id:42", -0.5, None, 42), Alternative("token_id:7", -1.5, None, 7))
    assert token == Token(" caf\u00e9", -0.5, " caf\u00e9".encode(), 42, listed, 2)
    assert notes == ["tokens_as_ids"]
    # A token without numbers: its bytes are those of its name.
    name, _ = read(entry("token_id:42", -9999.0, [], bytes=list(b"token_id:42"), **odd))
    assert name == Token("token_id:42", None, None, 42)


def test_odd_fields_cost_themselves_only() -> None:
    token, notes = read(entry(7, -0.5, [{"token": "a", "logprob": True, "bytes": [300]}, 5], bytes="x"))
    assert token == Token("", -0.5, None, None, (Alternative("a", -math.inf),), 1)
    assert notes == ["bytes_invalid"]
    assert read(b'"nothing"')[1] == ["odd_logprobs", "logprob_null"]


def test_legacy_shape() -> None:
    notes: dict[str, None] = {}
    tokens, given = read_tokens(
        Logprobs(
            tokens=[" base", "token_id:42"],
            token_logprobs=[-1.6, None],
            top_logprobs=[msgspec.Raw(b'{" area": -0.4, " base": -1.6}'), msgspec.Raw(b"null")],
        ),
        asked=2,
        room=10,
        notes=notes,
    )
    assert given == 2
    assert tokens[0] == Token(
        " base", -1.6, top=(Alternative(" area", -0.4), Alternative(" base", -1.6)), ranked=2
    )
    assert (tokens[1].id, tokens[1].logprob, tokens[1].top) == (42, None, ())
    assert list(notes) == ["tokens_as_ids", "logprob_null"]


def test_legacy_lists_of_different_length() -> None:
    notes: dict[str, None] = {}
    tokens, _ = read_tokens(Logprobs(tokens=["a", "b"], token_logprobs=[-1.0]), asked=0, room=9, notes=notes)
    assert [token.logprob for token in tokens] == [-1.0, None]
    assert "logprobs_uneven" in notes


def test_room_is_kept() -> None:
    raw = Logprobs(tokens=["a"] * 5, token_logprobs=[-1.0] * 5)
    tokens, given = read_tokens(raw, asked=0, room=2, notes={})
    assert (len(tokens), given) == (2, 5)
