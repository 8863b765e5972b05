"""What the tests of the whole pipeline share: settings, mirrored records, a look into the store."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compare.demo.broker import EmbeddedBroker, create_topic
from compare.store.client import open_store
from ingest.settings import (
    CompareSettings,
    DeliverySettings,
    EndpointSettings,
    ExperimentSettings,
    KafkaSettings,
    Settings,
    StoreSettings,
)
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import Service


def envelope(request_id: str, content: str = "Say something.", **body: object) -> bytes:
    """A record in the native envelope."""
    request = {"model": "m", "messages": [{"role": "user", "content": content}], **body}
    record = {"schema": "gnomon.mirror/1", "request_id": request_id, "request": request}
    return json.dumps(record).encode()


class Bench:
    """A topic on a broker, a store folder, and settings that join them to two endpoints."""

    def __init__(self, bootstrap: str, folder: Path, reference_url: str, candidate_url: str) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        name = uuid.uuid4().hex[:8]
        self.topic, self.dead_topic, self.group = f"mirror-{name}", f"dead-{name}", f"group-{name}"
        self.settings = Settings(
            experiment=ExperimentSettings(
                name="e",
                reference="ref",
                candidates=["cand"],
                models={"*": {"ref": "smollm2-q8_0", "cand": "smollm2-mxfp4"}},
                noise_fraction=0.0,
                forced_fraction=0.0,
                max_tokens_cap=3,
            ),
            endpoints={
                "ref": EndpointSettings(url=reference_url),
                "cand": EndpointSettings(url=candidate_url),
            },
            kafka=KafkaSettings(
                bootstrap_servers=[bootstrap],
                topic=self.topic,
                dead_letter_topic=self.dead_topic,
                group=self.group,
                session_timeout_ms=6000,
                heartbeat_interval_ms=500,
                max_poll_interval_ms=10_000,
            ),
            store=StoreSettings(url=f"chdb://{folder}"),
            compare=CompareSettings(embedding_model=""),
            delivery=DeliverySettings(batch_pairs=50, batch_seconds=0.2, commit_interval_s=0.3),
        )

    def make_topics(self, partitions: int = 1) -> None:
        """Make the two topics."""
        create_topic(self.bootstrap, self.topic, partitions=partitions)
        create_topic(self.bootstrap, self.dead_topic, partitions=1)

    def produce(self, values: list[bytes], partitions: int = 1) -> None:
        """Send records, in turn to each partition."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        for number, value in enumerate(values):
            producer.send(self.topic, value, partition=number % partitions)
        producer.flush()
        producer.close()

    def committed(self, partition: int = 0) -> int | None:
        """The group's committed offset."""
        reader = KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=self.group, enable_auto_commit=False
        )
        try:
            offset = reader.committed(TopicPartition(self.topic, partition), timeout_ms=5000)
        finally:
            reader.close(autocommit=False)
        return None if offset is None else int(offset)

    def dead_letters(self, count: int) -> list[tuple[bytes, dict[str, bytes]]]:
        """Value and headers of the first `count` letters in the dead-letter topic."""
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap)
        tp = TopicPartition(self.dead_topic, 0)
        reader.assign([tp])
        reader.seek(tp, 0)
        found: list[tuple[bytes, dict[str, bytes]]] = []
        try:
            while len(found) < count:
                polled = reader.poll(timeout_ms=5000)
                assert polled, f"only {len(found)} of {count} dead letters came"
                found.extend((r.value, dict(r.headers)) for r in polled.get(tp, []))
        finally:
            reader.close()
        return found

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The answer to a query of the store."""
        with open_store(self.settings.store, role="any") as store:
            return store.query(sql).rows


@pytest.fixture
def stubs() -> Iterator[tuple[StubEndpoint, StubEndpoint]]:
    """Two stub endpoints that agree."""
    with StubEndpoint() as reference, StubEndpoint() as candidate:
        yield reference, candidate


@pytest.fixture
def bench(
    broker: EmbeddedBroker,
    tmp_path: Path,
    stubs: tuple[StubEndpoint, StubEndpoint],
    migrated_at: MigratedAt,
) -> Bench:
    """One topic with one partition on the session's broker, a migrated store, and stub endpoints."""
    made = Bench(broker.bootstrap, tmp_path / "store", stubs[0].url, stubs[1].url)
    migrated_at(made.folder)
    made.make_topics()
    return made


@pytest.fixture(autouse=True)
def services_end() -> Iterator[None]:
    """No service outlives its test: the next one could not open a store."""
    yield
    Service.end_all()
