"""Prometheus, Alertmanager and Grafana: their own checkers accept our files, which name what is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
PROMETHEUS = ROOT / "deploy/prometheus/prometheus.yml"
ALERTS = ROOT / "deploy/prometheus/alerts.yml"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def accepted(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_and_alertmanager_accept_the_files() -> None:
    accepted("promtool", "check", "config", PROMETHEUS)
    assert "8 rules found" in accepted("promtool", "check", "rules", ALERTS)
    accepted("amtool", "check-config", ROOT / "deploy/alertmanager/alertmanager.yml")


def test_prometheus_scrapes_ports_that_are_open_and_reads_rules_that_are_mounted() -> None:
    config = read(PROMETHEUS)
    open_ports = {
        "pipeline": SERVICES["pipeline"]["environment"]["GNOMON_OPERATIONS_PORT"],
        "watch": int(SERVICES["watch"]["command"][-1]),
        "alertmanager": 9093,
        "localhost": 9090,
    }
    targets = [
        target
        for job in config["scrape_configs"]
        for one in job.get("static_configs", [])
        for target in one["targets"]
    ]
    for job in config["scrape_configs"]:
        for one in job.get("dns_sd_configs", []):
            targets += [f"{name}:{one['port']}" for name in one["names"]]
    assert sorted(targets) == sorted(f"{host}:{port}" for host, port in open_ports.items())
    mounted = [volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]]
    assert "--config.file=/etc/prometheus/prometheus.yml" in SERVICES["prometheus"]["command"]
    (pattern,) = config["rule_files"]
    assert sum(Path(path).match(pattern) for path in mounted) == 3


def test_alerts_use_metrics_that_are_documented() -> None:
    documented = set(re.findall(r"`(gnomon_\w+)`", (ROOT / "docs/operations.md").read_text()))
    rules = [rule for group in read(ALERTS)["groups"] for rule in group["rules"]]
    used = {name for rule in rules for name in re.findall(r"\bgnomon_\w+", rule["expr"])}
    assert used
    assert used <= documented


def test_grafana_reads_the_folder_of_dashboards_and_asks_servers_that_run() -> None:
    folder = ROOT / "deploy/grafana/provisioning"
    sources = {one["type"]: one for one in read(folder / "datasources/gnomon.yml")["datasources"]}
    assert sources["prometheus"]["url"] == "http://prometheus:9090"
    clickhouse = sources["grafana-clickhouse-datasource"]
    assert clickhouse["jsonData"]["host"] in SERVICES
    assert clickhouse["jsonData"]["username"] == "gnomon_dashboard"
    # Grafana reads the file itself.
    password = clickhouse["secureJsonData"]["password"]
    assert password == "$__file{/run/secrets/dashboard_password}"
    assert "dashboard_password" in SERVICES["grafana"]["secrets"]
    (provider,) = read(folder / "dashboards/gnomon.yml")["providers"]
    mounts = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"])
    assert provider["options"]["path"] == mounts["./dashboards/grafana"]
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert (
        "grafana-clickhouse-datasource@" in SERVICES["grafana"]["environment"]["GF_PLUGINS_PREINSTALL_SYNC"]
    )
