from __future__ import annotations

import gzip
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.shape_guess import guess_shape

_NATIVE = json.dumps(
    {"schema": "gnomon.mirror/9", "request_id": "r", "request": {"model": "m", "messages": []}}
).encode()


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (None, "nothing"),
        (b"", "nothing"),
        (b" \n\t", "nothing"),
        (_NATIVE, "gnomon.mirror/1"),
        (_NATIVE[:60], "gnomon.mirror/1"),
        (_NATIVE.replace(b"[]", b"[\xff"), "gnomon.mirror/1"),
        (b"\xef\xbb\xbf " + _NATIVE, "gnomon.mirror/1"),
        (b'{"id": "x", "startTime": 1.5, "model_parameters": {', "litellm"),
        (b'{"Req_URL": "/v1/chat/completions", "Req_Type": "1"', "goreplay"),
        (b"1 d7123dasd913jfd21312dasdasd31 127345969\nPOST / HTTP/1.1", "text"),
        (b"1 932079936fa4306fc308d67588178d17d823647c 1439818823587396305 200\nPOST /", "goreplay"),
        (b'{"model": "m", "messages": [{"role": "user"', "openai"),
        (b'{"prompt": "x", ]', "openai"),
        (b'{"event": "login"}', "json"),
        (b"[1, 2", "json"),
        (gzip.compress(_NATIVE, mtime=0), "gzip"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd"),
        (b"\x00\x00\x00\x00\x07" + _NATIVE, "confluent"),
        (_NATIVE.decode().encode("utf-16"), "utf-16"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n{}", "http"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "http"),
        ("caf\u00e9, bonjour".encode(), "text"),
        (b"\x01\x02\x03\x04\x05\x06\x07", "binary"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "binary"),
    ],
)
def test_the_shape_is_told(value: bytes | None, shape: str) -> None:
    assert guess_shape(value) == shape


@given(st.binary(max_size=300))
def test_any_bytes_have_a_shape(value: bytes) -> None:
    assert guess_shape(value)


def test_a_large_record_is_judged_by_its_start() -> None:
    assert guess_shape(b'{"messages": ["' + b"\xff" * 5_000_000) == "openai"
    assert guess_shape(os.urandom(2_000_000).replace(b"\x00", b"\x01").lstrip(b" {[")) in (
        "binary",
        "gzip",
        "zstd",
        "utf-16",
    )
