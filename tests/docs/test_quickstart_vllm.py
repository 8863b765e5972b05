"""The code of docs/quickstart-vllm.md, run as it is printed, on a real broker."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from kafka import KafkaConsumer, TopicPartition

from compare.demo.broker import EmbeddedBroker
from ingest.decode import decode
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from tests.docs.pages import ROOT, blocks

CALLBACK, RECEIVER = (
    block.text for block in blocks(ROOT / "docs" / "quickstart-vllm.md") if block.language == "python"
)
MESSAGES = [{"role": "user", "content": "hi"}]
# As LiteLLM 1.110.2 made it of a streamed call, without what is not read.
PAYLOAD = {
    "id": "chatcmpl-02a46ea8",
    "call_type": "acompletion",
    "status": "success",
    "model": "prod",
    "model_group": "",
    "messages": MESSAGES,
    "model_parameters": {"stream": True, "stop": ["x"]},
    "startTime": 1796019982.414289,
    "endTime": 1796019983.1,
    "metadata": {"user_api_key_team_alias": "acme"},
    "response": {"choices": [{"finish_reason": "stop", "message": {"content": "hello"}}]},
    "error_information": {"error_code": ""},
}


def only_record(broker: EmbeddedBroker, topic: str) -> MirroredRequest:
    """What Gnomon reads of the topic's one record."""
    place = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, enable_auto_commit=False)
    try:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        found: list[Any] = []
        while not found:
            found = consumer.poll(timeout_ms=1_000).get(place, [])
        (record,) = found
    finally:
        consumer.close()
    raw = RawRecord(
        SourcePosition(topic, "id", 0, record.offset),
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
    )
    return decode(raw, datetime.now(UTC))


def test_what_the_litellm_callback_sends_is_read(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = ModuleType("litellm.integrations.custom_logger")
    monkeypatch.setattr(stub, "CustomLogger", type("CustomLogger", (), {}), raising=False)
    for name in ("litellm", "litellm.integrations"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, stub.__name__, stub)
    monkeypatch.setenv("GNOMON_KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap)
    monkeypatch.setenv("GNOMON_KAFKA_TOPIC", topic)
    names: dict[str, Any] = {}
    exec(CALLBACK, names)
    mirror = names["mirror"]
    # The first look at the topic may take longer than a client is let wait.
    mirror.producer.partitions_for(topic)
    asyncio.run(mirror.async_log_success_event({"standard_logging_object": PAYLOAD}, None, None, None))
    asyncio.run(mirror.async_log_failure_event({}, None, None, None))
    mirror.producer.close()
    read = only_record(broker, topic)
    assert (read.source_format, read.request_id, read.tenant) == ("litellm", "chatcmpl-02a46ea8", "acme")
    assert read.body == {"stream": True, "stop": ["x"], "model": "prod", "messages": MESSAGES}


async def test_what_the_receiver_is_sent_is_read(
    broker: EmbeddedBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNOMON_KAFKA_TOPIC", topic)
    names: dict[str, Any] = {"__name__": "mirror_receiver"}
    exec(RECEIVER, names)
    app = names["application"]([broker.bootstrap])
    producer = app[names["PRODUCER"]]
    await asyncio.to_thread(producer.partitions_for, topic)
    body = {"model": "prod", "messages": MESSAGES}
    headers = {
        "Host": "llm.example-shadow",
        "x-request-id": "7fb3",
        "x-tenant": "acme",
        "authorization": "Bearer secret",
    }
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/v1/models", headers=headers)).status == 204
        sent = await client.post("/v1/chat/completions", data=json.dumps(body), headers=headers)
        assert sent.status == 204
    await asyncio.to_thread(producer.close)
    read = await asyncio.to_thread(only_record, broker, topic)
    assert (read.source_format, read.request_id, read.tenant) == ("openai", "7fb3", "acme")
    assert (read.endpoint, read.body) == ("/v1/chat/completions", body)
    assert "secret" not in repr(read)
