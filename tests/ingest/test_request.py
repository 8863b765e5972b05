from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.outcome import SkipReason
from ingest.records import MirroredRequest, SourcePosition
from ingest.request import api_of, request_hash, skip_reason

NOW = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def mirrored(body: dict[str, Any], endpoint: str = "/v1/chat/completions") -> MirroredRequest:
    return MirroredRequest(
        position=SourcePosition("t", "id", 0, 0),
        request_id="r",
        body=body,
        request_hash="0" * 32,
        mirrored_at=NOW,
        ingested_at=NOW,
        endpoint=endpoint,
    )


def test_hash_is_that_of_the_standard_library() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "错误码 0x7f"}], "temperature": 0.5}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert request_hash(body) == hashlib.sha256(canonical.encode()).hexdigest()[:32]


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), JSON, max_size=4))
def test_hash_ignores_the_order_of_keys(body: dict[str, Any]) -> None:
    backwards = dict(reversed(body.items()))
    assert request_hash(body) == request_hash(backwards)


def test_hash_tells_bodies_apart() -> None:
    assert request_hash({"a": 1}) != request_hash({"a": 2})
    assert request_hash({"a": "1"}) != request_hash({"a": 1})


@pytest.mark.parametrize(
    ("endpoint", "api"),
    [
        ("/v1/chat/completions", "chat"),
        ("/v1/chat/completions/", "chat"),
        ("/openai/deployments/x/chat/completions?api-version=2024-06-01", "chat"),
        ("/v1/completions", "completions"),
        ("/v1/embeddings", None),
        ("/v1/messages", None),
        ("/v1/responses", None),
        ("/v1/chat", None),
        ("", None),
        # Behind http://endpoint:8000 these would be sent, key and all, to another host.
        ("@elsewhere.example/chat/completions", None),
        ("1@elsewhere.example/v1/completions", None),
        (".elsewhere.example/v1/chat/completions", None),
        ("http://elsewhere.example/v1/chat/completions", None),
        ("v1/chat/completions", None),
    ],
)
def test_api_of_a_path(endpoint: str, api: str | None) -> None:
    assert api_of(endpoint) == api


@pytest.mark.parametrize(
    ("body", "endpoint", "reason"),
    [
        ({"model": "m", "messages": []}, "/v1/chat/completions", None),
        ({"model": "other", "messages": []}, "/v1/chat/completions", SkipReason.MODEL),
        ({"messages": []}, "/v1/chat/completions", SkipReason.MODEL),
        ({"model": 7, "messages": []}, "/v1/chat/completions", SkipReason.MODEL),
        ({"model": "m", "input": "x"}, "/v1/embeddings", SkipReason.ENDPOINT),
        ({"model": "m", "input": "x", "previous_response_id": "p"}, "/v1/responses", SkipReason.STATEFUL),
        ({"model": "m", "input": "x"}, "/v1/responses", SkipReason.ENDPOINT),
        ({"model": "m", "prompt": "one"}, "/v1/completions", None),
        ({"model": "m", "prompt": ["one"]}, "/v1/completions", None),
        ({"model": "m", "prompt": ["one", "two"]}, "/v1/completions", SkipReason.BATCH),
        ({"model": "m", "prompt": [[1, 2], [3]]}, "/v1/completions", SkipReason.BATCH),
        ({"model": "m", "prompt": [1, 2, 3]}, "/v1/completions", None),
        (
            {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
            "/v1/chat/completions",
            None,
        ),
        (
            {"model": "m", "messages": [{"content": [{"type": "text"}, {"type": "image_url"}]}]},
            "/v1/chat/completions",
            SkipReason.MODALITY,
        ),
        ({"model": "m", "modalities": ["text", "audio"]}, "/v1/chat/completions", SkipReason.MODALITY),
    ],
)
def test_skip_reason(body: dict[str, Any], endpoint: str, reason: SkipReason | None) -> None:
    skipped = skip_reason(mirrored(body, endpoint), {"m": {}})
    assert (skipped.reason if skipped else None) == reason


def test_star_stands_for_any_model() -> None:
    assert skip_reason(mirrored({"model": "other", "messages": []}), ["*"]) is None


def test_detail_is_one_short_line() -> None:
    skipped = skip_reason(mirrored({"model": "a\nb" * 200}), [])
    assert skipped is not None
    assert "\n" not in skipped.detail
    assert len(skipped.detail) < 140


@given(
    st.dictionaries(
        st.sampled_from(["model", "messages", "prompt", "modalities", "previous_response_id"]), JSON
    )
)
def test_odd_types_never_raise(body: dict[str, Any]) -> None:
    skipped = skip_reason(mirrored(body), ["m"])
    assert skipped is None or skipped.reason in SkipReason
