"""Keeps the table `served` true: what the endpoints say they serve, what mirrored records say served them.

Endpoints are asked at the start and every few minutes, so a restart with another build is a new row from the
time it was seen. An endpoint that is away is asked again at the next look: no row says less than was told.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from compare.alerts.scheduler import Ticker
from compare.row_values import microseconds
from compare.store.client import Store
from ingest.load_settings import settings_hash
from ingest.served import Served, served_by
from ingest.settings import ExperimentSettings, Settings, endpoint_names

INTERVAL_S = 300.0
_LATE = timedelta(minutes=10)
"""Rows are stored some time after their `ingested_at`, so each look goes back so far before the last one."""

_TOLD = ("model", "engine", "engine_version", "quantization", "weights_sha256", "config_hash")


class ServedWatch:
    """Writes a row for each change. `store` is used by nothing else.

    `names` are the endpoints that are asked, all of the experiment where it is None.
    """

    def __init__(self, store: Store, settings: Settings, names: Sequence[str] | None = None) -> None:
        self._names = endpoint_names(settings.experiment) if names is None else list(names)
        self._store = store
        self._settings = settings
        self._experiment = settings.experiment
        self._hash = settings_hash(settings)
        self._since = datetime.now(UTC)
        self._ticker = Ticker(self.run_once, INTERVAL_S, "what is served")

    def start(self, *, at_once: bool = True) -> None:
        """Look every few minutes on a thread of its own; `at_once` for the first time now."""
        self._ticker.start(at_once=at_once)

    def stop(self) -> None:
        """Stop, after the look that is under way."""
        self._ticker.stop()

    def run_once(self) -> int:
        """Ask every endpoint and read the records since the last look; return how many rows were written.

        Blocks. Raises what the store raises.
        """
        return self.note(asyncio.run(self._ask_all()))

    async def _ask_all(self) -> dict[str, Served]:
        """What each endpoint told; nothing is known of one that is away."""
        answers = await asyncio.gather(
            *(served_by(name, self._settings.endpoints[name]) for name in self._names)
        )
        return dict(zip(self._names, answers, strict=True))

    def note(self, told: dict[str, Served]) -> int:
        """Write what the endpoints told and what the records tell, where it is new. Blocks."""
        now = datetime.now(UTC)
        last, kinds = self._last()
        rows = [
            self._row(role_of(self._experiment, name), name, served, now, now)
            for name, served in told.items()
            if served.is_known() and last.get(name) != served_hash(served)
        ]
        for served, first_at in self._recorded():
            if served.is_known() and served_hash(served) not in kinds:
                rows.append(self._row("production", "", served, first_at, now))
        if rows:
            self._store.insert("served", tuple(rows[0]), [tuple(row.values()) for row in rows])
        self._since = now - _LATE
        return len(rows)

    def _last(self) -> tuple[dict[str, str], set[str]]:
        """The last hash of each endpoint, and the hashes of every kind of production."""
        rows = self._store.query(
            "SELECT role = 'production', endpoint_name, argMax(served_hash, seen_at),"
            " groupUniqArray(served_hash)"
            " FROM served FINAL WHERE experiment = {experiment:String} AND settings_hash = {hash:String}"
            " GROUP BY role = 'production', endpoint_name",
            {"experiment": self._experiment.name, "hash": self._hash},
        ).rows
        last = {str(name): str(newest) for is_production, name, newest, _ in rows if not is_production}
        return last, {one for row in rows if row[0] for one in row[3]}

    def _recorded(self) -> list[tuple[Served, datetime]]:
        """Each `served_by` of the topic's records since the last look, with the first record's time."""
        columns = ", ".join(f"served_{name}" for name in _TOLD)
        rows = self._store.query(
            f"SELECT {columns}, min(mirrored_at) FROM requests WHERE topic = {{topic:String}}"
            f" AND ingested_at >= {{since:DateTime64(3, 'UTC')}} GROUP BY {columns}",
            {"topic": self._settings.kafka.topic, "since": self._since},
        ).rows
        return [
            (Served(**{name: value or None for name, value in zip(_TOLD, row[:-1], strict=True)}), row[-1])
            for row in rows
        ]

    def _row(self, role: str, name: str, served: Served, seen_at: datetime, now: datetime) -> dict[str, Any]:
        return {
            "experiment": self._experiment.name,
            "settings_hash": self._hash,
            "role": role,
            "endpoint_name": name,
            "seen_at": seen_at,
            "served_hash": served_hash(served),
            **msgspec.structs.asdict(served),
            "version": microseconds(now),
        }


def role_of(experiment: ExperimentSettings, name: str) -> str:
    """`reference` for the reference and its second one, else `candidate`."""
    return "reference" if name in (experiment.reference, experiment.reference_b) else "candidate"


def served_hash(served: Served) -> str:
    """The first 32 hex digits of the SHA-256 of all that was told."""
    return hashlib.sha256(msgspec.json.encode(served, order="sorted")).hexdigest()[:32]
