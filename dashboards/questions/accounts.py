"""The accounting, counted at most once a minute for an experiment of many pairs, however many look at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pandas as pd

from dashboards.asked import Asked, frame
from dashboards.questions.summary import Series

KEPT_S = 60.0


def accounting(asked: Asked, experiment: str) -> pd.DataFrame:
    """One row: consumed, compared, skipped, failed, dead_lettered, unaccounted, lost_retention,
    stored_ahead.
    """
    return frame(
        asked,
        "SELECT sum(consumed) AS consumed, sum(compared) AS compared, sum(skipped) AS skipped, "
        "sum(failed) AS failed, sum(dead_lettered) AS dead_lettered, sum(unaccounted) AS unaccounted, "
        "sum(lost_retention) AS lost_retention, sum(stored_ahead) AS stored_ahead FROM accounting_v1 "
        "WHERE experiment = {experiment:String}",
        {"experiment": experiment},
    )


def lag(asked: Asked, series: Series) -> dict[str, Any] | None:
    """mean_s, max_s, records, last_at: seconds from Kafka's timestamp to the store, over the compared records
    of the last hour in which there are any. None if none is known.
    """
    if series.until is None:
        sql = (
            "WITH (SELECT max(ingested_at) FROM pairs_v1 WHERE experiment = {experiment:String}"
            " AND candidate = {candidate:String}) AS newest"
            " SELECT avg(dateDiff('millisecond', mirrored_at, ingested_at)) / 1000 AS mean_s,"
            " max(dateDiff('millisecond', mirrored_at, ingested_at)) / 1000 AS max_s,"
            " count() AS records, max(ingested_at) AS last_at FROM pairs_v1"
            " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
            " AND ingested_at > newest - INTERVAL 1 HOUR"
        )
        found = frame(asked, sql, series.parameters())
    else:
        sql = (
            "SELECT sum(lag_mean_ms * minutes.records) / sum(minutes.records) / 1000 AS mean_s,"
            " max(lag_max_ms) / 1000 AS max_s, sum(minutes.records) AS records, max(minute) AS last_at"
            " FROM rollup_minutes_v1 AS minutes"
            " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
            " AND kind = 'compared' AND minute > {oldest:DateTime('UTC')}"
        )
        oldest = series.until - timedelta(hours=1)
        found = frame(asked, sql, {**series.parameters(), "oldest": int(oldest.timestamp())})
    if found.empty or not found["records"].iloc[0]:
        return None
    return {str(name): found[name].iloc[0] for name in found}


class Accounts:
    """`accounting` of each experiment. Called from any thread.

    Counting 10 million positions takes a processor most of a second. While one caller counts anew, the others
    get what was counted before, if anything was.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted: dict[str, tuple[float, pd.DataFrame]] = {}
        self._counting: dict[str, threading.Lock] = {}

    def of(self, asked: Asked, series: Series) -> pd.DataFrame:
        """The row of the series' experiment, counted now or, where it is read from rollups, a minute ago.

        Raises what the store raises.
        """
        if series.until is None:
            return accounting(asked, series.experiment)
        name = series.experiment
        lock = self._counting.setdefault(name, threading.Lock())
        at, known = self._counted.get(name, (0.0, None))
        if known is not None and self._clock() - at < KEPT_S:
            return known
        if not lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            at, known = self._counted.get(name, (0.0, None))
            # Another may have counted while this one waited.
            if known is None or self._clock() - at >= KEPT_S:
                known = accounting(asked, name)
                self._counted[name] = (self._clock(), known)
            return known
        finally:
            lock.release()
