"""One experiment of its own in the store, filled through the project's own rows and writer."""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from compare.outcomes import ComparedPair, DeliveredRange, OtherOutcome
from compare.position_scores import PositionScores
from compare.recipes import find_recipe
from compare.result import Divergence, Family, Finding, Scores, Side, Verdict, VerdictKind
from compare.store import Store
from compare.store.row_stream import stream_rows
from compare.writer import Writer
from ingest.observation import Failure, FailureKind, Observation, Timings
from ingest.settings import StoreSettings
from tests.compare import batches

NOON = batches.NOON
"""Yesterday, 12:00 UTC."""
RECENT = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
LONG_AGO = NOON - timedelta(days=12)
"""Before every default window of days, and younger than any TTL."""


def fault(family: Family, side: Side, **changes: Any) -> Finding:
    whole = Finding(family=family, code=f"{family.value}_code", side=side, message=f"{side} {family.value}")
    return msgspec.structs.replace(whole, **changes)


def answered(**changes: Any) -> Observation:
    return batches.observation(**{"tool_calls": (), **changes})


def failed(kind: FailureKind, status: int | None = None, message: str = "boom") -> Observation:
    return Observation(failure=Failure(kind, message, status), timings=Timings(total_ms=50.0))


def holds_nan(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, Mapping):
        return any(map(holds_nan, value.values()))
    return isinstance(value, (list, tuple)) and any(map(holds_nan, value))


class World:
    """Pairs that wait, and recipes asked about this experiment only."""

    def __init__(self, store: Store, settings: StoreSettings) -> None:
        self.store = store
        self.settings = settings
        self.experiment = f"e-{uuid.uuid4().hex[:12]}"
        self._pairs: list[ComparedPair] = []
        self._next = 0

    def pair(
        self,
        *,
        at: datetime = NOON,
        verdict: VerdictKind = VerdictKind.MATCH,
        cause: str = "unknown",
        candidate_only: tuple[Family, ...] = (),
        reference_only: tuple[Family, ...] = (),
        findings: tuple[Finding, ...] | None = None,
        scores: dict[str, float] | None = None,
        unscored: dict[str, str] | None = None,
        noise: dict[str, float] | None = None,
        candidate_noise: dict[str, float] | None = None,
        divergence: Divergence | None = None,
        tags: tuple[str, ...] = (),
        request: dict[str, Any] | None = None,
        comparison: dict[str, Any] | None = None,
        candidate_name: str = "q4",
        offset: int | None = None,
        **pair: Any,
    ) -> int:
        """One pair, mirrored and taken up at `at`, stored by the next `flush`; returns its offset.

        Families of one side get a finding on that side unless `findings` are given.
        """
        if offset is None:
            offset, self._next = self._next, self._next + 1
        if findings is None:
            findings = tuple(fault(family, "candidate") for family in candidate_only)
            findings += tuple(fault(family, "reference") for family in reference_only)
        mirrored = batches.mirrored(
            offset,
            **{
                "position": batches.position(offset, topic_id=self.experiment),
                "mirrored_at": at,
                "ingested_at": at,
                **(request or {}),
            },
        )
        whole = batches.compared(
            offset,
            experiment=self.experiment,
            candidate_name=candidate_name,
            request=mirrored,
            scores=Scores(scores or {}, unscored or {}),
            findings=findings,
            **{
                "reference": answered(),
                "candidate": answered(),
                "reference_again": answered() if noise is not None else None,
                "forced": None,
                **pair,
            },
        )
        changed = msgspec.structs.replace(
            whole.comparison,
            **{
                "verdict": Verdict(
                    verdict, (f"because {verdict.value}",), cause, candidate_only, reference_only
                ),
                "divergence": divergence,
                "positions": PositionScores(),
                "forced_positions": PositionScores(),
                "noise": Scores(noise) if noise is not None else None,
                "candidate_noise": Scores(candidate_noise) if candidate_noise is not None else None,
                "tags": tags,
                **(comparison or {}),
            },
        )
        self._pairs.append(msgspec.structs.replace(whole, comparison=changed))
        return offset

    def worse(self, side: Side, family: Family = Family.REPETITION, **changes: Any) -> int:
        """A pair whose fault only `side` shows."""
        if side == "candidate":
            return self.pair(verdict=VerdictKind.CANDIDATE_WORSE, candidate_only=(family,), **changes)
        return self.pair(verdict=VerdictKind.REFERENCE_WORSE, reference_only=(family,), **changes)

    def flush(self, *others: OtherOutcome, ranges: tuple[DeliveredRange, ...] = ()) -> None:
        """Store what waits, in one batch."""
        batch = batches.batch(*self._pairs, others=others, ranges=ranges, experiment=self.experiment)
        Writer(self.store, threading.Event()).write(batch)
        self._pairs = []

    def ask(self, name: str, **given: str) -> list[dict[str, Any]]:
        """The recipe's rows, asked of the engine and over its port, which must say the same; no NaN."""
        recipe = find_recipe(name)
        if any(parameter.name == "experiment" for parameter in recipe.parameters):
            given = {"experiment": self.experiment, **given}
        parameters = recipe.bind(given)
        result = self.store.query(recipe.statement, parameters)
        with stream_rows(self.settings, recipe.statement, parameters) as rows:
            streamed = [dict(zip(rows.column_names, row, strict=True)) for block in rows for row in block]
        assert rows.column_names == result.column_names
        found = result.dicts()
        assert list(map(_still, streamed)) == list(map(_still, found))
        assert not any(map(holds_nan, found)), found
        return found


def _still(row: dict[str, Any]) -> dict[str, Any]:
    """The row without what grows from one moment to the next."""
    return {name: value for name, value in row.items() if name != "hours_open"}


def column(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    """The values of one column, or tuples of several."""
    if len(names) == 1:
        return [row[names[0]] for row in rows]
    return [tuple(row[name] for name in names) for row in rows]
