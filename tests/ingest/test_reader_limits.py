"""Time and memory stay linear in an answer, whatever is in it. Nothing here is timed: a quadratic reader
would need hours for these."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from ingest.answer import StreamReader, read_answer
from ingest.observation import MAX_LOGPROB_TOKENS, Observation

TOKENS = 30_000


def entry() -> str:
    top = [
        {"id": n, "token": f" w{n}", "bytes": list(f" w{n}".encode()), "logprob": -0.25 - 2.0 * n}
        for n in range(20)
    ]
    return json.dumps({**top[0], "top_logprobs": top})


def pieces(dialect: str) -> Iterator[bytes]:
    one = entry()
    chat = f'data: {{"choices":[{{"delta":{{"content":" w0"}},"logprobs":{{"content":[{one}]}}}}]}}\n\n'
    native = f'data: {{"content":" w0","stop":false,"completion_probabilities":[{one}]}}\n\n'
    piece = (chat if dialect == "chat" else native).encode()
    for _ in range(TOKENS):
        yield piece
    if dialect == "chat":
        yield b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    else:
        yield b'data: {"content":"","stop":true,"stop_type":"eos"}\n\n'


def check(seen: Observation) -> None:
    assert seen.failure is None
    assert seen.text == " w0" * TOKENS
    assert len(seen.tokens) == MAX_LOGPROB_TOKENS and len(seen.tokens[-1].top) == 20
    assert seen.notes == ("logprobs_truncated",)


@pytest.mark.parametrize("dialect", ["chat", "llama_cpp"])
def test_a_long_stream_keeps_the_first_logprobs_only(dialect: str) -> None:
    reader = StreamReader(asked=20)
    tracemalloc.start()
    for piece in pieces(dialect):
        reader.feed(piece)
    seen = reader.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    check(seen)
    # 2,048 tokens of 20 alternatives take some 15 MB; all 30,000 would take 200.
    assert peak < 40e6


@pytest.mark.parametrize("dialect", ["chat", "llama_cpp"])
def test_a_long_body_keeps_the_first_logprobs_only(dialect: str) -> None:
    entries = ",".join([entry()] * TOKENS)
    text = " w0" * TOKENS
    if dialect == "chat":
        body = (
            f'{{"choices":[{{"message":{{"content":"{text}"}},"finish_reason":"stop",'
            f'"logprobs":{{"content":[{entries}]}}}}]}}'
        )
    else:
        body = f'{{"content":"{text}","stop":true,"stop_type":"eos","completion_probabilities":[{entries}]}}'
    data = body.encode()
    del body, entries
    tracemalloc.start()
    seen = read_answer(data, asked=20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    check(seen)
    assert peak < 2 * len(data)


def test_a_million_tiny_chunks() -> None:
    body = b"".join(pieces("chat"))[:1_000_000]
    reader = StreamReader()
    for place in range(len(body)):
        reader.feed(body[place : place + 1])
    assert reader.finish() == read_answer(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"choices":' * 200_000,
        b'{"choices":[{"message":{"content":' + b'{"a":' * 100_000,
        b"data: " + b"[" * 1_000_000 + b"\n\n",
        b"data: " * 200_000,
        b"data:\n" * 300_000,
        b"\n" * 1_000_000,
        b"\r" * 1_000_000,
        b" " * 1_000_000,
        b'"' * 1_000_001,
        b'{"x": NaN, "y": "' + b"\\" * 1_000_000,
        b"9" * 1_000_000,
        b'{"choices": [], "created": ' + b"9" * 100_000 + b"}",
        b'{"choices": [{"message": {"content": "a"}}], "x": ' + b"9" * 100_000 + b', "y": NaN}',
        b"{}" * 30_000,
        b"{}\n" * 30_000,
        b'{"a":1,' * 100_000,
        b'{"content":"","stop":true,' + b'"stop":true,' * 100_000 + b'"stop":true}',
        b'data: {"choices":[{"delta":{"content":"a"}}]}\n' * 50_000,
        b'data: {"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"f"}}]}}]}\n\n' * 50_000,
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"fg"}}]}}]}\n\n' * 50_000,
        b"\xef\xbb\xbf" * 300_000,
        b"\xff\xfe" * 300_000,
    ],
)  # fmt: skip
def test_monstrous_bodies_are_observations(body: bytes) -> None:
    for label in ("text/event-stream", "application/json"):
        seen = read_answer(body, content_type=label)
        assert seen.failure is not None or seen.has_done


def test_many_tool_calls_without_index_stay_linear() -> None:
    deltas = [{"id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(10_000)]
    lines = [json.dumps({"choices": [{"delta": {"tool_calls": [delta]}}]}) for delta in deltas]
    seen = read_answer(("data: " + "\n\ndata: ".join(lines) + "\n\ndata: [DONE]\n\n").encode())
    assert len(seen.tool_calls) == 10_000
