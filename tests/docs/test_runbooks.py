"""docs/runbooks.md has a section for everything that can wake somebody, and each says what one needs then."""

from __future__ import annotations

import re

import pytest
import yaml

from compare.alerts.metrics import METRICS
from ingest.settings_rollback import SHIPPED_RULES
from tests.docs.pages import ROOT, anchors

PAGE = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:])
MODELS = [metric.name for metric in METRICS] + ["no_data", "golden"]
OURS = [
    rule["alert"]
    for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]


@pytest.mark.parametrize("name", MODELS)
def test_each_alert_of_a_model_says_what_it_means_where_to_look_what_to_do_and_how_to_silence(
    name: str,
) -> None:
    text = SECTIONS[name]
    for part in ("**Means**", "**First three looks**", "**Likely causes**", "**Do**", "**Silence**"):
        assert part in text, part
    assert "```sql" in text


def test_no_section_is_about_an_alert_that_there_is_not() -> None:
    conditions = {"Condition A", "Condition B", "Condition C"}
    assert set(SECTIONS) == {*MODELS, *conditions, *OURS}


def test_each_shipped_rule_of_condition_c_is_explained() -> None:
    assert {rule.name for rule in SHIPPED_RULES} == set(
        re.findall(r"^\| `([\w-]+)` \|", SECTIONS["Condition C"], re.M)
    )


def test_each_rule_of_prometheus_links_to_a_section() -> None:
    rules = yaml.safe_load((ROOT / "dashboards/prometheus/alerting_rules.yml").read_text())
    linked = [rule["annotations"]["runbook"] for group in rules["groups"] for rule in group["rules"]]
    assert len(linked) > 5
    for target in linked:
        path, _, anchor = target.partition("#")
        assert (ROOT / path).is_file(), target
        assert not anchor or anchor in anchors(ROOT / path), target
