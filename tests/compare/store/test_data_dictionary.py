"""`docs/data-dictionary.md` against the live schema, both ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compare.metrics.spec import METRICS
from compare.pair_rows import SCORE_COLUMNS
from compare.store import Store, migrate

_ARGUMENTS = {
    "pair_beside_v1": "(experiment = 'e', candidate = 'c', topic_id = 't', partition = 0, offset = 0,"
    " day = '2026-11-01')",
    "pairs_of_request_v1": "(request_hash = 'h', first = '2026-11-01', last = '2026-11-01')",
    "rollup_range_v1": "(start = '2026-11-01 00:00:00', end = '2026-11-08 00:00:00', dimension = 'route')",
}
"""Of views with parameters, which cannot be described without."""

_PAGE = Path(__file__).parents[3] / "docs" / "data-dictionary.md"


def documented() -> dict[str, list[list[str]]]:
    """View to the cells of its rows."""
    views: dict[str, list[list[str]]] = {}
    for section in re.split(r"^## ", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        rows = [line.strip("| ") for line in text.splitlines() if line.startswith("| `")]
        views[name] = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]
    return views


def test_every_view_is_documented_and_every_documented_view_exists() -> None:
    assert sorted(documented()) == sorted(migrate.shipped_views())


@pytest.mark.parametrize("view", sorted(migrate.shipped_views()))
def test_columns_and_types_are_those_of_the_live_view(migrated_store: Store, view: str) -> None:
    # DESCRIBE lays a Tuple out over several lines.
    live = [
        (row[0], re.sub(r"\s*\n\s*", " ", row[1]).replace("( ", "(").replace(" )", ")"))
        for row in migrated_store.query(f"DESCRIBE TABLE {view}{_ARGUMENTS.get(view, '')}")
    ]
    assert [(row[0].strip("`"), row[1].strip("`")) for row in documented()[view]] == live


@pytest.mark.parametrize("view", sorted(migrate.shipped_views()))
def test_every_column_has_unit_meaning_and_null_rule(view: str) -> None:
    for row in documented()[view]:
        assert len(row) == 5, row
        assert all(row), row
        is_nullable = "Nullable" in row[1]
        assert is_nullable != row[4].startswith("never"), row


def test_every_metric_has_its_column() -> None:
    assert sorted(spec.name for spec in METRICS) == sorted(SCORE_COLUMNS)
