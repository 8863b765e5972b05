"""SGLang's triples read at once are what they are one by one: whole, streamed, odd or spoiled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.alternative import Alternative
from ingest.tokens import NO_ID, NO_KEY, Token
from tests.ingest.both_ways import check, cut, is_scanned, read

Triple = list[Any]


def body(heads: list[Any], tops: Any, text: str = "some text", **more: Any) -> bytes:
    meta = {"finish_reason": {"type": "stop"}, "completion_tokens": len(heads), **more}
    meta["output_token_logprobs"] = heads
    if tops != "absent":
        meta["output_top_logprobs"] = tops
    return json.dumps({"text": text, "meta_info": meta}, ensure_ascii=False).encode("utf-8", "surrogatepass")


def regular(count: int) -> tuple[list[Triple], list[list[Triple]]]:
    tops: list[list[Triple]] = [
        [[-0.25 - n / 7, 3 * n, f" t{n}"], [-3.5 - n / 7, 3 * n + 1, "x"], [-9.125, 3 * n + 2, None]]
        for n in range(count)
    ]
    return [top[0] for top in tops], tops


def test_columns_by_hand() -> None:
    heads = [[-0.5, 7, "A"], [-4.0, 9, "b"], [-0.0, 3, None]]
    tops = [
        [[-0.5, 7, "A"], [-1.5, 8, "B"], [-2.5, 9, "b"]],
        [[-0.25, 1, "c"], [-1.75, 2, "d"], [-4.0, 9, "b"]],
        [[-0.0, 3, None], [-12.0, 4, "e"], [-13.0, 5, "f"]],
    ]
    seen = read([body(heads, tops)], 2, scans=True)
    assert is_scanned(seen)
    # In the second list the last one is there because it was sampled: two were asked for.
    columns = seen.tokens.columns
    assert columns.logprob.tolist() == [-0.5, -4.0, 0.0]
    assert columns.id.tolist() == [7, 9, 3]
    assert columns.start.tolist() == [0, 3, 6, 9]
    assert columns.ranked.tolist() == [3, 2, 3]
    assert columns.top_logprob.tolist() == [-0.5, -1.5, -2.5, -0.25, -1.75, -4.0, -0.0, -12.0, -13.0]
    assert columns.top_id.tolist() == [7, 8, 9, 1, 2, 9, 3, 4, 5]
    assert set(columns.key.tolist()) == set(columns.top_key.tolist()) == {NO_KEY}
    assert NO_ID not in columns.id
    assert seen.tokens.texts == ["A", "b", ""]
    b = (Alternative("c", -0.25, None, 1), Alternative("d", -1.75, None, 2), Alternative("b", -4.0, None, 9))
    assert seen.tokens[1] == Token("b", -4.0, None, 9, b, 2)
    assert (seen.finish_reason, seen.completion_tokens, seen.notes) == ("stop", 3, ())


@pytest.mark.parametrize("asked", [None, 0, 2, 3])
def test_regular_answers_are_read_at_once(asked: int | None) -> None:
    heads, tops = regular(12)
    assert check([body(heads, tops)], asked)
    assert check([body(heads, "absent")], 0) and check([body(heads, None)], None)
    assert check([body(heads, [])], None)


@pytest.mark.parametrize(
    ("head", "top"),
    [
        ([None, 5, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([-1.0, -1, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([-1.0, 2**31, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([-1.0, 2**70, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([-1.0, 5, "token_id:5"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([-1.0, 5, "\ud83d"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([-1.5, 5, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.0, 7, "c"]]),
        ([0.5, 5, "a"], [[-1.0, 6, "a"], [-2.0, 7, "b"], [-3.0, 8, "c"]]),
        ([-9999.0, 5, "a"], [[-1.0, 6, "a"], [-2.0, 7, "b"], [-3.0, 8, "c"]]),
        ([-1.0, 5, "a"], [[-1.0, 5, "a"], [-2.0, 5, "a"], [-3.0, 7, "c"]]),
        ([-1.0, 5, "a"], [[-2.0, 6, "b"], [-1.0, 5, "a"], [-3.0, 7, "c"]]),
        ([-1.0, 5, "a"], [[-1.0, 5, "a"], [-2.0, 6, "\ud83d"], [-3.0, 7, "c"]]),
        ([-1.0, 5, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [-3.4e38, 7, "c"]]),
        ([-1.0, 5, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"], [None, 7, "c"]]),
        ([-1.0, 5, "a"], [[-1.0, 5, "a"], [-2.0, 6, "b"]]),
        ([-1.0, 5, "a"], None),
        ([-1.0, 99, "stale"], [[-0.25 - 3 / 7, 9, " t3"], [-3.5 - 3 / 7, 10, "x"], [-9.125, 11, None]]),
        ("x", [[-1.0, 5, "a"]]),
    ],
)
def test_what_is_not_regular_is_read_one_by_one(head: Any, top: Any) -> None:
    heads, tops = regular(4)
    assert not check([body([*heads, head], [*tops, top])], 3)


def test_lists_of_another_number_and_vocabularies_own_alphabets_are_not_regular() -> None:
    heads, tops = regular(4)
    assert not check([body(heads, tops[:3])], 3)
    heads[1] = tops[1][0] = [heads[1][0], heads[1][1], "\u0120t1"]
    assert not check([body(heads, tops, " t0 t1 t2 t3")], 3)
    assert not check([body(*regular(2049))], 3)


def test_streams_are_read_the_same() -> None:
    heads, tops = regular(6)
    whole = [body(heads[:n], tops[:n], "abcdef"[:n]) for n in range(1, 7)]
    parts = [body(heads[n : n + 2], tops[n : n + 2], "abcdef"[n : n + 2]) for n in (0, 2, 4)]
    for events in (whole, parts):
        data = b"".join(b"data: " + event + b"\n\n" for event in events) + b"data: [DONE]\n\n"
        check([data], 3)
        check(cut(data, range(0, len(data), 11)), 3)
        assert [token.id for token in read([data], 3, scans=True).tokens] == [0, 3, 6, 9, 12, 15]


_NUMBERS = st.one_of(
    st.floats(-30, 0), st.sampled_from([0.0, -0.0, 5e-4, 0.5, -99.0, -99.5, -100.0, -100.5, -9999.0, -1])
)
_TEXTS = st.one_of(st.none(), st.sampled_from(["a", "\ufffd", "\u0120a", "<0x41>", "\ud83d", "token_id:3"]))
_ODD = st.sampled_from([None, True, 1.0, 2.5, "1", "x", -1, 2**31, 2**70, [], {}, [1], {"a": 1}])


@st.composite
def _answers(draw: st.DrawFn) -> bytes:
    is_odd = st.sampled_from([False] * 14 + [True])
    heads: list[Any] = []
    tops: list[Any] = []
    size = draw(st.integers(0, 4))
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 4)) if draw(is_odd) else size
        values = sorted(draw(st.lists(_NUMBERS, min_size=count, max_size=count)), reverse=True)
        ids = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count, unique=not draw(is_odd)))
        top: list[Any] = [[value, number, draw(_TEXTS)] for value, number in zip(values, ids, strict=True)]
        if draw(is_odd):
            top.reverse()
        if draw(is_odd) and tops and isinstance(tops[-1], list):
            top = tops[-1]
        top = [item for item in top if isinstance(item, list) and len(item) > 1]
        head: Any = list(draw(st.sampled_from(top))) if top and not draw(is_odd) else [-1.0, 11, "h"]
        for item in (head, *top):
            if draw(is_odd):
                item[draw(st.integers(0, len(item) - 1))] = draw(_ODD)
            if draw(is_odd):
                item[2:] = draw(st.sampled_from([[], ["a", "b"], [5]]))
        heads.append(draw(_ODD) if draw(is_odd) else head)
        tops.append(draw(_ODD) if draw(is_odd) else top)
    if draw(is_odd):
        tops = draw(st.sampled_from([None, [], {}, tops[:-1], "absent"]))
    more = {"prompt_tokens": draw(_ODD)} if draw(is_odd) else {}
    return body(heads, tops, draw(st.sampled_from(["a", "", "h"])), **more)


_ASKED = st.sampled_from([None, 0, 1, 2, 3, 4])


@settings(max_examples=100, deadline=None)
@given(_answers(), _ASKED)
def test_nearly_regular_answers_are_read_the_same(data: bytes, asked: int | None) -> None:
    check([data], asked)


_SPOILERS = st.sampled_from(
    [
        *(b"", b"null", b"NaN", b"-Infinity", b"-1e999", b"\\ud83d", b"\\u0041", b"\xff", b"\xed\xa0\x80"),
        *(
            b'"',
            b"\\",
            b"\x00",
            b"\n",
            b" ",
            b",",
            b"]",
            b"}",
            b"[",
            b"{",
            b"\x01",
            b"\xef\xbf\xbd",
            b"9" * 400,
        ),
        *(
            b'"output_top_logprobs":[],',
            b'"meta_info":{},',
            b'"finish_reason":null,',
            b"-0.12345678901234567",
        ),
    ]
)


@settings(max_examples=100, deadline=None)
@given(_answers(), _ASKED, st.data())
def test_spoiled_answers_are_read_the_same(data: bytes, asked: int | None, more: st.DataObject) -> None:
    spoiled = bytearray(data)
    for _ in range(more.draw(st.integers(1, 2))):
        start = more.draw(st.integers(0, len(spoiled)))
        spoiled[start : start + more.draw(st.integers(0, 4))] = more.draw(_SPOILERS)
    check([bytes(spoiled)], asked)
