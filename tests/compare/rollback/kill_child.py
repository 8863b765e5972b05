"""Run as `python -m tests.compare.rollback.kill_child FOLDER EXPERIMENT URL`: evaluates until it is told.

FOLDER holds a migrated store. The first run plants what calls for a rollback. It ends with 0 once the
delivery is noted and two further runners found nothing to tell.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import count

import msgspec

from compare.rollback.decisions import read_decisions
from compare.rollback.runner import RollbackRunner
from compare.rollback.sinks import tellers_of
from compare.rollback.tell import told_of
from compare.store import open_store
from ingest.settings import StoreSettings
from ingest.settings_alerts import AlertSettings
from ingest.settings_notify import NotifySettings, WebhookSink
from tests.compare.rollback.conftest import Planter


def main(folder: str, experiment: str, url: str) -> None:
    minutes, start = count(), datetime.now(UTC)

    def clock() -> datetime:
        return start + timedelta(minutes=next(minutes))

    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as store:
        planter = Planter(store)
        planter.experiment = experiment
        if not read_decisions(store, experiment):
            planter.golden(0.7, ago_s=120)
            planter.golden(0.7)
            planter.pairs(100, verdict="candidate_worse")
        settings = msgspec.structs.replace(
            planter.settings(),
            notify=NotifySettings(webhook={"pager": WebhookSink(url=url)}),
            alerts=AlertSettings(lease_s=3.0),
        )
        while not _is_told(planter):
            RollbackRunner(store, settings, tellers_of(settings)).run_once(clock)
            time.sleep(0.1)
        for _ in range(2):
            RollbackRunner(store, settings, tellers_of(settings)).run_once(clock)


def _is_told(planter: Planter) -> bool:
    calls = read_decisions(planter.store, planter.experiment, calls_only=True)
    return any(row[2] for call in calls for row in told_of(planter.store, call.decision_id))


if __name__ == "__main__":
    main(*sys.argv[1:])
