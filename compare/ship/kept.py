"""Verdicts that are kept: pages show the newest at once, since making one reads every stored pair."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from compare.row_values import microseconds
from compare.ship.model import Decision, ShipVerdict, Terms
from compare.store.asked import Asked
from compare.store.client import Store
from ingest.errors import SettingsError


class KeptVerdict(msgspec.Struct, frozen=True):
    """A row of `verdicts_v1` without the JSON. Rates are fractions, times UTC."""

    experiment: str
    candidate: str
    margin: float
    confidence: float
    made_at: datetime
    decision: Decision
    pairs: int
    candidate_only: int
    reference_only: int
    excess: float | None
    low: float
    high: float
    coverage_share: float | None


_COLUMNS = ", ".join(KeptVerdict.__struct_fields__)


def keep(store: Store, verdict: ShipVerdict) -> None:
    """Store it, without its worst pairs: they name requests, and what names none need not be purged.

    Raises what `check_keepable` raises, and the store.
    """
    terms = verdict.terms
    check_keepable(terms)
    # The store keeps milliseconds: the JSON says the same time as its row.
    made_at = verdict.made_at.replace(microsecond=verdict.made_at.microsecond // 1000 * 1000)
    verdict = msgspec.structs.replace(verdict, made_at=made_at, worst=())
    now = datetime.now(UTC)
    row = {
        "experiment": verdict.experiment,
        "candidate": verdict.candidate,
        "margin": terms.margin,
        "confidence": terms.confidence,
        "made_at": made_at,
        "decision": verdict.decision,
        "pairs": verdict.pairs,
        "candidate_only": verdict.candidate_only,
        "reference_only": verdict.reference_only,
        "excess": verdict.excess,
        "low": verdict.low,
        "high": verdict.high,
        "coverage_share": verdict.coverage.share,
        "verdict": msgspec.json.encode(verdict).decode(),
        "ingested_at": now,
        "version": microseconds(now),
    }
    store.insert("verdicts", tuple(row), [tuple(row.values())])


def check_keepable(terms: Terms) -> None:
    """Raise SettingsError unless they ask for all stored pairs and the rule alone.

    Whoever reads a kept verdict takes it for that, and compares it with those before it.
    """
    if terms.since or terms.until or terms.min_coverage or terms.may_mix:
        raise SettingsError(
            "a kept verdict is of all pairs: give --keep without --since, --until, --min-coverage and"
            " --allow-changes"
        )


def read_kept(store: Asked, experiment: str, candidate: str | None, *, limit: int) -> list[KeptVerdict]:
    """The newest `limit` that are kept, newest first; of every candidate where none is named."""
    rows = store.query(
        f"SELECT {_COLUMNS} FROM verdicts_v1 WHERE experiment = {{experiment:String}}"
        " AND {candidate:String} IN ('', candidate)"
        " ORDER BY made_at DESC, candidate, margin, confidence LIMIT {limit:UInt32}",
        {"experiment": experiment, "candidate": candidate or "", "limit": limit},
    ).dicts()
    return [msgspec.convert(row, KeptVerdict) for row in rows]
