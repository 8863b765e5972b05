from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.answer import StreamReader, read_answer
from ingest.observation import MAX_LOGPROB_TOKENS, FailureKind, ToolCall

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "openai_answers.jsonl").read_text().splitlines()
]


def sse(*chunks: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def delta(finish: str | None = None, logprobs: Any = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": fields, "finish_reason": finish, "logprobs": logprobs}
    return {"choices": [choice]}


def tool(index: int | None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    call: dict[str, Any] = {"function": {"name": name, "arguments": arguments}, "id": id}
    return delta(tool_calls=[call if index is None else {**call, "index": index}])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_answers_of_public_bug_reports(case: dict[str, Any]) -> None:
    answer, want = case["candidate"], case.get("want", {})
    if "chunks_hex" in answer:
        body = b"".join(bytes.fromhex(chunk) for chunk in answer["chunks_hex"])
    else:
        body = answer["body"].encode("utf-8", "surrogatepass")
    seen = read_answer(body, status=answer["status"], content_type=answer["content_type"])
    if case["must_parse"]:
        assert seen.failure is None
    if answer["status"] >= 400 or want.get("error"):
        assert seen.failure is not None
    if "text" in want:
        # JSON writes a character beyond the basic plane as two halves.
        assert seen.text == want["text"].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    if "finish_reason" in want:
        assert seen.finish_reason == want["finish_reason"]
    if "completion_tokens" in want:
        assert seen.completion_tokens == want["completion_tokens"]
    if "tool_calls" in want:
        assert [[c.name, json.loads(c.arguments)] for c in seen.tool_calls] == want["tool_calls"]


def test_whole_chat_answer() -> None:
    body = {
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "Hi"}, "!"],
                    "reasoning_content": "think",
                    "tool_calls": [
                        {"id": "1", "function": {"name": "f", "arguments": '{"a":1}'}},
                        {"id": "2", "function": {"name": "f", "arguments": {"a": 2}}},
                    ],
                },
            },
            {"index": 1, "message": {"content": "another choice"}},
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    seen = read_answer(json.dumps(body).encode())
    assert (seen.text, seen.reasoning, seen.finish_reason) == ("Hi!", "think", "tool_calls")
    assert seen.tool_calls == (ToolCall("f", '{"a":1}', "1"), ToolCall("f", '{"a": 2}', "2"))
    assert (seen.prompt_tokens, seen.completion_tokens, seen.reported_model) == (3, 4, "m")
    assert seen.notes == ("arguments_object",) and seen.failure is None and seen.has_done


def test_legacy_answer_and_stream() -> None:
    def piece(text: str, finish: str | None, token: str) -> dict[str, Any]:
        logprobs = {"tokens": [token], "token_logprobs": [-0.5], "top_logprobs": [{token: -0.5}]}
        return {"choices": [{"index": 0, "text": text, "finish_reason": finish, "logprobs": logprobs}]}

    whole = read_answer(json.dumps(piece("ab", "length", "ab")).encode(), asked=1)
    assert (whole.text, whole.finish_reason, len(whole.tokens)) == ("ab", "length", 1)
    streamed = read_answer(sse(piece("a", None, "a"), piece("b", "length", "b")), asked=1)
    assert (streamed.text, [token.text for token in streamed.tokens]) == ("ab", ["a", "b"])


def test_tool_call_pieces_by_index() -> None:
    seen = read_answer(
        sse(
            tool(0, "c1", "f", ""),
            tool(0, None, None, '{"a"'),
            tool(1, "c2", "g", "{}"),
            tool(0, None, None, ":1}"),
            delta("tool_calls"),
        )
    )
    assert seen.tool_calls == (ToolCall("f", '{"a":1}', "c1"), ToolCall("g", "{}", "c2"))


def test_tool_calls_with_repeated_or_missing_index() -> None:
    repeated = read_answer(sse(tool(0, "c1", "f", "{}"), tool(0, "c2", "g", "{}"), delta("tool_calls")))
    assert [call.name for call in repeated.tool_calls] == ["f", "g"]
    assert repeated.notes == ("tool_call_index_repeated",)
    missing = read_answer(
        sse(
            tool(None, "c1", "f", "{"),
            tool(None, None, None, "}"),
            tool(None, "c2", "g", "{}"),
            delta("stop"),
        )
    )
    assert missing.tool_calls == (ToolCall("f", "{}", "c1"), ToolCall("g", "{}", "c2"))


def test_usage_grows_and_null_unsays_nothing() -> None:
    seen = read_answer(
        sse(
            {**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
            {**delta("stop"), "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
            {"choices": [], "usage": {"prompt_tokens": None, "completion_tokens": None}},
        )
    )
    assert (seen.prompt_tokens, seen.completion_tokens) == (5, 2)


def test_error_in_a_stream_keeps_the_partial_text() -> None:
    seen = read_answer(sse(delta(content="half"), {"error": {"message": "engine\ndied", "code": 500}}))
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.message) == (FailureKind.ERROR_IN_STREAM, "engine died")
    assert seen.text == "half"


def test_error_event_and_error_body_within_a_200() -> None:
    event = b'event: error\ndata: {"message": "out of memory"}\n\n'
    for body in (event, b'{"object": "error", "message": "out of memory"}'):
        failure = read_answer(body, content_type="text/event-stream").failure
        assert failure is not None
        assert (failure.kind, failure.message) == (FailureKind.ERROR_IN_STREAM, "out of memory")


def test_cut_stream() -> None:
    seen = read_answer(sse(delta(content="half an ans"), done=False))
    assert seen.failure is not None and seen.failure.kind is FailureKind.CUT_STREAM
    assert (seen.text, seen.has_done, seen.has_answer) == ("half an ans", False, False)


def test_finish_reason_without_end_mark_is_complete() -> None:
    seen = read_answer(sse(delta(content="ok"), delta("stop"), done=False))
    assert (seen.failure, seen.has_done, seen.finish_reason) == (None, False, "stop")


def test_connection_lost_after_the_finish_reason() -> None:
    reader = StreamReader()
    reader.feed(sse(delta(content="ok"), delta("stop"), done=False))
    seen = reader.finish(broken="connection lost")
    assert (seen.failure, seen.notes) == (None, ("lost_after_finish",))


def test_a_last_event_that_is_cut_costs_itself_only() -> None:
    seen = read_answer(sse(delta("stop", content="ok"), done=False) + b'data: {"choices": [], "usa')
    assert (seen.failure, seen.text, seen.notes) == (None, "ok", ("unreadable_event",))


def test_end_mark_without_its_line_end() -> None:
    assert read_answer(sse(delta("stop", content="ok")).rstrip()).has_done


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", FailureKind.UNREADABLE),
        (b"<html>502</html>", FailureKind.UNREADABLE),
        (b'{"choices": [{"message": {"content": "x"', FailureKind.UNREADABLE),
        (b"[1]", FailureKind.UNREADABLE),
        (b'{"status": "ok"}', FailureKind.UNREADABLE),
        (b"data: garbage\n\ndata: [DONE]\n\n", FailureKind.UNREADABLE),
        (b"data: [DONE]\n\n", FailureKind.UNREADABLE),
        (b": ping\n\n", FailureKind.CUT_STREAM),
    ],
)
def test_unreadable(body: bytes, kind: FailureKind) -> None:
    failure = read_answer(body).failure
    assert failure is not None and failure.kind is kind


def test_no_choices_is_an_empty_answer() -> None:
    seen = read_answer(b'{"choices": []}')
    assert (seen.failure, seen.text, seen.notes) == (None, "", ("no_choices",))


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "request (10031 tokens) exceeds the available context size", FailureKind.CONTEXT_EXCEEDED),
        (400, "This model's maximum context length is 4096 tokens", FailureKind.CONTEXT_EXCEEDED),
        (400, "bad top_p", FailureKind.HTTP_ERROR),
        (404, "The model `x` does not exist", FailureKind.HTTP_ERROR),
        (500, "boom", FailureKind.HTTP_ERROR),
    ],
)
def test_http_errors(status: int, message: str, kind: FailureKind) -> None:
    for body in ({"error": {"message": message}}, {"detail": message}, {"message": message}):
        failure = read_answer(json.dumps(body).encode(), status=status).failure
        assert failure is not None
        assert (failure.kind, failure.message, failure.status) == (kind, message, status)


def test_non_standard_json() -> None:
    body = (
        b'\xef\xbb\xbf{"choices": [{"message": {"content": "a\\ud800b \xff"}, "finish_reason": "stop",'
        b' "x": NaN, "logprobs": {"content": [{"token": "a", "logprob": NaN, "top_logprobs":'
        b' [{"token": "a", "logprob": -0.25}, {"token": "b", "logprob": -Infinity}]}]}}]}'
    )
    seen = read_answer(body)
    assert seen.text == "a\ufffdb \ufffd"
    assert seen.notes == ("invalid_utf8", "logprob_nan", "lone_surrogate", "bytes_from_text")
    assert [item.logprob for item in seen.tokens[0].top] == [-0.25, float("-inf")]


def test_surrogate_halves_in_two_deltas() -> None:
    seen = read_answer(sse(delta(content="ok \ud83d"), delta("stop", content="\ude0a")))
    assert (seen.text, seen.notes) == ("ok 😊", ())


def test_logprobs_beyond_the_limit_are_dropped_and_the_text_kept() -> None:
    count = MAX_LOGPROB_TOKENS + 10
    one = {"content": [{"token": "x", "logprob": -0.5, "top_logprobs": []}]}
    streamed = read_answer(sse(*[delta(content="x", logprobs=one)] * count, delta("stop")))
    choice = {"message": {"content": "x" * count}, "logprobs": {"content": one["content"] * count}}
    whole = read_answer(json.dumps({"choices": [choice]}).encode())
    for seen in (streamed, whole):
        assert len(seen.text) == count
        assert len(seen.tokens) == MAX_LOGPROB_TOKENS
        assert seen.notes == ("logprobs_truncated", "bytes_from_text")
