"""What serves an experiment is written down when it changes: real llama.cpp servers, the real store."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import urllib.request
import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from compare.register import register_experiment
from compare.served_watch import ServedWatch, role_of
from compare.store import Store
from compare.writer import Writer
from ingest.records import ServedBy
from ingest.served import Served
from ingest.settings import EndpointSettings, ExperimentSettings, KafkaSettings, Settings, StoreSettings
from tests.compare import batches

NOWHERE = "http://127.0.0.1:9"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def settings_for(store: StoreSettings, reference: str, candidate: str) -> Settings:
    return Settings(
        experiment=ExperimentSettings(
            name=f"e-{uuid.uuid4().hex[:8]}", reference="full", candidates=["q4"], models={}
        ),
        endpoints={
            "full": EndpointSettings(url=reference, max_attempts=1, breaker_failures=0),
            "q4": EndpointSettings(url=candidate, max_attempts=1, breaker_failures=0),
        },
        kafka=KafkaSettings(),
        store=store,
    )


def rows(store: Store, settings: Settings, columns: str, role: str) -> list[tuple[Any, ...]]:
    return store.query(
        f"SELECT {columns} FROM served_v1 WHERE experiment = {{experiment:String}} AND role = {{role:String}}"
        " ORDER BY seen_at, model",
        {"experiment": settings.experiment.name, "role": role},
    ).rows


def test_a_restart_with_another_model_is_a_new_row_and_what_is_away_none(
    migrated_store: Store, store_settings: StoreSettings, model_paths: ModelPaths
) -> None:
    port = free_port()
    settings = settings_for(store_settings, NOWHERE, f"http://127.0.0.1:{port}")
    digest = register_experiment(migrated_store, settings)
    watch = ServedWatch(migrated_store, settings)
    assert watch.run_once() == 0
    written = []
    for model in (model_paths.candidate, model_paths.candidate, model_paths.reference):
        with LlamaServer(model, alias="smollm2", port=port) as server:
            with urllib.request.urlopen(f"{server.url}/props") as answer:
                props = json.load(answer)
            written.append(watch.run_once())
    assert written == [1, 0, 1]
    columns = "model, engine, engine_version, quantization, model_file, chat_template_sha256, weights_sha256"
    template = hashlib.sha256(props["chat_template"].encode()).hexdigest()
    said = ("smollm2", "llama.cpp", props["build_info"])
    assert rows(migrated_store, settings, columns, "candidate") == [
        (*said, "MXFP4 MoE", model_paths.candidate.name, template, None),
        (*said, "Q8_0", model_paths.reference.name, template, None),
    ]
    (first, second) = rows(migrated_store, settings, "seen_at, until_at, weights_bytes", "candidate")
    assert first[1] == second[0]
    assert second[1] is None
    assert 0 < first[2] < second[2]
    assert rows(migrated_store, settings, "*", "reference") == []
    ((hash_of, served),) = migrated_store.query(
        "SELECT settings_hash, served FROM experiments_v1 WHERE experiment = {experiment:String}",
        {"experiment": settings.experiment.name},
    ).rows
    assert hash_of == digest
    assert list(json.loads(served)) == ["q4"]
    assert json.loads(served)["q4"]["quantization"] == "Q8_0"
    assert json.loads(served)["q4"]["weights_sha256"] is None


def test_each_kind_that_the_records_tell_is_one_row_of_production(
    migrated_store: Store, store_settings: StoreSettings
) -> None:
    settings = settings_for(store_settings, NOWHERE, NOWHERE)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    settings = msgspec.structs.replace(settings, kafka=msgspec.structs.replace(settings.kafka, topic=topic))
    watch = ServedWatch(migrated_store, settings)
    assert watch.note({}) == 0
    now = datetime.now(UTC).replace(microsecond=0)
    kinds = [ServedBy(model="m-1", engine="vllm"), ServedBy(model="m-2", weights_sha256="ab")]
    pairs = []
    for offset, kind in enumerate([*kinds, *kinds]):
        where = msgspec.structs.replace(batches.position(offset, topic_id=topic), topic=topic)
        request = batches.mirrored(offset, position=where, served_by=kind, ingested_at=now, mirrored_at=now)
        pairs.append(batches.compared(offset, request=request))
    Writer(migrated_store, threading.Event()).write(batches.batch(*pairs))
    assert watch.note({}) == 2
    assert watch.note({}) == 0
    columns = "endpoint_name, model, engine, weights_sha256, seen_at, until_at"
    assert rows(migrated_store, settings, columns, "production") == [
        ("", "m-1", "vllm", None, now, None),
        ("", "m-2", None, "ab", now, None),
    ]


def test_back_to_what_it_was_is_a_change_too_and_two_services_that_see_it_are_one_row(
    migrated_store: Store, store_settings: StoreSettings
) -> None:
    settings = settings_for(store_settings, NOWHERE, NOWHERE)
    one, other = ServedWatch(migrated_store, settings), ServedWatch(migrated_store, settings)
    old, new = Served(engine="vllm", engine_version="1"), Served(engine="vllm", engine_version="2")
    for told in (old, new, new, old):
        one.note({"full": told})
        other.note({"full": told})
    # What a second service wrote at the same moment, before it could see the first one's row.
    other._store.insert(
        "served",
        tuple(row := other._row("reference", "full", old, *[batches.NOON] * 2)),
        [tuple(row.values())],
    )
    found = rows(migrated_store, settings, "engine_version, until_at IS NULL", "reference")
    assert found == [("1", False), ("2", False), ("1", True)]
    assert rows(migrated_store, settings, "*", "candidate") == []


def test_nothing_told_is_no_row(migrated_store: Store, store_settings: StoreSettings) -> None:
    settings = settings_for(store_settings, NOWHERE, NOWHERE)
    assert ServedWatch(migrated_store, settings).note({"full": Served(), "q4": Served()}) == 0


@pytest.mark.parametrize("name", ["full", "second"])
def test_both_references_are_references(store_settings: StoreSettings, name: str) -> None:
    experiment = ExperimentSettings(
        name="e", reference="full", reference_b="second", candidates=["q4"], models={}
    )
    assert role_of(experiment, name) == "reference"
    assert role_of(experiment, "q4") == "candidate"
