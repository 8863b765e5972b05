"""What stands beside the bound: scores over the noise floor, schema validity, what served, open alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from compare.floor import read_excess
from compare.metrics.spec import METRICS
from compare.ship.model import OpenAlert, ServedNow, Support, Tally, Validity
from compare.ship.scope import CLASS, MARKS, Scope
from compare.store.asked import Asked

SUPPORTING = (
    "kl_forced_mean_nats",
    "top1_agreement_forced_ratio",
    "exact_match",
    "edit_similarity",
    "cosine_similarity",
    "field_agreement",
)
"""They support, they do not decide: a bound on a mean score says nothing of the worst answers."""

_VALID: dict[Literal["schema", "json"], str] = {"schema": "is_schema_valid", "json": "is_valid_json"}

_SPECS = {spec.name: spec for spec in METRICS}


def read_supports(store: Asked, scope: Scope) -> tuple[Support, ...]:
    """The scores of the counted pairs, repeats included, each beside its floor."""
    columns = []
    for name in SUPPORTING:
        worst_end = 0.01 if _SPECS[name].direction == "higher is better" else 0.99
        columns += [
            f"count({name})",
            f"ifNull(avg(toFloat64({name})), 0)",
            f"quantilesExact(0.5, {worst_end})({name})",
        ]
    # A quantile of nothing is NaN, and there is no line for it then.
    row = store.query(
        f"SELECT {', '.join(columns)} FROM pairs_v1{MARKS}{scope.where} AND {CLASS} = 'counted'",
        scope.parameters,
    ).rows[0]
    floors = {
        excess.metric: excess
        for excess in read_excess(
            store,
            scope.experiment,
            scope.candidate,
            metrics=SUPPORTING,
            mirrored_from=scope.since,
            mirrored_to=scope.until,
        )
    }
    found = []
    for place, name in enumerate(SUPPORTING):
        pairs, mean, (p50, worst) = row[3 * place : 3 * place + 3]
        if pairs:
            spec = _SPECS[name]
            found.append(
                Support(
                    name,
                    spec.unit,
                    spec.direction,
                    int(pairs),
                    float(mean),
                    float(p50),
                    float(worst),
                    floors.get(name),
                )
            )
    return tuple(found)


def read_validity(store: Asked, scope: Scope) -> tuple[Validity, ...]:
    """Answers that fit their schema, or are JSON, on one side only; and the reference against itself."""
    pairs = store.query(
        f"SELECT {_flips('>')}, {_flips('<')} FROM pairs_v1{MARKS}{scope.where} AND {CLASS} = 'counted'",
        scope.parameters,
    ).rows[0]
    noise = store.query(
        f"SELECT {_flips('!=')} FROM noise_pairs_v1{scope.where} AND side = 'reference'", scope.parameters
    ).rows[0]
    found = []
    for place, kind in enumerate(_VALID):
        both, worse, _, better = (int(pairs[at + 2 * place]) for at in (0, 1, 4, 5))
        if both:
            noise_pairs, flips = noise[2 * place : 2 * place + 2]
            found.append(Validity(kind, both, worse, better, int(noise_pairs), int(flips)))
    return tuple(found)


def _flips(comparison: str) -> str:
    """For each of `_VALID` how many pairs can tell, and in how many `reference comparison candidate`."""
    columns = []
    for column in _VALID.values():
        reference, candidate = f"reference_{column}", f"candidate_{column}"
        both = f"{reference} IS NOT NULL AND {candidate} IS NOT NULL"
        columns += [f"countIf({both})", f"countIf({both} AND {reference} {comparison} {candidate})"]
    return ", ".join(columns)


def read_served(store: Asked, scope: Scope, tally: Tally) -> tuple[ServedNow, ...]:
    """What the candidate and the references served while the counted pairs were replayed, by time.

    Something else from a time within the range is a second entry of that endpoint. An endpoint's entries
    follow each other across the experiment's settings.
    """
    if tally.first_ingested_at is None or tally.last_ingested_at is None:
        return ()
    columns = ", ".join(name for name in ServedNow.__struct_fields__ if name != "until_at")
    rows = store.query(
        f"SELECT {columns} FROM served_v1 WHERE experiment = {{experiment:String}}"
        " AND (role = 'reference' OR (role = 'candidate' AND endpoint_name = {candidate:String}))"
        " ORDER BY role, endpoint_name, seen_at",
        scope.parameters,
    ).dicts()
    found = []
    for place, row in enumerate(rows):
        after = rows[place + 1] if place + 1 < len(rows) else None
        is_same = after is not None and after["endpoint_name"] == row["endpoint_name"]
        until: datetime | None = after["seen_at"] if after is not None and is_same else None
        if row["seen_at"] <= tally.last_ingested_at and (until is None or until > tally.first_ingested_at):
            found.append(ServedNow(until_at=until, **row))
    return tuple(found)


def read_alerts(store: Asked, scope: Scope) -> tuple[OpenAlert, ...]:
    """The alerts that are firing, the first to be raised first."""
    rows = store.query(
        "SELECT alert_id, toString(severity) AS severity, toString(metric) AS metric,"
        " toString(dimension) AS dimension, slice, raised_at, summary FROM alerts_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String} AND state = 'firing'"
        " ORDER BY raised_at, alert_id",
        scope.parameters,
    ).dicts()
    return tuple(OpenAlert(fired_at=row.pop("raised_at"), **row) for row in rows)
