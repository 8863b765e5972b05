"""What stands beside the bound: scores over the noise floor, schema validity, what served, open alerts."""

from __future__ import annotations

from datetime import datetime

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

_SPECS = {spec.name: spec for spec in METRICS}


def read_supports(store: Asked, scope: Scope) -> tuple[Support, ...]:
    """The scores of the counted pairs, repeats included, each beside its floor."""
    columns = []
    for name in SUPPORTING:
        worst_end = 0.01 if _SPECS[name].direction == "higher is better" else 0.99
        columns += [
            f"count({name})",
            f"ifNull(avg(toFloat64({name})), 0)",
            f"ifNull(quantileExact(0.5)({name}), 0)",
            f"ifNull(quantileExact({worst_end})({name}), 0)",
        ]
    # A mean or a quantile of nothing is NaN, and there is no line for it then.
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
        pairs, mean, p50, worst = row[4 * place : 4 * place + 4]
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
    found = []
    for kind, column in (("schema", "is_schema_valid"), ("json", "is_valid_json")):
        reference, candidate = f"reference_{column}", f"candidate_{column}"
        both = f"{reference} IS NOT NULL AND {candidate} IS NOT NULL"
        pairs, worse, better = store.query(
            f"SELECT countIf({both}), countIf({both} AND {reference} > {candidate}),"
            f" countIf({both} AND {reference} < {candidate})"
            f" FROM pairs_v1{MARKS}{scope.where} AND {CLASS} = 'counted'",
            scope.parameters,
        ).rows[0]
        noise, flips = store.query(
            f"SELECT countIf({both}), countIf({both} AND {reference} != {candidate})"
            f" FROM noise_pairs_v1{scope.where} AND side = 'reference'",
            scope.parameters,
        ).rows[0]
        if pairs:
            found.append(
                Validity(
                    "schema" if kind == "schema" else "json",
                    int(pairs),
                    int(worse),
                    int(better),
                    int(noise),
                    int(flips),
                )
            )
    return tuple(found)


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
    """The alerts that are firing, the first to fire first."""
    rows = store.query(
        "SELECT alert_id, toString(severity) AS severity, toString(metric) AS metric,"
        " toString(dimension) AS dimension, slice, fired_at, summary FROM alerts_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String} AND state = 'firing'"
        " ORDER BY fired_at, alert_id",
        scope.parameters,
    ).dicts()
    return tuple(OpenAlert(**row) for row in rows)
