"""SIGKILL at chosen moments of storing, one after the other on the same records; then what the store holds.

`bench/chaos.py` does it at random, in greater numbers and with several services.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compare.store.client import open_store
from compare.writer import WRITE_ORDER
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.background import Service
from tests.integration.conftest import Bench, envelope
from tests.integration.test_outages import ROOT, config_of

CHILD = """
import os, signal, sys
from pathlib import Path
from compare.cli.locate import read_settings
from compare.run import run_service
from compare.store.client import Store, open_store

path, table, moment = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
insert = Store.insert_columns

def killing(self, into, columns, **options):
    if into == table and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    insert(self, into, columns, **options)
    if into == table and moment == "after":
        os.kill(os.getpid(), signal.SIGKILL)

class KillingStore(Store):
    insert_columns = killing

if __name__ == "__main__":
    settings = read_settings(path)
    with open_store(settings.store, role="any") as store:
        store.__class__ = KillingStore
        run_service(settings, store=store)
"""
RECORDS = 120


def run_until_killed(folder: Path, config: Path, table: str, moment: str) -> None:
    script = folder / "child.py"
    script.write_text(CHILD)
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GNOMON_")} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script), str(config), table, moment],
        cwd=ROOT, env=environ, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_kills_between_side_tables_pairs_ranges_and_commit_lose_and_repeat_nothing(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint], tmp_path: Path
) -> None:
    bench.produce([envelope(f"r{n}", f"question {n}") for n in range(RECORDS)] + [b"broken", envelope("r3")])
    config = config_of(bench, tmp_path / "gnomon.toml")
    run_until_killed(tmp_path, config, "pairs", "before")
    assert bench.rows("SELECT count() FROM pairs") == [(0,)]
    assert bench.rows("SELECT count() > 0 FROM observations") == [(True,)]
    calls = len(stubs[0].calls)
    run_until_killed(tmp_path, config, "pairs", "after")
    ((stored,),) = bench.rows("SELECT count() FROM pairs")
    assert isinstance(stored, int) and stored > 0
    # What the first one left half written is gone, so that what replaces it stands alone.
    assert bench.rows(
        "SELECT count(), uniqExact(offset) FROM findings WHERE attempt_id IN (SELECT attempt_id FROM pairs)"
    ) == [(stored, stored)]
    run_until_killed(tmp_path, config, "delivered_ranges", "after")
    assert bench.committed() is None
    before = len(stubs[0].calls)
    ((kept,),) = bench.rows("SELECT uniqExact(partition, offset) FROM pairs")
    assert isinstance(kept, int)

    report = Service(bench, outcomes=RECORDS + 2).report()
    assert report.already_stored >= stored
    assert report.consumed == RECORDS + 2
    with open_store(bench.settings.store, role="any") as store:
        rows = store.query("SELECT count(), uniqExact(partition, offset) FROM pairs").rows
        assert rows == [(RECORDS, RECORDS)]
        # The second r3 was still known as a duplicate; the broken record was kept once.
        assert store.query("SELECT offset, kind, reason FROM outcomes ORDER BY offset").rows == [
            (RECORDS, "dead_letter", "invalid_json"),
            (RECORDS + 1, "skipped", "duplicate"),
        ]
        assert store.query(
            "SELECT consumed, compared, skipped, dead_lettered, unaccounted FROM accounting_v1"
        ).rows == [(RECORDS + 2, RECORDS, 1, 1, 0)]
        assert store.query("SELECT sum(duplicates) FROM duplicated_rows_v1").rows == [(0,)]
        deadline = time.monotonic() + 30
        while store.query("SELECT count() FROM system.mutations WHERE NOT is_done").rows != [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for table in WRITE_ORDER[1:5]:
            orphans = f"SELECT count() FROM {table} WHERE attempt_id NOT IN (SELECT attempt_id FROM pairs)"
            assert store.query(orphans).rows == [(0,)], table
    assert bench.committed() == RECORDS + 2
    # No model was asked again for a record whose pair was stored, and at most what was under way is wasted:
    # 20 records a batch twice, and 40 workers.
    assert len(stubs[0].calls) - before == RECORDS - kept
    assert calls <= 80
