"""Rules, Grafana dashboard and documented names, against Prometheus' own tool and the real registry."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from compare.alerts.status import RunnerStatus
from compare.counters import Counters
from compare.operations.alert_metrics import AlertCollector
from compare.operations.golden_metrics import GoldenCollector
from compare.operations.metrics import ServiceMetrics
from compare.operations.rollback_metrics import RollbackCollector
from compare.operations.state import ServiceState
from ingest.kafka_source import Progress

ROOT = Path(__file__).parents[2]
RULES = ROOT / "dashboards" / "prometheus" / "recording_rules.yml"
ALERTS = RULES.with_name("alerting_rules.yml")
GRAFANA = ROOT / "dashboards" / "grafana" / "gnomon-prometheus.json"
CASES = Path(__file__).parent / "prometheus"
DOCUMENT = ROOT / "docs" / "operations.md"


@pytest.fixture
def metrics_page() -> str:
    """What a service with one partition and one endpoint exports before its first record."""
    quiet = SimpleNamespace(is_open=False, openings=0)
    admission = SimpleNamespace(in_flight=0, in_flight_bytes=0, waiting=0, breaker=quiet, is_paused=False)
    endpoint = SimpleNamespace(admission=admission, budget=SimpleNamespace(used=lambda: 0))
    source = SimpleNamespace(
        waiting=(0, 0), progress=lambda: {0: Progress(5, 9)}, held_partitions=frozenset({0})
    )
    parts: Any = {
        "pipeline": SimpleNamespace(counters=Counters(), is_started=True, is_draining=False),
        "source": source,
        "ledger": SimpleNamespace(outstanding=lambda: 0),
        "endpoints": {"awq": endpoint},
    }
    state = ServiceState(experiment="e", store_away_s=lambda: 0.0, **parts)
    registry = ServiceMetrics(state).registry
    registry.register(AlertCollector(lambda: RunnerStatus(is_leader=True, last_run_s=1.0)))
    registry.register(GoldenCollector(lambda: ()))
    registry.register(RollbackCollector(dict))
    return generate_latest(registry).decode()


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("rules", [RULES, ALERTS], ids=lambda path: path.stem)
def test_the_rules_make_what_they_say(rules: Path, tmp_path: Path) -> None:
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", rules)
    assert checked.returncode == 0, checked.stderr
    cases = tmp_path / "cases.yml"
    cases.write_text((CASES / f"{rules.stem}_test.yml").read_text().replace("RULES", str(rules)))
    tested = promtool("test", "rules", cases)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_alert_says_what_is_wrong_and_where_to_read_on() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    own = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    names = [rule["alert"] for rule in rules]
    # Both files may be loaded.
    assert set(names).isdisjoint(rule["alert"] for group in own for rule in group["rules"])
    assert len(set(names)) == len(names)
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, rule["alert"]
        assert rule["annotations"]["summary"]


def test_rules_and_document_name_only_metrics_that_exist(metrics_page: str) -> None:
    exported = {
        sample.name for family in text_string_to_metric_families(metrics_page) for sample in family.samples
    } | {family.name for family in text_string_to_metric_families(metrics_page)}
    # A histogram without a sample shows its name only.
    known = exported | {name.removesuffix("_total") for name in exported}
    for file in (RULES, ALERTS, GRAFANA, DOCUMENT):
        named = set(re.findall(r"\bgnomon_[a-z0-9_]+\b", file.read_text())) - {"gnomon_existing_names"}
        missing = {
            name
            for name in named
            if name not in known and re.sub(r"_(total|bucket|info)$", "", name) not in known
        }
        assert missing == set(), file.name
    described = set(re.findall(r"`(gnomon_[a-z0-9_]+)`", DOCUMENT.read_text()))
    families = {family.name for family in text_string_to_metric_families(metrics_page)}
    undescribed = {
        name
        for name in families
        if name.startswith("gnomon_")
        and not name.endswith("_created")
        and not {name, f"{name}_total", f"{name}_info"} & described
    }
    assert undescribed == set()
