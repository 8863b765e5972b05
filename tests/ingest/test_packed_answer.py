"""Packed answers come back exactly: every shape that the reader's own tests know."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ingest.alternative import Alternative
from ingest.answer import read_answer
from ingest.observation import Failure, FailureKind, Observation, Timings, ToolCall
from ingest.packed_answer import FORMAT, pack, unpack
from ingest.reference_answers import KnownAnswer, asked_hash
from ingest.saved import Case, read_saved
from ingest.tokens import Token, Tokens
from tests.ingest.both_ways import same_columns
from tests.ingest.test_scanned import BODIES
from tests.ingest.test_triples import body, regular

DATA = Path(__file__).parent.parent / "data"


def back(observation: Observation, vocabulary_size: int | None = None) -> KnownAnswer:
    got = unpack(pack(KnownAnswer(observation, vocabulary_size)))
    assert got is not None
    return got


def is_same(one: Observation, other: Observation) -> bool:
    return one == other and same_columns(one.tokens.columns, other.tokens.columns)


def test_every_answer_of_the_reader_comes_back_with_the_same_objects_and_columns() -> None:
    for data in [*BODIES, body(*regular(30))]:
        read = read_answer(data, asked=3)
        assert is_same(back(read).observation, read_answer(data, asked=3))


@pytest.mark.parametrize("file", sorted(DATA.glob("*cases.jsonl")), ids=lambda file: file.stem)
def test_every_case_from_the_wire_comes_back(file: Path) -> None:
    cases = msgspec.json.Decoder(Case)
    lines = file.read_bytes().splitlines()
    assert lines
    for line in lines:
        case = cases.decode(line)
        read = read_saved(case.candidate, case.request or {})
        assert is_same(back(read).observation, read), case.id


def test_what_is_not_a_token_comes_back_too() -> None:
    seen = Observation(
        text="naïve \ufffd",
        reasoning="hm",
        tool_calls=(ToolCall("f", '{"a": 1}', "call-1"), ToolCall("g", "", None)),
        finish_reason="tool_calls",
        prompt_tokens=7,
        completion_tokens=2**40,
        timings=Timings(total_ms=812.123456789, first_token_ms=None),
        failure=Failure(FailureKind.CUT_STREAM, "the connection was reset", 200),
        reported_model="m",
        notes=("invalid_utf8",),
        has_done=False,
    )
    assert back(seen, 151_936) == KnownAnswer(seen, 151_936)


def test_numbers_that_float32_would_round_stay_as_they_are() -> None:
    third = -1.0 / 3.0
    assert float(np.float32(third)) != third
    top = (Alternative("a", third, b"a", 1), Alternative("b", -math.inf, None, 2))
    token = Token("a", third, b"a", 1, top, 2)
    nothing = Token("b", None, None, None)
    assert list(back(Observation(tokens=Tokens([token, nothing]))).observation.tokens) == [token, nothing]


def test_one_token_text_may_have_several_ids_and_bytes() -> None:
    top = tuple(
        Alternative("\ufffd", -1.0 - place, raw, number)
        for place, (raw, number) in enumerate([(b"\xe2", 5), (b"\x96", 6), (None, 7), (b"\xe2", 8), (b"", 9)])
    )
    seen = Observation(tokens=Tokens([Token("\ufffd", -1.0, b"\xe2", 5, top, 5)] * 3))
    assert is_same(back(seen).observation, seen)


def test_another_format_and_damage_are_nothing_known() -> None:
    data = pack(KnownAnswer(read_answer(BODIES[0], asked=3), None))
    parts = msgspec.msgpack.decode(data)
    assert unpack(msgspec.msgpack.encode([FORMAT + 1, *parts[1:]])) is None
    assert unpack(msgspec.msgpack.encode([*parts[:-1], parts[-1][:-1]])) is None
    assert unpack(data[:-1]) is None
    assert unpack(b"") is None


def test_an_entry_of_a_list_takes_eight_bytes_once_its_token_is_known() -> None:
    top = tuple(Alternative(f" t{place}", -float(place), f" t{place}".encode(), place) for place in range(20))
    short, long = (
        len(
            pack(
                KnownAnswer(
                    Observation(tokens=Tokens([Token(" t0", -0.0, b" t0", 0, top, 20)] * count)), None
                )
            )
        )
        for count in (100, 200)
    )
    # 20 places and 20 logprobs of 4 bytes, and less than 20 bytes for the token itself.
    assert 100 * 160 < long - short < 100 * 180


def test_what_decides_the_answer_decides_the_hash() -> None:
    asked = {"model": "m", "messages": [], "max_tokens": 3}
    known = asked_hash("http://a:1", "/v1/chat/completions", "reference", asked)
    assert len(known) == 32
    same = asked | {"cache_salt": "x", "return_token_ids": True}
    assert asked_hash("http://a:1/", "/v1/chat/completions", "reference", same) == known
    others = [
        asked_hash("http://b:1", "/v1/chat/completions", "reference", asked),
        asked_hash("http://a:1", "/v1/completions", "reference", asked),
        asked_hash("http://a:1", "/v1/chat/completions", "reference_again", asked),
        asked_hash("http://a:1", "/v1/chat/completions", "reference", asked | {"max_tokens": 4}),
        asked_hash("http://a:1", "/v1/chat/completions", "reference", asked | {"cache_prompt": False}),
    ]
    assert len({known, *others}) == 6
