"""What the overview asks: the verdict, the alerts that fire, and what served since when."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pandas as pd

from compare.alerts.evidence import ServedChange
from compare.alerts.suspects import TOLD, changes_among
from compare.ship.decide import at_margin
from compare.ship.model import ShipVerdict, Terms
from compare.ship.read import read_verdict
from compare.store.errors import StoreQueryError
from dashboards.asked import Asked, frame
from dashboards.questions.summary import Series

MARGINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""That can be chosen; rates."""
DEFAULT_MARGIN = 0.005

MOST_FIRING = 3
MOST_SERVED = 500
_UNKNOWN_TABLE = 60


class Spread(msgspec.Struct, frozen=True):
    """The pairs kept of a series; the times (UTC) are those of the first and the newest by `mirrored_at`."""

    pairs: int
    first_at: datetime
    last_at: datetime


def verdict(asked: Asked, series: Series, terms: Terms) -> ShipVerdict | None:
    """The ship rule's answer: made now for few pairs, else the newest that is kept, against this margin.

    None where none is kept. A kept one is of everything kept, whatever the range of `terms`.
    """
    if series.until is None:
        return read_verdict(asked, series.experiment, series.candidate, terms)
    kept = kept_verdict(asked, series)
    return None if kept is None else at_margin(kept, terms.margin)


def kept_verdict(asked: Asked, series: Series) -> ShipVerdict | None:
    """The newest verdict that the watcher kept; None if there is none, or no place for one in this store."""
    try:
        rows = asked.query(
            "SELECT verdict FROM verdicts_v1 WHERE experiment = {experiment:String}"
            " AND candidate = {candidate:String} ORDER BY made_at DESC LIMIT 1",
            series.parameters(),
        ).rows
    except StoreQueryError as error:
        if error.code == _UNKNOWN_TABLE:
            return None
        raise
    return msgspec.json.decode(rows[0][0], type=ShipVerdict) if rows else None


def firing(asked: Asked, series: Series) -> pd.DataFrame:
    """MOST_FIRING of the alerts that fire, those first that nobody handles, of these the critical ones, then
    the newest; `count` is of all, `handled` of those that are acknowledged or silenced.
    """
    return frame(
        asked,
        "SELECT alert_id, severity, metric, dimension, slice, fired_at, unit, value_since, observed_rate,"
        " ifNull(change_at, started_at) AS began_at, is_acknowledged, acknowledged_by, is_silenced,"
        " silenced_until, count() OVER () AS count,"
        " countIf(is_acknowledged OR is_silenced) OVER () AS handled FROM alerts_v1"
        " WHERE experiment = {experiment:String}"
        " AND candidate IN ('', {candidate:String}) AND state = 'firing'"
        " ORDER BY is_acknowledged OR is_silenced, severity != 'critical', fired_at DESC,"
        " dimension = 'experiment' DESC, alert_id"
        " LIMIT {most:UInt32}",
        {**series.parameters(), "most": MOST_FIRING},
    )


def spread(asked: Asked, series: Series) -> Spread | None:
    """How many pairs are kept, and of what times; None for none. From rollups by the hour."""
    times, source = "min(mirrored_at), max(mirrored_at), count()", "pairs_v1 WHERE"
    if series.until is not None:
        times, source = "min(hour), max(hour), sum(pairs)", "rollup_sums_v1 WHERE dimension = 'all' AND"
    ((first, last, pairs),) = asked.query(
        f"SELECT {times} FROM {source} experiment = {{experiment:String}}"
        " AND candidate = {candidate:String}",
        series.parameters(),
    ).rows
    return Spread(int(pairs), first, max(last, series.until or last)) if pairs else None


def served_changes(asked: Asked, series: Series) -> list[ServedChange]:
    """When an endpoint began to serve something else than before, oldest first."""
    rows = asked.query(
        f"SELECT role, endpoint_name, seen_at, {', '.join(TOLD)} FROM served_v1"
        " WHERE experiment = {experiment:String}"
        " AND (role != 'candidate' OR endpoint_name = {candidate:String})"
        " ORDER BY role, endpoint_name, seen_at LIMIT {most:UInt32}",
        {**series.parameters(), "most": MOST_SERVED},
    ).rows
    return sorted(changes_among(rows), key=lambda one: one.seen_at)
