from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.decode import MAX_REQUEST_BYTES, clamp_time, decode, oversize
from ingest.errors import DeadLetterError
from ingest.outcome import SkipReason
from ingest.records import MirroredRequest, ProductionAnswer, RawRecord, ServedBy, SourcePosition
from tests.ingest.test_request import JSON

NOW = datetime(2026, 11, 29, 3, 0, 0, tzinfo=UTC)
NOW_MS = 1_795_921_200_000
BODY = {"model": "m", "messages": [{"role": "user", "content": "错误码 0x7f"}], "temperature": 0.5}
FULL: dict[str, Any] = {
    "schema": "gnomon.mirror/1",
    "request_id": "r-1",
    "sent_at": "2026-11-29T02:59:59.120+00:00",
    "tenant": "t",
    "route": "log-extract",
    "endpoint": "/v1/chat/completions",
    "request": BODY,
    "response": {
        "status": 200,
        "content_type": "application/json",
        "body": {"choices": []},
        "latency_ms": 812.5,
    },
    "served_by": {"model": "m-awq", "engine": "vllm", "quantization": "awq-int4"},
    "tags": {"build": "1841"},
}


def record(
    value: bytes | None, headers: tuple[tuple[str, bytes], ...] = (), timestamp_ms: int = NOW_MS
) -> RawRecord:
    return RawRecord(SourcePosition("topic", "id", 3, 41), timestamp_ms, b"key", value, headers)


def read(value: Any, **headers: bytes) -> MirroredRequest:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    named = tuple((name.replace("_", "-"), content) for name, content in headers.items())
    return decode(record(data, named), NOW)


def refused(value: bytes | None) -> DeadLetterError:
    with pytest.raises(DeadLetterError) as caught:
        decode(record(value), NOW)
    assert "\n" not in str(caught.value)
    return caught.value


def changed(**fields: Any) -> bytes:
    return json.dumps(FULL | fields).encode()


def test_native_envelope_with_every_field() -> None:
    mirrored = read(FULL)
    canonical = json.dumps(BODY, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert mirrored == MirroredRequest(
        position=SourcePosition("topic", "id", 3, 41),
        request_id="r-1",
        body=BODY,
        request_hash=hashlib.sha256(canonical.encode()).hexdigest()[:32],
        mirrored_at=NOW,
        ingested_at=NOW,
        sent_at=datetime(2026, 11, 29, 2, 59, 59, 120_000, tzinfo=UTC),
        tenant="t",
        route="log-extract",
        endpoint="/v1/chat/completions",
        production=ProductionAnswer(200, "application/json", {"choices": []}, 812.5),
        served_by=ServedBy(model="m-awq", engine="vllm", quantization="awq-int4"),
        tags={"build": "1841"},
        source_format="gnomon.mirror/1",
    )


def test_native_envelope_with_the_required_fields_only() -> None:
    mirrored = read(
        {"schema": "gnomon.mirror/1", "request_id": "r", "request": {"model": "m", "prompt": "x"}}
    )
    assert mirrored.endpoint == "/v1/completions"
    assert mirrored.production is None
    assert mirrored.tags == {}
    assert mirrored.sent_at is None


def test_unknown_fields_and_nulls_are_ignored() -> None:
    nothing = dict.fromkeys(("sent_at", "tenant", "route", "response", "served_by", "tags"))
    mirrored = decode(record(changed(new_field=[1], **nothing)), NOW)
    assert mirrored.tenant == ""
    assert mirrored.tags == {}


@pytest.mark.parametrize(
    ("value", "reason", "message"),
    [
        (None, "empty_value", "the value is null"),
        (b"", "empty_value", "the value is 0 bytes of nothing"),
        (b" \n", "empty_value", "the value is 2 bytes of nothing"),
        (
            b'{"a": "ab\xffc"}',
            "invalid_utf8",
            'the value is not UTF-8 at byte 9 of 13: \'{"a": "ab\\xffc"}\'',
        ),
        (
            '{"ключ": 1,}'.encode(),
            "invalid_json",
            "the value is no JSON: Expecting property name enclosed in double quotes at byte 15 of 16: "
            "'{\"\\xd0\\xba\\xd0\\xbb\\xd1\\x8e\\xd1\\x87\": 1,}'",
        ),
        (
            b'\xef\xbb\xbf{"a": }',
            "invalid_json",
            "the value is no JSON: Expecting value at byte 9 of 10: '\\xef\\xbb\\xbf{\"a\": }'",
        ),
        (
            b'{"schema": "gnomon.mirror/1", "request',
            "invalid_json",
            "the value is no JSON: Unterminated string starting at byte 30 of 38: "
            '\'ma": "gnomon.mirror/1", "request\'',
        ),
        (b"[1, 2]", "not_an_object", "the value is an array, it must be an object"),
        (b'"text"', "not_an_object", "the value is a string, it must be an object"),
        (b"NaN", "not_an_object", "the value is a number, it must be an object"),
        (
            b'{"foo": 1, "bar": 2}',
            "missing_field",
            "schema is missing, and the fields fit no known format: foo, bar",
        ),
        (
            changed(schema="gnomon.mirror/2"),
            "unknown_schema",
            "schema is 'gnomon.mirror/2'; gnomon.mirror/1 is known here",
        ),
        (changed(schema=1), "wrong_type", "schema is a number, it must be a string: 1"),
        (changed(request_id=17), "wrong_type", "request_id is a number, it must be a string: 17"),
        (changed(request_id=""), "missing_field", "request_id is empty"),
        (changed(request=[1]), "wrong_type", "request is an array, it must be an object: [1]"),
        (
            b'{"schema": "gnomon.mirror/1", "request_id": "r"}',
            "missing_field",
            "request is missing; fields here: schema, request_id",
        ),
        (b"[" * 100_000, "too_deep", "the value nests deeper than 128 levels"),
        (
            changed(request={"a": json.loads("[" * 200 + "]" * 200)}),
            "too_deep",
            "the value nests deeper than 128 levels",
        ),
    ],
)
def test_dead_letters(value: bytes | None, reason: str, message: str) -> None:
    error = refused(value)
    assert (error.reason, str(error)) == (reason, message)


def test_number_with_too_many_digits_is_a_dead_letter() -> None:
    error = refused(b'{"schema": ' + b"9" * 5000 + b"}")
    assert error.reason == "invalid_json"
    assert "number that is too long" in str(error)


def test_optional_fields_of_a_wrong_type_are_dropped_and_named() -> None:
    mirrored = decode(
        record(
            changed(
                sent_at="yesterday",
                tenant=["t"],
                response={"status": "200", "latency_ms": 7, "body": "text"},
                served_by="vllm",
                tags={"build": 1841, "canary": True, "host": {"a": 1}},
            )
        ),
        NOW,
    )
    assert mirrored.sent_at is None
    assert mirrored.tenant == ""
    assert mirrored.route == "log-extract"
    assert mirrored.production == ProductionAnswer(None, None, "text", 7.0)
    assert mirrored.tags == {
        "build": "1841",
        "canary": "true",
        "gnomon.dropped": "sent_at,tenant,response.status,served_by,tags.host",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-29T03:00:00Z", NOW),
        ("2026-11-29T04:00:00+01:00", NOW),
        ("2026-11-29T03:00:00.123456789Z", NOW + timedelta(microseconds=123_456)),
        ("2026-11-29T03:00:00", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_sent_at(text: str, expected: datetime | None) -> None:
    mirrored = decode(record(changed(sent_at=text)), NOW)
    assert mirrored.sent_at == expected
    assert ("gnomon.dropped" in mirrored.tags) == (expected is None)


def test_lone_surrogates_become_replacement_characters() -> None:
    body = r'{"mod\udc00el": "a", "messages": [{"content": "x\ud800y \ud83d\ude00"}]}'
    value = r'{"schema": "gnomon.mirror/1", "request_id": "r\udfff", "request": ' + body + "}"
    mirrored = read(value.encode())
    assert mirrored.has_lone_surrogates
    assert mirrored.request_id == "r\ufffd"
    assert mirrored.body == {"mod\ufffdel": "a", "messages": [{"content": "x\ufffdy \U0001f600"}]}


def test_surrogates_written_straight_into_utf8() -> None:
    # U+1F600 as a pair of three-byte halves, then the first half alone.
    pair, alone = b"\xed\xa0\xbd\xed\xb8\x80", b"\xed\xa0\xbd"
    paired = read(b'{"prompt": "' + pair + b'"}')
    assert paired.body == {"prompt": "\U0001f600"}
    assert not paired.has_lone_surrogates
    single = read(b'{"prompt": "' + alone + b'"}')
    assert single.body == {"prompt": "\ufffd"}
    assert single.has_lone_surrogates


def test_nan_and_infinity_become_null_in_the_request_and_names_in_the_answer() -> None:
    value = changed(
        request=BODY | {"temperature": float("nan"), "top_p": float("inf")},
        response={"status": 200, "body": {"logprobs": [float("nan"), float("-inf"), -0.5]}, "latency_ms": 1},
    )
    mirrored = decode(record(value), NOW)
    assert mirrored.body == BODY | {"temperature": None, "top_p": None}
    assert mirrored.production is not None
    assert mirrored.production.body == {"logprobs": ["NaN", "-Infinity", -0.5]}
    assert mirrored.tags == {"build": "1841", "gnomon.non_finite": "true"}


def test_number_beyond_a_double_is_not_finite() -> None:
    mirrored = read(b'{"messages": [], "temperature": 1e999}')
    assert mirrored.body == {"messages": [], "temperature": None}


def test_byte_order_mark_is_no_matter() -> None:
    assert decode(record(b"\xef\xbb\xbf" + changed()), NOW) == read(FULL)


def test_nesting_up_to_the_limit_is_read() -> None:
    # The envelope, the request and 126 arrays are 128 levels.
    deep = json.loads("[" * 126 + "]" * 126)
    assert decode(record(changed(request={"a": deep})), NOW).body == {"a": deep}
    assert refused(changed(request={"a": [deep]})).reason == "too_deep"


@pytest.mark.parametrize(
    ("offset", "expected", "is_suspect"),
    [
        (timedelta(0), timedelta(0), False),
        (timedelta(days=-7), timedelta(days=-7), False),
        (timedelta(days=7), timedelta(days=7), False),
        (timedelta(days=-7, milliseconds=-1), timedelta(days=-7), True),
        (timedelta(days=7, milliseconds=1), timedelta(days=7), True),
        (timedelta(days=400_000), timedelta(days=7), True),
    ],
)
def test_time_is_clamped_to_seven_days(offset: timedelta, expected: timedelta, is_suspect: bool) -> None:
    milliseconds = NOW_MS + offset // timedelta(milliseconds=1)
    assert clamp_time(milliseconds, NOW) == (NOW + expected, is_suspect)
    mirrored = decode(record(changed(), timestamp_ms=milliseconds), NOW)
    assert (mirrored.mirrored_at, mirrored.is_clock_suspect) == (NOW + expected, is_suspect)


def test_record_without_a_time() -> None:
    assert clamp_time(-1, NOW) == (NOW, True)
    assert clamp_time(2**63 - 1, NOW) == (NOW + timedelta(days=7), True)


def test_oversize_is_over_16_mib() -> None:
    fits = b" " * (16 * 1024 * 1024)
    assert len(fits) == MAX_REQUEST_BYTES
    assert oversize(record(fits)) is None
    assert oversize(record(None)) is None
    skipped = oversize(record(fits + b"x"))
    assert skipped is not None
    assert skipped.reason == SkipReason.OVERSIZE
    assert skipped.detail == f"16777217 bytes, sha256 {hashlib.sha256(fits + b'x').hexdigest()}"


MUTABLE = json.dumps(FULL).encode()
SHAPES = [
    FULL,
    {"id": "x", "call_type": "acompletion", "startTime": 1.0, "messages": [], "model_parameters": {}},
    {"Req_URL": "/v1/chat/completions", "Req_ID": "a", "Req_Type": "1", "Req_Body": "{}", "Req_Ts": "1"},
    BODY,
]


def ends_well(value: bytes) -> None:
    """The value decodes into something that can be encoded again, or is a dead letter."""
    try:
        mirrored = decode(record(value), NOW)
    except DeadLetterError as error:
        assert error.reason
        assert "\n" not in str(error)
    else:
        json.dumps([mirrored.body, mirrored.tags], allow_nan=False).encode()
        mirrored.request_id.encode()


@given(st.binary())
def test_arbitrary_bytes(value: bytes) -> None:
    ends_well(value)


@given(st.integers(0, len(MUTABLE)), st.binary(max_size=3), st.integers(0, 3))
def test_damaged_envelope(at: int, patch: bytes, removed: int) -> None:
    ends_well(MUTABLE[:at] + patch + MUTABLE[at + removed :])


@given(st.sampled_from(SHAPES), st.data())
def test_any_json_in_any_field(shape: dict[str, Any], data: st.DataObject) -> None:
    replaced = data.draw(st.dictionaries(st.sampled_from(sorted(shape)), JSON))
    ends_well(json.dumps(shape | replaced).encode())
