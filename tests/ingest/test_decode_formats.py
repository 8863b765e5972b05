from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.errors import DeadLetterError
from ingest.outcome import SkipReason
from ingest.records import ProductionAnswer
from ingest.request import skip_reason
from tests.ingest.test_decode import NOW, read, refused

MESSAGES = [{"role": "user", "content": "hi"}]
LITELLM: dict[str, Any] = {
    "id": "chatcmpl-1",
    "trace_id": "trace-7",
    "call_type": "acompletion",
    "status": "success",
    "startTime": 1_795_921_200.25,
    "endTime": 1_795_921_201.75,
    "model": "hosted_vllm/qwen-awq",
    "model_group": "qwen",
    "metadata": {"user_api_key_team_alias": "search", "user_api_key_team_id": "t-9"},
    "request_tags": ["a", "b"],
    "messages": MESSAGES,
    "response": {"choices": []},
    "model_parameters": {"temperature": 0.3, "stream": True},
    "hidden_params": {},
}
GOREPLAY: dict[str, Any] = {
    "Req_URL": "/v1/chat/completions?x=1",
    "Req_Type": "1",
    "Req_ID": "932079936fa4306fc308d67588178d17d823647c",
    "Req_Ts": "1795921200250000000",
    "Req_Method": "POST",
    "Req_Body": json.dumps({"model": "m", "messages": MESSAGES}),
    "Req_Headers": {"Content-Type": "application/json", "Authorization": "Bearer sk-1", "X-Tenant": "t"},
}


def test_litellm() -> None:
    mirrored = read(LITELLM)
    assert mirrored.source_format == "litellm"
    assert mirrored.request_id == "chatcmpl-1"
    assert mirrored.body == {"model": "qwen", "messages": MESSAGES, "temperature": 0.3, "stream": True}
    assert mirrored.endpoint == "/v1/chat/completions"
    assert mirrored.sent_at == NOW + timedelta(milliseconds=250)
    assert mirrored.tenant == "search"
    assert mirrored.served_by.model == "hosted_vllm/qwen-awq"
    assert mirrored.production == ProductionAnswer(200, None, {"choices": []}, 1500.0)
    assert mirrored.tags == {"litellm.trace_id": "trace-7", "litellm.request_tags": "a,b"}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (json.dumps(MESSAGES), MESSAGES),
        ({"messages": MESSAGES}, MESSAGES),
        (json.dumps({"messages": MESSAGES}), MESSAGES),
        ("[not json", [{"role": "user", "content": "[not json"}]),
        ("[1, 2]", [{"role": "user", "content": "[1, 2]"}]),
        ("plain", [{"role": "user", "content": "plain"}]),
    ],
)
def test_litellm_messages_in_each_form(messages: Any, expected: Any) -> None:
    assert read(LITELLM | {"messages": messages}).body["messages"] == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([{"role": "user", "content": "once"}], "once"),
        ("once", "once"),
        (["a", "b"], ["a", "b"]),
        ([1, 2], [1, 2]),
    ],
)
def test_litellm_text_completion(messages: Any, expected: Any) -> None:
    mirrored = read(LITELLM | {"call_type": "atext_completion", "messages": messages})
    assert mirrored.endpoint == "/v1/completions"
    assert mirrored.body["prompt"] == expected
    assert "messages" not in mirrored.body


@pytest.mark.parametrize("call_type", ["aembedding", "anthropic_messages", "aresponses", "image_generation"])
def test_litellm_calls_that_are_not_replayed_are_skipped(call_type: str) -> None:
    skipped = skip_reason(read(LITELLM | {"call_type": call_type, "messages": None}), ["*"])
    assert skipped is not None
    assert skipped.reason == SkipReason.ENDPOINT


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (None, "missing_field"),
        ("redacted-by-litellm", "redacted"),
        ([{"role": "user", "content": "redacted-by-litellm"}], "redacted"),
        (7, "wrong_type"),
    ],
)
def test_litellm_without_usable_messages(messages: Any, reason: str) -> None:
    assert refused(json.dumps(LITELLM | {"messages": messages}).encode()).reason == reason


def test_litellm_failure_has_the_status_that_the_error_names() -> None:
    failed = LITELLM | {"status": "failure", "response": None, "error_information": {"error_code": "503"}}
    production = read(failed).production
    assert production is not None
    assert production.status == 503


def test_goreplay() -> None:
    mirrored = read(GOREPLAY)
    assert mirrored.source_format == "goreplay"
    assert mirrored.request_id == "932079936fa4306fc308d67588178d17d823647c"
    assert mirrored.body == {"model": "m", "messages": MESSAGES}
    assert mirrored.sent_at == datetime(2026, 11, 29, 3, 0, 0, 250_000, tzinfo=UTC)
    assert mirrored.tenant == "t"
    assert mirrored.endpoint == "/v1/chat/completions?x=1"
    assert "sk-1" not in repr(mirrored)


def test_goreplay_takes_the_request_id_from_the_headers() -> None:
    assert read(GOREPLAY | {"Req_Headers": {"X-Request-Id": "r-9"}}).request_id == "r-9"


@pytest.mark.parametrize(
    "change",
    [
        {"Req_Type": "2", "Req_Body": "{}"},
        {"Req_URL": "/health", "Req_Method": "GET", "Req_Body": ""},
        {"Req_URL": "/v1/audio/transcriptions", "Req_Body": "--boundary"},
        {"Req_URL": "/v1/embeddings"},
    ],
)
def test_goreplay_messages_that_are_not_replayed_are_skipped(change: dict[str, str]) -> None:
    skipped = skip_reason(read(GOREPLAY | change), ["*"])
    assert skipped is not None
    assert skipped.reason == SkipReason.ENDPOINT


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        ("{", "invalid_json", "Req_Body is no JSON: Expecting property name"),
        ("[]", "not_an_object", "Req_Body is an array, it must be an object"),
        ("", "missing_field", "Req_Body is empty"),
        ({"a": 1}, "wrong_type", "Req_Body is an object, it must be a string"),
        ("[" * 5000, "too_deep", "Req_Body nests deeper"),
    ],
)
def test_goreplay_with_a_broken_body(body: Any, reason: str, message: str) -> None:
    error = refused(json.dumps(GOREPLAY | {"Req_Body": body}).encode())
    assert error.reason == reason
    assert str(error).startswith(message)


def test_goreplay_body_with_lone_surrogates() -> None:
    mirrored = read(GOREPLAY | {"Req_Body": r'{"messages": [], "user": "\ud800"}'})
    assert mirrored.has_lone_surrogates
    assert mirrored.body["user"] == "\ufffd"


def test_bare_body_with_headers() -> None:
    body = {"model": "m", "messages": MESSAGES}
    mirrored = read(
        body,
        X_Request_Id=b"r-5",
        x_tenant=b"t\xff",
        x_route=b"extract",
        x_sent_at=b"2026-11-29T03:00:00Z",
        authorization=b"Bearer sk-1",
    )
    assert mirrored.source_format == "openai"
    assert mirrored.body == body
    assert mirrored.request_id == "r-5"
    assert mirrored.tenant == "t\ufffd"
    assert mirrored.route == "extract"
    assert mirrored.sent_at == NOW
    assert mirrored.endpoint == "/v1/chat/completions"
    assert "sk-1" not in repr(mirrored)


def test_bare_body_without_headers_is_named_by_its_position() -> None:
    mirrored = read({"prompt": "x"})
    assert mirrored.request_id == "topic/id/3/41"
    assert mirrored.endpoint == "/v1/completions"


@pytest.mark.parametrize(
    ("body", "endpoint"),
    [
        ({"input": "x"}, "/v1/embeddings"),
        ({"input": "x", "previous_response_id": "p"}, "/v1/responses"),
    ],
)
def test_bare_bodies_of_other_apis(body: dict[str, Any], endpoint: str) -> None:
    assert read(body).endpoint == endpoint


def test_bare_body_with_an_unreadable_time() -> None:
    assert read({"prompt": "x"}, x_sent_at=b"noon").tags == {"gnomon.dropped": "x-sent-at"}


def test_shapes_are_not_mixed_up() -> None:
    with pytest.raises(DeadLetterError) as caught:
        read(LITELLM | {"schema": "other/3"})
    assert caught.value.reason == "unknown_schema"
