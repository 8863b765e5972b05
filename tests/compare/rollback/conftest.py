"""A migrated store, and what condition A and B read: golden runs and pairs of a new experiment."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from compare.golden.run import GoldenRun, RunStatus, Totals
from compare.golden.run_log import write_run
from compare.served_watch import served_hash
from compare.store import Store, open_store
from ingest.served import Served
from ingest.settings import EndpointSettings, ExperimentSettings, Settings, StoreSettings
from ingest.settings_rollback import RollbackSettings
from tests.fixtures.stores import MigratedAt

BUILD = Served(model="m-q4", engine="vllm", engine_version="1")


class Planter:
    """Plants golden runs, pairs and outages of candidate `q4`, some seconds ago."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.experiment = f"e-{uuid.uuid4().hex[:8]}"
        self._offset = 0

    def settings(self, *, url: str = "http://127.0.0.1:9", health: str = "", **values: object) -> Settings:
        rollback = msgspec.convert(
            {"hold_evaluations": 2, "clear_evaluations": 2, "health_path": health, **values}, RollbackSettings
        )
        return Settings(
            experiment=ExperimentSettings(self.experiment, "fp16", ["q4"], {}),
            endpoints={"fp16": EndpointSettings("http://127.0.0.1:9"), "q4": EndpointSettings(url)},
            rollback=rollback,
        )

    def golden(
        self, score: float, *, ago_s: float = 60.0, status: RunStatus = "failed", served: Served = BUILD
    ) -> str:
        at = datetime.now(UTC) - timedelta(seconds=ago_s)
        run = GoldenRun(
            set_name="core", run_id=uuid.uuid4().hex, set_hash="h", experiment=self.experiment,
            settings_hash="s", role="candidate", endpoint_name="q4", started_by="schedule", started_at=at,
            finished_at=at, status=status, reasons=(), least_mean_score=0.85, served=served,
            served_hash=served_hash(served),
            totals=Totals(
                cases=1, answered_cases=1, passed_cases=0, exact_rate=0.5, mean_score=score,
                extraction_accuracy=None, faulty_rate=None,
            ),
        )  # fmt: skip
        write_run(self.store, run, [], None)
        return run.run_id

    def pairs(
        self,
        count: int,
        *,
        verdict: str = "match",
        ago_s: float = 30.0,
        request_hash: str | None = None,
        failure: str | None = None,
        **values: object,
    ) -> None:
        rows = []
        for _ in range(count):
            self._offset += 1
            is_worse = verdict == "candidate_worse"
            rows.append(
                {
                    "experiment": self.experiment,
                    "candidate": "q4",
                    "reference": "fp16",
                    "topic": "t",
                    "topic_id": "t-1",
                    "partition": 0,
                    "offset": self._offset,
                    "attempt_id": uuid.uuid4(),
                    "request_hash": request_hash or f"h-{self._offset}",
                    "mirrored_at": datetime.now(UTC) - timedelta(days=2),
                    "ingested_at": datetime.now(UTC) - timedelta(seconds=ago_s),
                    "mode": "greedy",
                    "verdict": verdict,
                    "is_regression": verdict in ("candidate_worse", "candidate_error"),
                    "candidate_only_families": ["json"] if is_worse else [],
                    "candidate_failure_kind": failure,
                    "version": 1,
                    **values,
                }
            )
        self.store.insert("pairs", tuple(rows[0]), [tuple(row.values()) for row in rows])

    def away(self, name: str = "q4", *, ago_s: float = 30.0) -> None:
        self._offset += 1
        row = {
            "experiment": self.experiment,
            "topic": "t",
            "topic_id": "t-1",
            "partition": 0,
            "offset": self._offset,
            "kind": "failed",
            "reason": "endpoint_away",
            "detail": f'endpoint "{name}" (127.0.0.1:9) is away after 3 attempts: refused',
            "ingested_at": datetime.now(UTC) - timedelta(seconds=ago_s),
            "version": 1,
        }
        self.store.insert("outcomes", tuple(row), [tuple(row.values())])

    def serving(self, served: Served = BUILD) -> None:
        row = {
            "experiment": self.experiment,
            "settings_hash": "s",
            "role": "candidate",
            "endpoint_name": "q4",
            "seen_at": datetime.now(UTC),
            "served_hash": served_hash(served),
            **msgspec.structs.asdict(served),
            "version": 1,
        }
        self.store.insert("served", tuple(row), [tuple(row.values())])


def settings_file(experiment: str, folder: Path, candidate_url: str = "http://127.0.0.1:9") -> str:
    """The least that the commands need of a settings file: an experiment, its endpoints and the store."""
    return f"""
[experiment]
name = "{experiment}"
reference = "full"
candidates = ["q4"]
models = {{"*" = {{full = "m", q4 = "m"}}}}
[endpoints.full]
url = "http://127.0.0.1:9"
[endpoints.q4]
url = "{candidate_url}"
[store]
url = "chdb://{folder}"
"""


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    made = tmp_path_factory.mktemp("rollback-store")
    migrated_at(made)
    return made


@pytest.fixture(scope="package")
def store(folder: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as opened:
        yield opened


@pytest.fixture
def planter(store: Store) -> Planter:
    return Planter(store)
