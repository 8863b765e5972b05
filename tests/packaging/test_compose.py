"""docker-compose.yml: what the Compose Specification and a Compose parser accept, and what agrees with us.

No container runs here. What is held against the source: every variable, command, port, path, user and image.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from compare.demo.demo import CANDIDATE, REFERENCE
from ingest.load_settings import example_toml, load_settings
from ingest.settings import KafkaSettings, Settings
from tests.packaging.commands import check_command, option, port_of

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
FILE: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
ONE_SHOT = {"topics", "users", "models", "producer"}
OURS = {name for name, service in SERVICES.items() if service["image"].startswith("gnomon/")}
DEMO = ROOT / "deploy/compose/demo.toml"


def test_the_compose_specification_accepts_the_file() -> None:
    schema = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text()
    validator = jsonschema_rs.validator_for(json.loads(schema))
    assert [error.message for error in validator.iter_errors(FILE)] == []
    assert not validator.is_valid({"services": {"kafka": {"imagee": "x"}}})


def test_a_compose_parser_accepts_the_file() -> None:
    done = subprocess.run(
        ["docker-compose", "-f", str(COMPOSE), "--profile", "demo", "--profile", "monitoring", "config"],
        env={**os.environ, "GNOMON_CONFIG": str(DEMO)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(SERVICES)


def test_what_starts_with_which_profile() -> None:
    always = {"kafka", "topics", "clickhouse", "users", "pipeline", "watch", "dashboard"}
    by_profile: dict[str, set[str]] = {}
    for name, service in SERVICES.items():
        for profile in service.get("profiles", ["-"]):
            by_profile.setdefault(profile, set()).add(name)
    assert by_profile == {
        "-": always,
        "demo": {"models", "reference", "candidate", "producer"},
        "monitoring": {"prometheus", "alertmanager", "grafana"},
    }
    # Nobody waits for a service that a profile may leave out.
    for name in always:
        assert set(SERVICES[name].get("depends_on", {})) <= always, name


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert int(service["user"].split(":")[0]) > 0
    assert {"mem_limit", "cpus", "pids_limit", "tmpfs"} <= set(service)
    if name in ONE_SHOT:
        assert service["restart"] == "no"
        # Our images bring one, which asks a server: this is none.
        assert service.get("healthcheck") == ({"disable": True} if name in OURS else None)
    else:
        assert service["restart"] == "unless-stopped"
        assert {"test", "interval", "timeout", "retries", "start_period"} <= set(service["healthcheck"])


def test_images_are_pinned_by_a_whole_version_and_ours_are_built() -> None:
    for name, service in SERVICES.items():
        assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+(\.\d+)?", service["image"]), name
    built = {
        service["image"]: service["build"]["target"] for service in SERVICES.values() if "build" in service
    }
    assert set(built) == {SERVICES[name]["image"] for name in OURS}
    for image, target in built.items():
        assert image.split(":")[0] == f"gnomon/{target}"


def test_ports_are_published_on_loopback_and_never_on_an_internal_network() -> None:
    internal = {name for name, network in FILE["networks"].items() if network.get("internal")}
    assert internal == {"backend"}
    published = {}
    for name, service in SERVICES.items():
        for port in service.get("ports", []):
            host, outside, inside = port.split(":")
            assert host == "127.0.0.1"
            assert outside == inside
            assert set(service["networks"]) - internal, f"{name}: not published on an internal network"
            published[name] = int(inside)
    assert published == {
        "kafka": 29092,
        "clickhouse": 8123,
        "dashboard": 8501,
        "prometheus": 9090,
        "alertmanager": 9093,
        "grafana": 3000,
    }


def test_only_what_must_reach_other_machines_can() -> None:
    outside = {name for name, service in SERVICES.items() if "outside" in service.get("networks", [])}
    assert outside == {"pipeline", "watch", "alertmanager", "grafana"}
    assert FILE["networks"]["published"]["driver_opts"] == {
        "com.docker.network.bridge.enable_ip_masquerade": "false"
    }
    # Attached to the server's own network, where its administrator may connect.
    assert SERVICES["users"]["network_mode"] == "service:clickhouse"


def loaded(service: str, config: Path, secrets: Path) -> Settings:
    """The settings as the service's process would read them."""
    environment = {}
    for variable, value in SERVICES[service].get("environment", {}).items():
        text = str(value)
        if text.startswith("/run/secrets/"):
            secret = text.removeprefix("/run/secrets/")
            assert secret in SERVICES[service]["secrets"], f"{service} is not given {secret}"
            text = str(secrets / secret)
            Path(text).write_text(f"the {secret}\n")
        environment[variable] = text
    return load_settings(config, environment)


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_variable_is_a_setting_and_every_secret_a_file(name: str, tmp_path: Path) -> None:
    example = tmp_path / "gnomon.toml"
    example.write_text(example_toml())
    for config in (DEMO, example):
        settings = loaded(name, config, tmp_path)
        if name in ("pipeline", "watch"):
            assert settings.store.password == "the store_password"
            assert (settings.store.username, settings.store.url) == ("gnomon", "http://clickhouse:8123")
        if name == "dashboard":
            assert settings.store.password == "the dashboard_password"
            assert settings.store.username == "gnomon_dashboard"
        if name in ("pipeline", "watch", "producer"):
            assert settings.kafka.bootstrap_servers == ["kafka:9092"]


def test_every_secret_is_made_by_the_script_and_given_to_somebody(tmp_path: Path) -> None:
    names = set(FILE["secrets"])
    assert names == {name for service in SERVICES.values() for name in service.get("secrets", [])}
    script = tmp_path / "make-secrets"
    script.write_text((ROOT / "deploy/make-secrets").read_text())
    for _ in range(2):
        subprocess.run(["bash", str(script)], check=True, capture_output=True, timeout=30)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == names
    assert all(re.fullmatch(r"[0-9a-f]{48}", text) for text in made.values())
    assert len(set(made.values())) == len(names)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    for name, secret in FILE["secrets"].items():
        assert secret["file"] == f"./deploy/secrets/{name}"


def test_no_password_stands_in_the_file() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if "PASSWORD" in variable:
                assert str(value).startswith("/run/secrets/"), f"{name}: {variable}"


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_command_is_one_that_exists_with_these_options(name: str) -> None:
    command = SERVICES[name]["command"]
    if command[0] == "/bin/sh":
        lines = [line.split(" > ")[0].split() for line in command[2].strip().splitlines()]
        assert len(lines) == 2
        for line in lines:
            check_command(line)
    else:
        check_command(command)
    if name not in ONE_SHOT:
        kind, *probe = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        check_command(probe)


def test_each_health_check_asks_the_port_that_the_service_opens(tmp_path: Path) -> None:
    ports = {name: port_of(SERVICES[name]["healthcheck"]["test"][-1]) for name in OURS - ONE_SHOT}
    assert ports["pipeline"] == loaded("pipeline", DEMO, tmp_path).operations.port
    for name in ("watch", "dashboard", "reference", "candidate"):
        assert ports[name] == int(option(SERVICES[name]["command"], "--port")), name
    # What others ask for must not listen on loopback only.
    assert loaded("watch", DEMO, tmp_path).operations.host == "0.0.0.0"
    assert option(SERVICES["dashboard"]["command"], "--address") == "0.0.0.0"


def test_every_mounted_file_and_named_volume_exists() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = re.sub(r"^\$\{GNOMON_CONFIG:-(.*?)\}", r"\1", volume).split(":")[0]
            if source.startswith("./"):
                assert volume.endswith(":ro"), f"{name}: {volume}"
                assert (ROOT / source).exists(), f"{name}: {source}"
            else:
                assert source in FILE["volumes"], f"{name}: {source}"


def test_the_broker_and_its_topics_take_records_as_large_as_the_settings_allow() -> None:
    limit = KafkaSettings().max_record_bytes
    assert SERVICES["kafka"]["environment"]["KAFKA_MESSAGE_MAX_BYTES"] >= limit
    script = SERVICES["topics"]["command"][-1]
    found = re.search(r"max\.message\.bytes=(\d+)", script)
    assert found is not None
    assert int(found.group(1)) >= limit
    assert f"{KafkaSettings().topic} {KafkaSettings().dead_letter_topic};" in script


def test_the_service_has_longer_to_stop_than_it_drains(tmp_path: Path) -> None:
    settings = loaded("pipeline", DEMO, tmp_path)
    assert int(SERVICES["pipeline"]["stop_grace_period"].removesuffix("s")) > settings.delivery.drain_seconds


def test_the_demo_asks_the_servers_for_the_models_that_they_serve(tmp_path: Path) -> None:
    settings = loaded("pipeline", DEMO, tmp_path)
    served = {name: SERVICES[name]["command"] for name in ("reference", "candidate")}
    for name, command in served.items():
        assert settings.endpoints[name].url == f"http://{name}:{option(command, '--port')}"
        assert settings.experiment.models["*"][name] == option(command, "--alias")
    assert option(served["reference"], "--alias") == REFERENCE
    assert option(served["candidate"], "--alias") == CANDIDATE


def test_the_users_are_made_with_roles_that_the_grants_make() -> None:
    script = (ROOT / "deploy/clickhouse/make-users.sh").read_text()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=30)
    made = re.findall(r"^make_user (\w+) (\w+) (\w+)$", script, re.MULTILINE)
    assert {user for user, _, _ in made} == {"gnomon", "gnomon_dashboard"}
    for user, secret, role in made:
        assert secret in SERVICES["users"]["secrets"]
        file = ROOT / "sql/grants" / f"{role.removeprefix('gnomon_')}.sql"
        assert f"CREATE ROLE IF NOT EXISTS {role};" in file.read_text(), user
