"""The counted pairs that speak most against the candidate."""

from __future__ import annotations

from typing import Any

from compare.ship.model import WorstPair
from compare.ship.scope import CLASS, MARKS, Scope
from compare.store.asked import Asked

WORST_PAIRS = 10
TEXT_CHARACTERS = 600
"""Of a text that was asked for: a report is a page, the explorer shows the whole."""


def read_worst(store: Asked, scope: Scope, *, with_text: bool) -> tuple[WorstPair, ...]:
    """The ten pairs of the greatest severity of those where only the candidate is faulty.

    A request shows once, whatever its repeats. What was seen is named by family; reasons and messages may
    quote an answer, so they stay out, and texts come only with `with_text`.
    """
    rows = store.query(
        "SELECT request_id, topic_id, `partition`, `offset`, mirrored_at, toString(route) AS route,"
        " toString(tenant) AS tenant, if(empty(candidate_only_families),"
        " [ifNull(toString(candidate_failure_kind), 'error')],"
        " arrayMap(one -> toString(one), candidate_only_families)) AS families,"
        " toString(probable_cause) AS probable_cause, severity"
        f" FROM pairs_v1{MARKS}{scope.where} AND {CLASS} = 'counted' AND is_candidate_only_fault"
        " ORDER BY severity DESC, mirrored_at, `partition`, `offset`"
        f" LIMIT 1 BY request_hash LIMIT {WORST_PAIRS}",
        scope.parameters,
    ).dicts()
    found = []
    for row in rows:
        told = {**row, "families": tuple(row["families"]), "severity": float(row["severity"] or 0.0)}
        found.append(WorstPair(**(told | _texts(store, scope, row) if with_text else told)))
    return tuple(found)


def _texts(store: Asked, scope: Scope, row: dict[str, Any]) -> dict[str, str | None]:
    """The beginnings of the request and of both answers; None where one is not kept any more."""
    where = (
        " WHERE topic_id = {topic_id:String} AND `partition` = {partition:UInt32}"
        " AND `offset` = {offset:UInt64}"
    )
    parameters = {**scope.parameters, **{name: row[name] for name in ("topic_id", "partition", "offset")}}
    cut = f"leftUTF8(%s, {TEXT_CHARACTERS})"
    request = store.query(f"SELECT {cut % 'body'} FROM requests_v1{where}", parameters).rows
    answers: dict[str, str | None] = dict(
        store.query(
            f"SELECT toString(role), {cut % 'text'} FROM observations_v1{where}"
            " AND experiment = {experiment:String}"
            " AND (role = 'reference' OR (role = 'candidate' AND endpoint_name = {candidate:String}))",
            parameters,
        ).rows
    )
    return {
        "request_text": str(request[0][0]) if request else None,
        "reference_text": answers.get("reference"),
        "candidate_text": answers.get("candidate"),
    }
