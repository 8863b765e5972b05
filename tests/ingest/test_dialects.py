"""One observation for all dialects. Answers of llama.cpp are recorded from the real server; the others are
written by hand after the engines' public documentation (docs/dialects.md)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ingest.answer import StreamReader, read_answer
from ingest.dialects import DIALECTS
from ingest.fields import fields_of
from ingest.observation import FailureKind, Observation, ToolCall

SAMPLES: dict[str, dict[str, str]] = {
    sample["id"]: sample
    for sample in map(
        json.loads, (Path(__file__).parent / "data" / "dialects.jsonl").read_text("utf-8").splitlines()
    )
}


def read(name: str, asked: int | None = None) -> Observation:
    sample = SAMPLES[name]
    return read_answer(sample["body"].encode(), content_type=sample["content_type"], asked=asked)


def sse(*chunks: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


@pytest.mark.parametrize(
    ("name", "text", "finish", "prompt", "completion", "tokens"),
    [
        ("llama_cpp_chat", "🎉 É 你", "length", 44, 8, ["🎉", " É", " ", "你"]),
        ("llama_cpp_chat_stream", "🎉 É 你", "length", 44, 8, ["🎉", " É", " ", "你"]),
        ("llama_cpp_completion", " Paris.\n\nThe", "length", 5, 5, [" Paris", ".", "\n", "\n", "The"]),
        ("llama_cpp_completion_stream", " Paris.\n\nThe", "length", 5, 5, [" Paris", ".", "\n", "\n", "The"]),
        ("llama_cpp_completion_post", " Paris. Paris is a", "length", 5, 5,
         [" Paris", ".", " Paris", " is", " a"]),
        ("llama_cpp_completion_word", " ", "stop", 5, 1, []),
        ("llama_cpp_legacy", " Paris.\n\n", "length", 5, 4, [" Paris", ".", "\n", "\n"]),
        ("llama_cpp_legacy_stream", " Paris.\n\n", "length", 5, 4, [" Paris", ".", "\n", "\n"]),
        ("llama_cpp_responses", "Hello there, welcome to", "stop", 32, 5, []),
        ("llama_cpp_responses_stream", "Hello there, welcome to", "stop", 32, 5, []),
        ("llama_cpp_old", " to be", "length", 4, 2, [" to", " be"]),
        ("vllm_chat", "4!", "stop", 9, 2, ["4", "!"]),
        ("vllm_chat_stream_ids", "Yes", "stop", 3, 2, ["token_id:42", "token_id:9"]),
        ("vllm_completion", " to be", "length", 2, 2, [" to", " be"]),
        ("vllm_tool_stream", "", "tool_calls", None, None, []),
        ("sglang", "1. Rome", "stop", 4, 3, ["1", ".", " Rome"]),
        ("sglang_stream", "1. Rome", "length", 4, 3, ["1", ".", " Rome"]),
        ("sglang_stream_incremental", "1. Rome", "stop", 4, 3, ["1", ".", " Rome"]),
        ("tgi", " a test", "stop", 1, 3, [" a", " test", "</s>"]),
        ("tgi_stream", " a test", "stop", 4, 3, [" a", " test", "</s>"]),
        ("tgi_list", " a test", None, None, None, []),
        ("ollama_generate", "Hello you", "stop", 7, 2, ["Hello", " you"]),
        ("ollama_chat_stream", "Hello you", "stop", 7, 2, ["Hello", " you"]),
        ("ollama_tools", "", "stop", None, 9, []),
        ("responses_tools", "", "tool_calls", 3, 4, []),
    ],
)  # fmt: skip
def test_every_dialect_is_read(
    name: str, text: str, finish: str | None, prompt: int | None, completion: int | None, tokens: list[str]
) -> None:
    seen = read(name)
    assert (seen.failure, seen.text, seen.finish_reason) == (None, text, finish)
    assert (seen.prompt_tokens, seen.completion_tokens) == (prompt, completion)
    assert [token.text for token in seen.tokens] == tokens


def test_every_sample_is_checked_above() -> None:
    marks = test_every_dialect_is_read.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in marks[0].args[1]} == set(SAMPLES)


def test_a_whole_answer_and_its_stream_give_the_same_tokens() -> None:
    for whole, stream in (
        ("llama_cpp_chat", "llama_cpp_chat_stream"),
        ("llama_cpp_completion", "llama_cpp_completion_stream"),
        ("llama_cpp_legacy", "llama_cpp_legacy_stream"),
        ("sglang", "sglang_stream"),
        ("sglang", "sglang_stream_incremental"),
        ("ollama_generate", "ollama_chat_stream"),
    ):
        assert read(whole).tokens == read(stream).tokens
        assert read(whole).tokens


def test_no_sample_has_the_shape_of_two_dialects() -> None:
    for sample in SAMPLES.values():
        first = sample["body"].replace("data:", "").strip().splitlines()[0]
        fields = fields_of(first.encode(), {})
        if fields is not None:
            assert sum(dialect.recognises(fields) for dialect in DIALECTS) <= 1


def test_vllm_extras() -> None:
    chat = read("vllm_chat", asked=2)
    assert chat.reasoning == "Add."
    assert [token.id for token in chat.tokens] == [19, 0]
    # "!" was sampled although it is the least likely of its list: it stands first on the wire.
    assert [item.text for item in chat.tokens[1].top] == [".", "?", "!"] and chat.tokens[1].ranked == 2
    ids = read("vllm_chat_stream_ids", asked=2)
    assert (ids.reasoning, ids.notes) == ("Hm.", ("tokens_as_ids",))
    assert [(token.id, token.raw) for token in ids.tokens] == [(42, None), (9, None)]
    assert [(item.id, item.logprob) for item in ids.tokens[1].top] == [(9, 0.0), (8, -math.inf)]
    calls = read("vllm_tool_stream").tool_calls
    assert calls == (ToolCall("f", '{"a": 1}', "c1"), ToolCall("g", "{}", "c2"))


def test_llama_cpp_probabilities() -> None:
    old = read("llama_cpp_old")
    assert [token.logprob for token in old.tokens] == [math.log(0.5), math.log(0.5)]
    assert [item.logprob for item in old.tokens[0].top] == [math.log(0.5), math.log(0.25)]
    assert old.tokens[1].top[1].logprob == -math.inf
    assert {"probabilities", "prompt_truncated"} <= set(old.notes)
    # A real answer with `post_sampling_probs`: what top_k, top_p and min_p left is not the model's.
    post = read("llama_cpp_completion_post", asked=3)
    assert "logprobs_filtered" in post.notes
    assert all(token.logprob is None and token.top == () for token in post.tokens)


def test_sglang_triples() -> None:
    seen = read("sglang", asked=2)
    assert [(token.id, token.logprob) for token in seen.tokens] == [(16, -0.5), (13, -0.25), (22463, -1.5)]
    assert [(item.id, item.logprob) for item in seen.tokens[2].top] == [(7, -0.75), (22463, -1.5)]


def test_sglang_abort_is_a_failure() -> None:
    meta = {"finish_reason": {"type": "abort", "message": "out of memory", "status_code": 500}}
    seen = read_answer(json.dumps({"text": "half", "meta_info": meta}).encode())
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.message) == (FailureKind.ERROR_IN_STREAM, "out of memory")
    assert seen.text == "half"


def test_ollama_chat() -> None:
    stream = read("ollama_chat_stream")
    assert stream.reasoning == "Greet." and stream.has_done
    tools = read("ollama_tools")
    assert tools.tool_calls == (ToolCall("f", '{"a": 1}'), ToolCall("f", '{"a": 2}'))
    cut = SAMPLES["ollama_chat_stream"]["body"].splitlines()
    for count in (1, 2):
        seen = read_answer(("\n".join(cut[:count]) + "\n").encode())
        assert seen.failure is not None and seen.failure.kind is FailureKind.CUT_STREAM


@pytest.mark.parametrize(
    "line",
    [
        {"error": "engine died"},
        {"error": {"message": "engine died", "code": 500}},
        {"error": "engine died", "error_type": "generation"},
        {"object": "error", "message": "engine died"},
        {"detail": [{"msg": "engine died"}]},
        {"type": "error", "message": "engine died"},
    ],
)
def test_an_error_in_the_middle_of_any_stream(line: dict[str, Any]) -> None:
    for name in ("llama_cpp_completion_stream", "sglang_stream", "tgi_stream", "llama_cpp_chat_stream"):
        first = SAMPLES[name]["body"].split("\n\n")[0] + "\n\n"
        seen = read_answer(first.encode() + sse(line))
        assert seen.failure is not None and seen.text
        assert (seen.failure.kind, seen.failure.message) == (FailureKind.ERROR_IN_STREAM, "engine died")
    first = SAMPLES["ollama_chat_stream"]["body"].split("\n")[1] + "\n"
    seen = read_answer(first.encode() + json.dumps(line).encode())
    assert seen.failure is not None and seen.failure.message == "engine died" and seen.text == "Hello"


def test_framing_is_told_by_content_not_by_label() -> None:
    for name, sample in SAMPLES.items():
        seen = read(name)
        for label in ("text/event-stream", "application/json", "application/x-ndjson", ""):
            assert read_answer(sample["body"].encode(), content_type=label) == seen
        # Printed over several lines, with a BOM, and after white space.
        if sample["content_type"] == "application/json":
            value = json.loads(sample["body"])
            for body in (
                json.dumps(value, indent=1),
                "\ufeff" + sample["body"],
                "\n \n" + sample["body"] + "\n",
            ):
                reader = StreamReader()
                reader.feed(body.encode())
                assert reader.finish() == seen
        # The events of a stream as one object a line.
        elif sample["content_type"] == "text/event-stream":
            lines = [line for line in sample["body"].split("\n") if line.startswith("data:")]
            bare = "\n".join(line.removeprefix("data:").strip() for line in lines)
            assert read_answer(bare.encode()).tokens == seen.tokens
            assert read_answer(bare.encode()).text == seen.text


def test_streams_as_proxies_spoil_them() -> None:
    body = SAMPLES["llama_cpp_chat_stream"]["body"]
    seen = read("llama_cpp_chat_stream")
    doubled = read_answer(body.replace("data: {", "data: data: {").encode())
    assert (doubled.text, doubled.tokens) == (seen.text, seen.tokens)
    assert "data_prefix_doubled" in doubled.notes
    unseparated = read_answer(body.replace("\n\n", "\n").encode())
    assert (unseparated.text, unseparated.tokens, unseparated.has_done) == (seen.text, seen.tokens, True)
    assert "events_not_separated" in unseparated.notes
    after = read_answer((body + body).encode())
    assert (after.text, after.notes) == (seen.text, (*seen.notes, "data_after_done"))
    stray = read_answer(
        sse({"choices": [{"delta": {"content": "half"}}]}, done=False) + b'{"error": "engine died"}\n\n'
    )
    assert stray.failure is not None and stray.failure.message == "engine died"
    old = read_answer(b'data: {"content": "half", "stop": false}\n\nerror: {"message": "engine died"}\n\n')
    assert old.failure is not None and old.failure.message == "engine died"
    joined = read_answer(
        b'{"choices": [{"message": {"content": "a"}}]}{"choices": [], "usage": {"completion_tokens": 3}}'
    )
    assert (joined.text, joined.completion_tokens, joined.notes) == ("a", 3, ("json_joined",))


def test_ollama_sends_logprobs_while_a_tool_call_is_put_together() -> None:
    """server/routes.go: objects with logprobs and no content while the parser holds the text back."""
    entries = [{"token": text, "logprob": -0.5, "bytes": list(text.encode())} for text in ("{", "}")]
    lines = [
        {"message": {"role": "assistant", "content": ""}, "done": False, "logprobs": [entries[0]]},
        {"message": {"role": "assistant", "content": ""}, "done": False, "logprobs": [entries[1]]},
        {
            "message": {"content": "", "tool_calls": [{"function": {"name": "find", "arguments": {}}}]},
            "done": False,
        },
        {"message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 2},
    ]
    reader = StreamReader(asked=0)
    reader.feed(json.dumps(lines[0]).encode() + b"\n")
    assert reader.has_content
    reader.feed(b"".join(json.dumps(line).encode() + b"\n" for line in lines[1:]))
    seen = reader.finish()
    assert [token.text for token in seen.tokens] == ["{", "}"]
    assert [call.name for call in seen.tool_calls] == ["find"]
    assert (seen.finish_reason, seen.completion_tokens, seen.failure) == ("stop", 2, None)


def test_ollama_breaks_off_with_an_error_line() -> None:
    body = b'{"model":"m","message":{"content":"half"},"done":false}\n{"error":"runner crashed"}\n'
    seen = read_answer(body)
    assert seen.text == "half"
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.message) == (FailureKind.ERROR_IN_STREAM, "runner crashed")


def test_a_token_without_numbers_is_unknown() -> None:
    """vLLM and TensorRT-LLM leave -9999.0, and no list, where they have no numbers for a token."""
    known = {"token": "a", "logprob": -0.1, "bytes": [97]}
    listed = {**known, "top_logprobs": [known]}
    unknown = {"token": "b", "logprob": -9999.0, "bytes": [98], "top_logprobs": []}
    choice = {
        "message": {"content": "ab"},
        "finish_reason": "stop",
        "logprobs": {"content": [listed, unknown]},
    }
    seen = read_answer(json.dumps({"choices": [choice]}).encode(), asked=1)
    assert [token.logprob for token in seen.tokens] == [-0.1, None]
    assert seen.notes == ("logprob_impossible",)
