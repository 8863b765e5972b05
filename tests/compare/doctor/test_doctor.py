from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaProducer, OffsetAndMetadata

from compare.cli.main import cli
from compare.demo.broker import EmbeddedBroker, create_topic
from compare.demo.llama_server import LlamaServer
from compare.doctor.check import Check, Status
from compare.doctor.doctor import examine, is_fit
from compare.doctor.encoder import check_encoder
from compare.doctor.kafka import _group, check_kafka
from compare.doctor.store import check_store
from compare.store import migrate, open_store
from ingest.settings import (
    CompareSettings,
    EndpointSettings,
    ExperimentSettings,
    KafkaSettings,
    Settings,
    StoreSettings,
)
from tests.compare.doctor.model_server import MadeUpModel, serving


def settings_of(reference: str, candidate: str, **more: Any) -> Settings:
    return Settings(
        experiment=ExperimentSettings(
            name="e",
            reference="ref",
            candidates=["cand"],
            models={"*": {"ref": "m", "cand": "m"}},
            forced_max_prompt_tokens=2000,
        ),
        endpoints={
            "ref": EndpointSettings(url=reference, max_attempts=1),
            "cand": EndpointSettings(url=candidate, max_attempts=1),
        },
        compare=CompareSettings(embedding_model=""),
        **more,
    )


def seen(reference: MadeUpModel, candidate: MadeUpModel) -> dict[str, Check]:
    """The checks of two endpoints, by name."""
    with serving(reference) as first, serving(candidate) as second:
        return {check.name: check for check in examine(settings_of(first, second), ("endpoints",))}


def test_two_sound_endpoints_pass() -> None:
    checks = seen(MadeUpModel(), MadeUpModel())
    assert {check.status for check in checks.values()} == {Status.OK, Status.UNKNOWN}
    assert [name for name, check in checks.items() if check.status is Status.UNKNOWN] == [
        "ref and cand: tokenizer"
    ]
    assert is_fit(list(checks.values()))
    assert checks["endpoint cand: logprob mode"].seen == "before temperature, before bias, before mask"
    assert checks["endpoint cand: top-k"].seen == "20 of 20 asked"
    assert checks["ref and cand: chat template"].seen == "the same number of prompt tokens for 4 chats"
    assert "is read from its first word" in checks["endpoint ref: context"].seen


@pytest.mark.parametrize(
    ("fault", "name", "status", "words"),
    [
        ({"scaled": True}, "endpoint cand: logprob mode", "fail", "after temperature"),
        ({"certain_when_greedy": True}, "endpoint cand: logprob mode", "fail", "certain at temperature 0"),
        ({"masked": True}, "endpoint cand: logprob mode", "ok", "before temperature, after bias, after mask"),
        ({"top": 5}, "endpoint cand: top-k", "warn", "5 of 20 asked"),
        ({"streams": False}, "endpoint cand: logprobs in streams", "warn", "without streaming"),
        ({"has_logprobs": False}, "endpoint cand: logprobs", "fail", "none"),
        ({"has_usage": False}, "endpoint cand: usage", "warn", "the answer has none"),
        ({"has_usage": False}, "ref and cand: chat template", "warn", "reports no prompt_tokens"),
        ({"is_random": True}, "endpoint cand: repeats itself", "warn", "two answers at temperature 0"),
        ({"models": ["other", "two"]}, "endpoint cand: engine", "fail", "it lists other, two, not m"),
        ({"status": 500}, "endpoint cand: answer", "fail", "the GPU fell off"),
        ({"context": 500, "cuts": True}, "endpoint cand: context", "fail", "changes nothing"),
        ({"context": 500}, "endpoint cand: context", "warn", "it is too long"),
        ({"template_words": 9}, "ref and cand: chat template", "fail", "plain: 6 prompt tokens against 12"),
    ],
)
def test_a_fault_of_the_candidate_is_told_with_what_to_do(
    fault: dict[str, Any], name: str, status: str, words: str
) -> None:
    check = seen(MadeUpModel(), MadeUpModel(**fault))[name]
    assert check.status == status
    assert words in check.seen
    assert bool(check.advice) == (status != "ok")


def test_a_long_prompt_that_is_slow_is_not_taken_for_one_that_is_cut() -> None:
    with serving(MadeUpModel()) as first, serving(MadeUpModel(slow_from=500, streams=False)) as second:
        settings = settings_of(first, second)
        slow = msgspec.structs.replace(settings.endpoints["cand"], total_timeout_s=0.5)
        settings = msgspec.structs.replace(settings, endpoints={**settings.endpoints, "cand": slow})
        checks = {check.name: check for check in examine(settings, ("endpoints",))}
    found = checks["endpoint cand: context"]
    assert "total_timeout" in found.seen
    assert "longer than total_timeout_s" in found.advice and "larger context" not in found.advice


def test_an_absent_endpoint_and_an_unmapped_one_are_told() -> None:
    with serving(MadeUpModel()) as url:
        settings = settings_of(url, "http://127.0.0.1:1")
        checks = {check.name: check for check in examine(settings, ("endpoints",))}
        assert checks["endpoint cand: connection"].status is Status.FAIL
        assert "127.0.0.1:1" in checks["endpoint cand: connection"].seen
        # As the settings are by default, it is tried three times, and not for a minute.
        settings.endpoints["cand"] = EndpointSettings(url="http://127.0.0.1:1")
        checks = {check.name: check for check in examine(settings, ("endpoints",))}
        assert "is away after 3 attempts" in checks["endpoint cand: connection"].seen
        settings.experiment.models["*"].pop("cand")
        checks = {check.name: check for check in examine(settings, ("endpoints",))}
        assert checks["endpoint cand: model"].seen == "none is mapped for '*'"


def test_llama_cpp_is_known_and_tokenizes(
    reference_server: LlamaServer, candidate_server: LlamaServer
) -> None:
    """Real servers; a short context, since a prompt of thousands of tokens takes a minute here."""
    settings = settings_of(reference_server.url, candidate_server.url)
    names = {"ref": "smollm2-q8_0", "cand": "smollm2-mxfp4"}
    experiment = ExperimentSettings(
        name="e", reference="ref", candidates=["cand"], models={"*": names}, forced_max_prompt_tokens=400
    )
    settings = Settings(experiment=experiment, endpoints=settings.endpoints)
    checks = {check.name: check for check in examine(settings, ("endpoints",))}
    assert {name: check.status.value for name, check in checks.items() if check.status != "ok"} == {}
    assert checks["endpoint ref: engine"].seen.startswith("llama.cpp ")
    assert checks["endpoint ref: token identity"].seen == "ids and bytes"
    assert checks["endpoint ref: logprob mode"].seen == "before temperature, before bias, before mask"
    assert checks["ref and cand: tokenizer"].seen == "the same ids for 3 texts"


def test_broker_topics_and_sizes(broker: EmbeddedBroker, topic: str) -> None:
    kafka = KafkaSettings(
        bootstrap_servers=[broker.bootstrap], topic=topic, dead_letter_topic=f"{topic}-dead", group=topic
    )
    checks = {check.name: check for check in check_kafka(kafka)}
    assert checks["kafka: broker"].status is Status.OK
    assert checks[f"kafka: topic {topic}"].seen == "1 partition"
    assert checks[f"kafka: topic {topic}-dead"].status is Status.FAIL
    assert checks[f"kafka: group {topic}"].seen.startswith("has committed nothing yet")
    assert checks["kafka: clock"].status is Status.UNKNOWN
    assert checks[f"kafka: message size of {topic}"].seen == "max.message.bytes is 20971520"

    create_topic(broker.bootstrap, f"{topic}-dead", partitions=1, max_message_bytes=1_000_000)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    producer.send(topic, b"x", timestamp_ms=4_000_000_000_000)
    producer.flush()
    producer.close()
    checks = {check.name: check for check in check_kafka(kafka)}
    assert checks[f"kafka: topic {topic}-dead"].status is Status.OK
    assert checks[f"kafka: message size of {topic}-dead"].status is Status.WARN
    assert checks["kafka: clock"].status is Status.WARN
    assert "into the future" in checks["kafka: clock"].seen


def test_a_group_of_another_experiment() -> None:
    """Tansu drops what is noted with an offset."""

    class Consumer:
        def committed(self, place: object, **options: object) -> OffsetAndMetadata:
            return OffsetAndMetadata(7, "gnomon experiment theirs", -1)

    kafka = KafkaSettings(topic="t", group="g")
    [check] = _group(Consumer(), kafka, {0, 1}, "mine")
    assert check.status is Status.WARN
    assert check.seen == "has committed offsets of 2 of 2 partitions, by experiment theirs"
    [check] = _group(Consumer(), kafka, {0, 1}, "theirs")
    assert check.status is Status.OK


def test_an_absent_broker_is_one_failure() -> None:
    checks = check_kafka(KafkaSettings(bootstrap_servers=["127.0.0.1:1"]))
    assert [(check.name, check.status.value) for check in checks] == [
        ("kafka: crc32c", "ok"),
        ("kafka: broker", "fail"),
    ]
    assert "127.0.0.1:1" in checks[1].seen


def test_the_store_before_and_after_migration(tmp_path: Path) -> None:
    settings = StoreSettings(url=f"chdb://{tmp_path / 'store'}")
    [check] = check_store(settings)
    assert (check.name, check.status.value) == ("store: schema", "warn")
    assert "gnomon migrate" in check.advice
    with open_store(settings, role="owner") as store:
        migrate.apply(store)
    checks = {check.name: check for check in check_store(settings)}
    assert {name: check.status.value for name, check in checks.items() if check.status != "ok"} == {}
    assert checks["store: deduplication"].seen == "the last 10000 inserts are remembered"
    assert checks["store: schema"].seen == "up to date"
    with open_store(settings, role="owner") as store:
        store.command("ALTER TABLE pairs MODIFY SETTING non_replicated_deduplication_window = 10")
    checks = {check.name: check for check in check_store(settings)}
    assert checks["store: deduplication"].status is Status.FAIL


def test_a_folder_that_cannot_be_written_is_told_as_a_folder(tmp_path: Path) -> None:
    """A file stands where the folder should be, which nobody can write into, root neither."""
    (tmp_path / "file").write_text("")
    (check,) = check_store(StoreSettings(url=f"chdb://{tmp_path}/file/store"))
    assert (check.name, check.status) == ("store: connection", Status.FAIL)
    assert "a folder on a local disk that this user may write" in check.advice
    assert "PASSWORD" not in check.advice and "ClickHouse" not in check.advice


def test_an_absent_store_is_one_failure() -> None:
    [check] = check_store(StoreSettings(url="http://127.0.0.1:1"))
    assert (check.name, check.status.value) == ("store: connection", "fail")


def test_the_packaged_encoder_tells_texts_apart_and_cannot_read_chinese() -> None:
    checks = {check.name: check for check in check_encoder("packaged")}
    assert checks["encoder: cosine"].status is Status.OK
    assert checks["encoder: languages"].seen == "Chinese is unscored: unknown_pieces"
    assert check_encoder("")[0].seen == "off"
    assert check_encoder("/nowhere/at/all")[0].status is Status.FAIL


def test_the_command_prints_advice_and_ends_with_one(tmp_path: Path) -> None:
    file = tmp_path / "gnomon.toml"
    with serving(MadeUpModel()) as first, serving(MadeUpModel(scaled=True)) as second:
        file.write_text(
            f"""
[experiment]
name = "e"
reference = "ref"
candidates = ["cand"]
models = {{"*" = {{ref = "m", cand = "m"}}}}
forced_max_prompt_tokens = 500
[endpoints.ref]
url = "{first}"
[endpoints.cand]
url = "{second}"
"""
        )
        arguments = ["doctor", "--config", str(file), "--only", "endpoints"]
        shown = CliRunner().invoke(cli, arguments)
        as_json = CliRunner().invoke(cli, [*arguments, "--json"])
    assert (shown.exit_code, as_json.exit_code) == (1, 1)
    lines = shown.stdout.splitlines()
    place = lines.index("fail    endpoint cand: logprob mode: logprobs are those after temperature")
    assert lines[place + 1].startswith("        -> entropy and KL of such lists say nothing of the model")
    assert lines[-1].endswith("1 fail, 1 unknown")
    failed = [check["name"] for check in json.loads(as_json.stdout) if check["status"] == "fail"]
    assert failed == ["endpoint cand: logprob mode"]
