"""What the scanner lifts is what the generic reader reads: every answer, whole, cut anywhere, or spoiled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import scan
from tests.ingest.both_ways import check, cut, is_scanned, read

_TESTS = Path(__file__).parents[1]
_FILES = (
    _TESTS / "data" / "wire_cases.jsonl",
    _TESTS / "data" / "more_cases.jsonl",
    _TESTS / "ingest" / "data" / "openai_answers.jsonl",
    _TESTS / "ingest" / "data" / "dialects.jsonl",
)


def _bodies() -> Iterator[bytes]:
    for file in _FILES:
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            for answer in (case, case.get("candidate"), case.get("reference")):
                if answer and "chunks_hex" in answer:
                    yield bytes.fromhex("".join(answer["chunks_hex"]))
                elif answer and "body" in answer:
                    yield answer["body"].encode("utf-8", "surrogatepass")


BODIES = list(_bodies())


def entry(
    text: str, logprob: float, number: int | None, others: list[tuple[str, float, int]]
) -> dict[str, Any]:
    def one(text: str, logprob: float, number: int | None) -> dict[str, Any]:
        made: dict[str, Any] = {"token": text, "logprob": logprob, "bytes": list(text.encode())}
        return made if number is None else {"id": number, **made}

    listed = [one(text, logprob, number)]
    listed += [one(name, value, None if number is None else other) for name, value, other in others]
    return {**listed[0], "top_logprobs": listed}


def regular(texts: list[str], *, has_ids: bool) -> list[dict[str, Any]]:
    return [
        entry(
            text,
            -0.25 - n % 20 / 7,
            3 * n if has_ids else None,
            [(" x", -3.5 - n % 20 / 7, 3 * n + 1), (" y", -9.125, 3 * n + 2)],
        )
        for n, text in enumerate(texts)
    ]


def chat(entries: list[dict[str, Any]], text: str) -> Any:
    choice = {
        "index": 0,
        "message": {"content": text},
        "logprobs": {"content": entries},
        "finish_reason": "stop",
    }
    return {"object": "chat.completion", "model": "m", "choices": [choice]}


def event(entries: list[dict[str, Any]], text: str) -> Any:
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": entries}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


def native(entries: list[dict[str, Any]], text: str) -> Any:
    return {"content": text, "stop": True, "stop_type": "eos", "completion_probabilities": entries}


Dumps = Callable[[Any], str]
_WAYS_TO_WRITE: list[Dumps] = [
    json.dumps,
    lambda value: json.dumps(value, separators=(",", ":")),
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    lambda value: json.dumps(value, indent=1, sort_keys=True),
]


def streamed(entries: list[dict[str, Any]], size: int, dumps: Dumps) -> bytes:
    lines = []
    for start in range(0, len(entries), size):
        part = entries[start : start + size]
        text = "".join(item["token"] for item in part)
        lines.append(dumps(event(part, text)).replace("\n", ""))
    lines += ['{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}', "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


TEXTS = ["The", " caf\u00e9", "\n", ' "q"', "\u4f60\u597d", "\U0001f389", " a<b", "\\", "", " end"]


def test_the_library_is_there_and_of_this_source() -> None:
    """Without it every test here would compare the generic reader with itself."""
    assert scan.LIBRARY is not None, "ingest/scan.c is not compiled, or changed since: pip install -e ."


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("dumps", _WAYS_TO_WRITE)
def test_regular_answers_are_lifted(dumps: Dumps, has_ids: bool) -> None:
    entries = regular(TEXTS, has_ids=has_ids)
    for make in (chat, native):
        assert check([dumps(make(entries, "".join(TEXTS))).encode()], 3)
    for size in (1, 3):
        assert check([streamed(entries, size, dumps)], 3)


def test_events_of_one_frame_are_taken_in_a_row() -> None:
    """Text, tokens and the number of events are those of a reader that takes them one by one."""
    entries = regular(TEXTS * 300, has_ids=True)
    body = streamed(entries, 1, _WAYS_TO_WRITE[1])
    assert check([body], 3)
    assert check(cut(body, range(0, len(body), 4096)), 3)
    seen = read([body], 3, scans=True)
    assert is_scanned(seen) and seen.text == "".join(TEXTS * 300) and len(seen.tokens) == 2048
    assert seen.notes == ("logprobs_truncated",)


@pytest.mark.parametrize("asked", [None, 0, 2, 20])
def test_every_answer_on_record_is_read_the_same(asked: int | None) -> None:
    assert len(BODIES) > 300
    for body in BODIES:
        check([body], asked)
        check(cut(body, range(0, len(body), 7)), asked)


_NAMES = st.one_of(
    st.sampled_from(
        ["a", " b", "\ufffd", "\ufffd\ufffd", "", "<0x41>", "\u0120x", "token_id:5", "\u00e9", "\x00", "<"]
    ),
    st.text(max_size=3),
)
_NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, -0.5, -99.0, -100.0, -9999.0, 0.0005, 0.5, -1e-9, -1.5e-320]),
    st.floats(-30, 0),
)
_BYTE_LISTS = st.one_of(
    st.none(),
    st.just([239, 191, 189]),
    st.lists(st.integers(0, 255), max_size=4),
    st.sampled_from([[256], [-1], [1.0], "x"]),
)


@st.composite
def _odd_entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Entries that are nearly regular: each of their oddities is one that servers have shown."""
    has_ids, has_bytes = draw(st.booleans()), draw(st.booleans())
    is_odd = st.sampled_from([False] * 9 + [True])
    result: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        count = draw(st.integers(0, 5))
        values = sorted(draw(st.lists(_NUMBERS, min_size=count, max_size=count)), reverse=True)
        listed = []
        for place, value in enumerate(values):
            name = draw(_NAMES)
            item: dict[str, Any] = {"token": name, "logprob": value}
            if has_ids and not draw(is_odd):
                item["id"] = draw(st.sampled_from([place, place + 10, 7]))
            if has_bytes:
                item["bytes"] = list(name.encode("utf-8", "replace"))
            if draw(is_odd):
                item["bytes"] = draw(_BYTE_LISTS)
            if draw(is_odd):
                item[draw(st.sampled_from(["id", "logprob", "token", "x", "top_logprobs"]))] = draw(
                    st.sampled_from([None, -1, 2**31, 1.0, "1", [], True])
                )
            listed.append(item)
        if draw(is_odd):
            listed.reverse()
        head = (
            dict(draw(st.sampled_from(listed)))
            if listed and not draw(is_odd)
            else {"token": "h", "logprob": -1.0}
        )
        if draw(is_odd):
            head["logprob"] = draw(st.one_of(st.none(), _NUMBERS))
        if draw(is_odd) and result:
            listed = result[-1].get("top_logprobs") or []
        keys: list[tuple[str, Any]] = [*head.items(), ("top_logprobs", listed)]
        if draw(is_odd):
            keys = draw(st.permutations(keys))
        result.append(dict(keys))
    return result


@st.composite
def _answers(draw: st.DrawFn) -> bytes:
    is_odd = draw(st.booleans())
    entries = draw(_odd_entries()) if is_odd else regular(TEXTS, has_ids=draw(st.booleans()))
    dumps = draw(st.sampled_from(_WAYS_TO_WRITE))
    texts = [item["token"] if isinstance(item["token"], str) else "" for item in entries]
    text = "".join(texts) if draw(st.booleans()) else "another text"
    make = draw(st.sampled_from([chat, native, None]))
    if make is not None:
        whole = make(entries, text)
        if make is chat and draw(st.booleans()):
            whole["choices"][0]["token_ids"] = list(range(50, 50 + len(entries)))
        return dumps(whole).encode("utf-8", "surrogatepass")
    for item in entries:
        item["token"] = item["token"] if isinstance(item["token"], str) else ""
    return streamed(entries, draw(st.integers(1, 3)), dumps)


_ASKED = st.sampled_from([None, 0, 1, 3, 4, 5])


@settings(max_examples=150, deadline=None)
@given(_answers(), _ASKED, st.data())
def test_nearly_regular_answers_are_read_the_same(
    body: bytes, asked: int | None, data: st.DataObject
) -> None:
    check([body], asked)
    check(cut(body, data.draw(st.lists(st.integers(0, len(body)), max_size=6))), asked)


_SPOILERS = st.sampled_from(
    [
        *(
            b"",
            b"null",
            b"NaN",
            b"-1e999",
            b"-0",
            b"-",
            b".",
            b"1.",
            b"01",
            b"\\ud83d",
            b"\\u0041",
            b"\xff",
            b"\xed\xa0\x80",
        ),
        *(
            b'"',
            b"\\",
            b"\\x",
            b"\x00",
            b"\n",
            b" ",
            b",",
            b"]",
            b"}",
            b"[",
            b"{",
            b":",
            b"\xef\xbf\xbd",
            b"-9999.0",
            b"256",
        ),
        *(
            b'"token":"z",',
            b'"id":null,',
            b'"logprobs":{"content":[]},',
            b'"x":1,',
            b"token_id:7",
            b"\\ufffd",
            b"\xf4\x90",
        ),
        *(b"data: ", b"\n\n", b"[DONE]", b"9" * 400, b"-0.1234567890123456789", b"4.9e-324", b"-1e-400"),
    ]
)


@settings(max_examples=250, deadline=None)
@given(_answers(), _ASKED, st.data())
def test_spoiled_answers_are_read_the_same(body: bytes, asked: int | None, data: st.DataObject) -> None:
    spoiled = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(spoiled)))
        if data.draw(st.booleans()) and start < len(spoiled):
            spoiled[start] = data.draw(st.integers(0, 255))
        else:
            spoiled[start : start + data.draw(st.integers(0, 6))] = data.draw(_SPOILERS)
    cuts = data.draw(st.lists(st.integers(0, len(spoiled)), max_size=4))
    check([bytes(spoiled)], asked)
    check(cut(bytes(spoiled), cuts), asked)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(BODIES), _ASKED, st.data())
def test_spoiled_answers_on_record_are_read_the_same(
    body: bytes, asked: int | None, data: st.DataObject
) -> None:
    spoiled = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(spoiled)))
        spoiled[start : start + data.draw(st.integers(0, 20))] = data.draw(_SPOILERS)
    check([bytes(spoiled)], asked)
