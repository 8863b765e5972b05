"""The shipped requests: enough of them, varied, and readable by the decoder of mirrored records."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import jsonschema_rs
import pytest

from compare.demo.workload import WorkloadItem, mirrored_records, workload, write_all
from ingest.decode import decode
from ingest.records import MirroredRequest, RawRecord, SourcePosition

KINDS = {
    "log_system",
    "log_enforced",
    "ticket",
    "json_object",
    "plain",
    "chinese",
    "tools",
    "arithmetic",
    "multi_turn",
    "long",
    "adversarial",
    "completion",
    "writing",
}


def _decode(value: bytes) -> MirroredRequest:
    now = datetime.now(UTC)
    position = SourcePosition("gnomon.mirror", "id", 0, 0)
    return decode(RawRecord(position, int(now.timestamp() * 1000), None, value), now)


def _text(item: WorkloadItem) -> str:
    messages = item.request.get("messages", [])
    return str(item.request.get("prompt", "")) + "".join(message["content"] for message in messages)


def test_every_request_decodes_and_keeps_what_it_carries() -> None:
    items, records = workload(), [_decode(value) for value in mirrored_records(3, len(workload()))]
    assert len(items) == 64
    assert [record.request_id for record in records] == [f"demo-3-{n:03d}" for n in range(1, 65)]
    for item, record in zip(items, records, strict=True):
        assert record.body == item.request
        assert (record.route, record.tenant, record.endpoint) == (item.route, item.tenant, item.endpoint)
        assert record.served_by.quantization == "mxfp4"
        assert record.tags == {"kind": item.kind, "run": "3"}
    sent = [record.sent_at for record in records if record.sent_at is not None]
    assert [later - earlier for earlier, later in pairwise(sent)] == [timedelta(seconds=1)] * 63
    assert len({record.request_hash for record in records}) == 64


def test_every_kind_is_in_and_any_start_is_a_fair_sample() -> None:
    items = workload()
    whole = Counter(item.kind for item in items)
    assert set(whole) == KINDS
    assert {item.kind for item in items[:48]} == KINDS
    for count in (13, 24, 48):
        start = Counter(item.kind for item in items[:count])
        for kind, total in whole.items():
            assert abs(start[kind] - total * count / 64) <= 1.0, (kind, count)


def test_the_hard_input_is_in() -> None:
    texts = {item.kind: "" for item in workload()}
    for item in workload():
        texts[item.kind] += _text(item) + "\n"
    assert "A" * 400 in texts["adversarial"]
    assert "\x00" in texts["adversarial"] and "\x1b[31m" in texts["adversarial"]
    assert '{"a":[' * 24 in texts["adversarial"]
    assert "SELECT*FROM订单WHERE状态" in texts["adversarial"]
    for mark in ("业务码", "addr=0x", "\n\tat com.acme."):
        assert mark in texts["log_system"] and mark in texts["log_enforced"]
    assert max(len(_text(item)) for item in workload() if item.kind == "long") > 1000


def test_schemas_are_valid_and_tools_named() -> None:
    enforced = [item for item in workload() if item.kind == "log_enforced"]
    for item in enforced:
        schema = item.request["response_format"]["json_schema"]["schema"]
        jsonschema_rs.meta.validate(schema)
    for item in workload():
        if item.kind == "tools":
            assert item.request["tools"][0]["function"]["name"]


@pytest.mark.parametrize("count", [0, 65])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"count is {count}; the workload has 1 to 64 requests"):
        next(mirrored_records(1, count))


def test_all_requests_are_written_as_records(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_all(7)
    lines = capfdbinary.readouterr().out.splitlines()
    assert [json.loads(line)["request_id"] for line in lines] == [f"demo-7-{n:03d}" for n in range(1, 65)]
