"""Answers that say that their tokens were drafted by a smaller model."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ingest.answer import StreamReader, read_answer
from tests.ingest.both_ways import is_scanned
from tests.ingest.test_dialects import SAMPLES, sse

TIMED = [name for name, sample in SAMPLES.items() if '"timings":{' in sample["body"]]
DRAFTS = '"draft_n":347,"draft_n_accepted":65'
"""As llama.cpp's pull request 12603 shows them, at the end of its timings."""


@pytest.mark.parametrize("name", TIMED)
def test_recorded_answers_of_llama_cpp_with_drafts_are_noted_and_else_the_same(name: str) -> None:
    sample = SAMPLES[name]
    plain = read_answer(sample["body"].encode(), content_type=sample["content_type"])
    was_scanned = is_scanned(plain)
    assert "speculative_decoding" not in plain.notes
    for drafts, is_noted in ((DRAFTS, True), ('"draft_n":0,"draft_n_accepted":0', False)):
        body = sample["body"].replace('"timings":{', '"timings":{' + drafts + ",")
        seen = read_answer(body.encode(), content_type=sample["content_type"])
        assert ("speculative_decoding" in seen.notes) is is_noted
        assert is_scanned(seen) is was_scanned
        notes = tuple(note for note in seen.notes if note != "speculative_decoding")
        assert msgspec.structs.replace(seen, notes=notes) == plain


def test_there_are_recorded_answers_of_every_route() -> None:
    assert {"llama_cpp_chat", "llama_cpp_chat_stream", "llama_cpp_completion", "llama_cpp_legacy"} <= set(
        TIMED
    )


def chat(**more: Any) -> bytes:
    message = {"role": "assistant", "content": "Yes"}
    return json.dumps(
        {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}], **more}
    ).encode()


@pytest.mark.parametrize(
    ("more", "is_noted"),
    [
        (
            {"metrics": {"speculative_decoding": {"num_draft_tokens": 9, "num_accepted_draft_tokens": 4}}},
            True,
        ),
        ({"metrics": {"speculative_decoding": None, "time_to_first_token": 0.1}}, False),
        ({"metrics": None}, False),
        ({"metrics": "none", "timings": [1, 2]}, False),
        ({"timings": {"draft_n": "many"}}, False),
        # The client's own prediction is no draft of a model.
        ({"usage": {"completion_tokens_details": {"accepted_prediction_tokens": 4}}}, False),
        # An odd field elsewhere sends the answer the lenient way.
        ({"timings": {"draft_n": 3}, "model": 7}, True),
    ],
)
def test_what_an_openai_answer_says(more: dict[str, Any], is_noted: bool) -> None:
    seen = read_answer(chat(**more), content_type="application/json")
    assert seen.text == "Yes" and seen.failure is None
    assert ("speculative_decoding" in seen.notes) is is_noted


def test_vllm_streams_it_with_the_usage() -> None:
    reader = StreamReader(asked=None)
    reader.feed(
        sse(
            {"choices": [{"index": 0, "delta": {"content": "Yes"}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {}, "metrics": {"speculative_decoding": {"num_draft_tokens": 9}}},
        )
    )
    seen = reader.finish()
    assert seen.text == "Yes"
    assert "speculative_decoding" in seen.notes


@pytest.mark.parametrize("name", ["sglang", "sglang_stream", "sglang_stream_incremental"])
@pytest.mark.parametrize(("count", "is_noted"), [(2, True), (0, False)])
def test_sglang_counts_how_often_it_verified(name: str, count: int, is_noted: bool) -> None:
    sample = SAMPLES[name]
    body = sample["body"].replace('"meta_info": {', f'"meta_info": {{"spec_verify_ct": {count}, ')
    body = body.replace('"meta_info":{', f'"meta_info":{{"spec_verify_ct":{count},')
    assert body != sample["body"]
    seen = read_answer(body.encode(), content_type=sample["content_type"])
    assert ("speculative_decoding" in seen.notes) is is_noted
