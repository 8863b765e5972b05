"""A rebuild that is killed between staging and swap leaves the old rollups whole, and the next mends them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.fixtures.stores import MigratedAt

FILL = """
from datetime import timedelta
from compare.rollups import rebuild
from compare.store import open_store
from ingest.settings import StoreSettings
from tests.compare.rollups import raw_rows as raw
from tests.compare.rollups.test_rebuild import assert_equal_to_raw

settings = StoreSettings(url="chdb://" + FOLDER)
store = open_store(settings, role="owner")
rollups = rebuild.Rollups(store, settings)
ALL = "SELECT dimension, sum(pairs) FROM rollup_hourly_v1 GROUP BY dimension ORDER BY dimension"
"""
FIRST = """
import os, signal
raw.put(store, "pairs", [raw.pair(n, raw.YESTERDAY) for n in range(40)])
rollups.rebuild_touched()
print(store.query(ALL).rows, flush=True)
raw.put(store, "pairs", [raw.pair(n, raw.YESTERDAY) for n in range(40, 90)])
real = rebuild.swap_statement

def killed(table, *rest):
    if table == TABLE:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(table, *rest)

rebuild.swap_statement = killed
rollups.rebuild_touched()
"""
SECOND = """
print(store.query(ALL).rows, flush=True)
assert store.query("SHOW TABLES LIKE '%staging%'").rows
days = [row[0] for row in store.query("SELECT DISTINCT toDate(ingested_at) FROM pairs").rows]
print([done.day == day for done, day in zip(rollups.rebuild_touched(), days, strict=True)], flush=True)
assert_equal_to_raw(store)
assert rollups.rebuild_touched() == []
store.close()
"""


def run(folder: Path, table: str, script: str) -> subprocess.CompletedProcess[str]:
    code = f"FOLDER = {str(folder)!r}\nTABLE = {table!r}\n{FILL}{script}"
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )


def test_killed_before_the_hours_are_swapped(tmp_path: Path, migrated_at: MigratedAt) -> None:
    migrated_at(tmp_path)
    first = run(tmp_path, "rollup_hourly", FIRST)
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = run(tmp_path, "rollup_hourly", SECOND)
    assert second.returncode == 0, second.stderr
    assert second.stdout == f"{first.stdout}[True]\n"


def test_killed_between_the_two_swaps(tmp_path: Path, migrated_at: MigratedAt) -> None:
    migrated_at(tmp_path)
    first = run(tmp_path, "rollup_minutes", FIRST)
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = run(tmp_path, "rollup_minutes", SECOND)
    assert second.returncode == 0, second.stderr
    before, after, mended = (*first.stdout.splitlines(), *second.stdout.splitlines())
    assert "('all', 40)" in before
    assert "('all', 90)" in after
    assert mended == "[True]"
