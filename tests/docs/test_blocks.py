"""What stands in the pages' blocks: settings load, SQL runs on a real empty store."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from compare.golden.files import read_file
from compare.store import Store, open_store
from ingest.decode import decode
from ingest.load_settings import load_settings
from ingest.records import RawRecord, SourcePosition
from tests.docs.pages import PAGES, blocks, name
from tests.fixtures.stores import MigratedAt

# Its SQL has parameters; tests/compare/recipes runs each recipe.
RECIPES = "docs/recipes.md"

LEAST: dict[str, Any] = {
    "experiment": {
        "name": "e",
        "reference": "full",
        "candidates": ["awq"],
        "models": {"*": {"full": "m", "awq": "m"}},
    },
    "endpoints": {"full": {"url": "http://a"}, "awq": {"url": "http://b"}},
}
"""Around a block that shows a part of the settings."""


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = under | over
    for key in under.keys() & over.keys():
        if isinstance(under[key], dict) and isinstance(over[key], dict):
            both[key] = _merged(under[key], over[key])
    return both


def _toml(value: Any) -> str:
    """A value of TOML, tables in braces."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


@pytest.mark.parametrize(
    "block",
    [block for page in PAGES for block in blocks(page) if block.language == "toml"],
    ids=lambda block: f"{name(block.page)}:{block.line}",
)
def test_settings_load(block: Any, tmp_path: Path) -> None:
    file = tmp_path / "gnomon.toml"
    file.write_text(block.text, encoding="utf-8")
    tree = tomllib.loads(block.text)
    if "experiment" not in tree or "endpoints" not in tree:
        tree = _merged(LEAST, tree)
        file.write_text("\n".join(f"{key} = {_toml(value)}" for key, value in tree.items()), encoding="utf-8")
    # Secrets that a page says are set by variables.
    environ = {"GNOMON_STORE_PASSWORD": "secret"}
    if "redaction" in tree:
        environ["GNOMON_REDACTION_KEY"] = "of sixteen and more characters"
    if "slack" in tree.get("notify", {}):
        environ["GNOMON_SINK_ONCALL_SECRET_URL"] = "https://hooks.example/x"
    assert load_settings(file, environ).experiment.candidates


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    with open_store(migrated_at(tmp_path_factory.mktemp("docs") / "store"), role="owner") as opened:
        yield opened


def test_sql_runs_on_an_empty_store(store: Store) -> None:
    ran = 0
    for page in PAGES:
        if name(page) == RECIPES:
            continue
        for block in blocks(page):
            if block.language == "sql":
                for statement in filter(None, map(str.strip, block.text.split(";\n"))):
                    store.query(statement.removesuffix(";"))
                    ran += 1
    assert ran > 10


def test_the_lines_that_pages_print_are_read(tmp_path: Path) -> None:
    """Each is printed on several lines, and says so."""
    now, read = datetime.now(UTC), 0
    for page in PAGES:
        for block in (one for one in blocks(page) if one.language == "json"):
            line = " ".join(block.text.split())
            read += 1
            if "gnomon.mirror/1" not in line:
                (tmp_path / "set.jsonl").write_text(line, encoding="utf-8")
                assert [case.case_id for case in read_file(tmp_path / "set.jsonl")] == [
                    json.loads(line)["id"]
                ]
                continue
            position = SourcePosition("t", "id", 0, 0)
            record = decode(RawRecord(position, now_ms(now), None, line.encode(), ()), now)
            assert record.request_id == json.loads(line)["request_id"]
    assert read > 4


def now_ms(now: datetime) -> int:
    """As Kafka keeps a record's time."""
    return int(now.timestamp() * 1000)
