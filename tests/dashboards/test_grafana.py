"""The Grafana dashboards: sound JSON, and each ClickHouse panel's SQL runs on a real store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dashboards
from compare.rollups.rebuild import Rollups
from compare.store import Store, open_store
from tests.dashboards import busy
from tests.fixtures.stores import MigratedAt

FOLDER = Path(dashboards.__file__).with_name("grafana")
FILES = sorted(FOLDER.glob("*.json"))
SOURCES = {"gnomon-clickhouse.json": "gnomon-clickhouse", "gnomon-prometheus.json": "gnomon-prometheus"}
EMPTY = {"Open alerts", "Firing alerts", "Slices with most regressions"}
"""Panels that may have no row in this store."""


def read(file: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return made


def filled_in(sql: str, start: datetime, end: datetime) -> str:
    """The SQL as the plugin sends it, for one experiment and two candidates."""
    begin, until = (f"toDateTime({int(at.timestamp())})" for at in (start, end))
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 >= {begin} AND \1 <= {until}", sql)
    sql = re.sub(
        r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(toDateTime(\1), INTERVAL 3600 second)", sql
    )
    sql = sql.replace("$__fromTime", begin).replace("$__toTime", until)
    sql = sql.replace("${experiment:sqlstring}", "'busy'").replace(
        "${candidate:sqlstring}", "'awq','o''neil'"
    )
    assert "$" not in sql, sql
    return sql


def statements() -> list[tuple[str, str]]:
    made = read(FOLDER / "gnomon-clickhouse.json")
    found = [
        (panel["title"], target["rawSql"]) for panel in made["panels"] for target in panel.get("targets", [])
    ]
    return found + [(one["name"], one["query"]) for one in made["templating"]["list"]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    settings = migrated_at(tmp_path_factory.mktemp("grafana"))
    with open_store(settings, role="owner") as opened:
        busy.fill(opened)
        Rollups(opened, settings).rebuild_touched()
        yield opened


@pytest.mark.parametrize(("title", "sql"), statements(), ids=lambda value: str(value)[:40])
def test_each_panel_has_rows_on_a_real_store(store: Store, title: str, sql: str) -> None:
    now = datetime.now(UTC)
    answer = store.query(filled_in(sql, now - timedelta(days=1), now))
    assert answer.column_names
    assert len(answer) or title in EMPTY
    if "$__timeInterval" in sql or " AS time," in sql:
        assert answer.column_names[0] == "time"
        assert isinstance(answer.rows[0][0], datetime)
    for view in re.findall(r"FROM (\w+)", sql):
        assert view.endswith("_v1")


def test_panels_count_what_is_stored(store: Store) -> None:
    now = datetime.now(UTC)
    known = {
        title: store.query(filled_in(sql, now - timedelta(days=1), now)).rows for title, sql in statements()
    }
    # Two partitions of 60 pairs; pairs 0 and 1 of each ten are regressions.
    assert known["Pairs"] == [(120,)]
    assert known["Regressions"] == [(pytest.approx(24 / 120),)]
    (outcomes,) = [sql for title, sql in statements() if title == "Records by outcome"]
    rows = store.query(filled_in(outcomes, now - timedelta(days=1), now)).rows
    sums: dict[str, int] = {}
    for _, kind, records in rows:
        sums[kind] = sums.get(kind, 0) + records
    assert sums == {"compared": 120, "skipped": 30, "failed": 15, "dead_letter": 5}
    assert known["candidate"] == [("awq",)]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_ids_are_unique_and_sources_are_those_that_are_provisioned(file: Path) -> None:
    made = read(file)
    assert made["uid"] == file.stem
    ids = [panel["id"] for panel in made["panels"]]
    assert len(set(ids)) == len(ids)
    text = file.read_text(encoding="utf-8")
    assert set(re.findall(r'"uid": "([^"]+)"', text)) <= {SOURCES[file.name], file.stem}
    # No host of anybody: data sources are named by uid.
    assert not re.search(r"https?://|\b\d+\.\d+\.\d+\.\d+\b", text)
    cells: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & mine, panel["title"]
        assert at["x"] + at["w"] <= 24
        cells |= mine


def test_there_are_two_dashboards() -> None:
    assert {file.name for file in FILES} == set(SOURCES)


def test_every_panel_of_prometheus_asks_of_the_chosen_job_and_instance() -> None:
    made = read(FOLDER / "gnomon-prometheus.json")
    for panel in made["panels"]:
        for target in panel.get("targets", []):
            selectors = re.findall(r"gnomon_\w+(\{[^}]*\})?", target["expr"])
            assert all('job=~"$job", instance=~"$instance"' in one for one in selectors), target["expr"]
