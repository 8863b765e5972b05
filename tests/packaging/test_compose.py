"""docker-compose.yml is what a Compose parser accepts, and agrees with the settings."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ingest.settings import KafkaSettings, Settings, StoreSettings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"


def parsed() -> dict[str, Any]:
    environment = dict(os.environ, GNOMON_STORE_PASSWORD="not-a-real-one")
    done = subprocess.run(
        ["docker-compose", "-f", str(COMPOSE), "config"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    config: dict[str, Any] = yaml.safe_load(done.stdout)
    return config


def test_a_compose_parser_accepts_the_file_and_finds_the_four_services() -> None:
    assert set(parsed()["services"]) == {"kafka", "clickhouse", "pipeline", "dashboard"}


def test_the_parser_refuses_the_file_without_the_password() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GNOMON_STORE_PASSWORD"}
    done = subprocess.run(
        ["docker-compose", "-f", str(COMPOSE), "config", "-q"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "set GNOMON_STORE_PASSWORD" in done.stderr


def test_every_gnomon_variable_is_a_setting() -> None:
    sections: dict[str, type[msgspec.Struct]] = {"KAFKA": KafkaSettings, "STORE": StoreSettings}
    for name, service in parsed()["services"].items():
        for variable in service.get("environment", {}):
            if not variable.startswith("GNOMON_"):
                continue
            _, section, key = variable.split("_", 2)
            fields = {field.name.upper() for field in msgspec.structs.fields(sections[section])}
            assert key in fields, f"{name}: {variable}"
            assert section.lower() in {field.name for field in msgspec.structs.fields(Settings)}


def test_every_image_is_pinned_and_every_port_is_on_loopback() -> None:
    services = parsed()["services"]
    images = [service["image"] for service in services.values() if "image" in service]
    assert len(images) == 2
    assert all(re.fullmatch(r"[a-z/-]+:\d+(\.\d+)+", image) for image in images), images
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports), ports


def test_the_broker_takes_records_as_large_as_the_settings_allow() -> None:
    limit = int(parsed()["services"]["kafka"]["environment"]["KAFKA_MESSAGE_MAX_BYTES"])
    assert limit >= KafkaSettings().max_record_bytes
