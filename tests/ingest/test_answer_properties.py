"""Cutting a real stream anywhere changes nothing; spoiling it raises nothing."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.demo.llama_server import LlamaServer
from ingest.answer import StreamReader, read_answer
from ingest.notes import NOTES
from ingest.observation import Observation

SAMPLES = [
    json.loads(line)["body"].encode()
    for line in (Path(__file__).parent / "data" / "dialects.jsonl").read_text("utf-8").splitlines()
]
"""Answers of every dialect, whole and streamed."""

LABELS = ["text/event-stream", "application/json", "application/x-ndjson", ""]


@pytest.fixture(scope="session")
def recorded(reference_server: LlamaServer) -> bytes:
    """A real stream with characters of several tokens, logprobs and usage."""
    body = {
        "messages": [{"role": "user", "content": "Repeat: 🎉 é 你好 <ok>"}],
        "max_tokens": 12,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "logprobs": True,
        "top_logprobs": 3,
    }
    request = urllib.request.Request(
        f"{reference_server.url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        data: bytes = response.read()
    return data


def read_in_pieces(data: bytes, cuts: list[int]) -> Observation:
    reader = StreamReader(asked=3)
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        reader.feed(data[start:end])
    return reader.finish()


@given(st.data())
def test_cuts_change_nothing(recorded: bytes, data: st.DataObject) -> None:
    whole = read_answer(recorded, content_type="text/event-stream", asked=3)
    assert whole.failure is None and whole.has_done and whole.completion_tokens == 12
    cuts = sorted(data.draw(st.sets(st.integers(0, len(recorded)), max_size=200)))
    assert read_in_pieces(recorded, cuts) == whole
    crlf = recorded.replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(crlf)), max_size=200)))
    assert read_in_pieces(crlf, cuts) == whole


def test_byte_by_byte(recorded: bytes) -> None:
    whole = read_answer(recorded, content_type="text/event-stream", asked=3)
    assert read_in_pieces(recorded, list(range(1, len(recorded)))) == whole


SPOILERS = st.sampled_from(
    [
        b"",
        b"null",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"9" * 5000,
        b'"\\ud83d"',
        b"\xff\xfe",
        b"{",
        b"[" * 3000,
        b'{"a":' * 3000,
        b"true",
        b"\r\n\r\n",
        b"data:",
        b"\x00",
        b'"x"',
        b'{"choices":',
    ]
)


@given(st.data())
def test_spoiled_streams_are_observations(recorded: bytes, data: st.DataObject) -> None:
    spoiled = bytearray(recorded)
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(spoiled)))
        spoiled[start : start + data.draw(st.integers(0, 40))] = data.draw(SPOILERS)
    for content_type in ("text/event-stream", "application/json"):
        seen = read_answer(bytes(spoiled), content_type=content_type, asked=3)
        check(seen)


def check(seen: Observation) -> None:
    """Everything that is kept can be written as UTF-8, and no number is above its range."""
    calls = [text for call in seen.tool_calls for text in (call.name, call.arguments, call.id or "")]
    for text in (seen.text, seen.reasoning, *calls, *(token.text for token in seen.tokens)):
        text.encode()
    assert set(seen.notes) <= set(NOTES)
    for token in seen.tokens:
        assert token.logprob is None or -9999 < token.logprob <= 0
        assert token.ranked <= len(token.top)
        for item in token.top:
            item.text.encode()
            assert item.logprob <= 0


@given(st.data())
def test_cuts_change_nothing_in_any_dialect(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(SAMPLES))
    whole = read_answer(body, asked=3)
    assert whole.failure is None
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=50)))
    assert read_in_pieces(body, cuts) == whole


@given(st.data())
def test_spoiled_answers_of_any_dialect_are_observations(data: st.DataObject) -> None:
    spoiled = bytearray(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(spoiled)))
        spoiled[start : start + data.draw(st.integers(0, 40))] = data.draw(SPOILERS)
    if data.draw(st.booleans()):
        other = data.draw(st.sampled_from(SAMPLES))
        place = data.draw(st.integers(0, len(other)))
        spoiled[data.draw(st.integers(0, len(spoiled))) :] = other[place:]
    check(read_answer(bytes(spoiled), content_type=data.draw(st.sampled_from(LABELS)), asked=3))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(spoiled)), max_size=20)))
    check(read_in_pieces(bytes(spoiled), cuts))


@given(st.binary(max_size=300))
def test_any_bytes_are_an_observation(body: bytes) -> None:
    for content_type in ("text/event-stream", "application/json", ""):
        seen = read_answer(body, content_type=content_type)
        assert seen.failure is not None or seen.text or seen.notes or seen.has_done
