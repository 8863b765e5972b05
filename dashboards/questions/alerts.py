"""What the alerts page asks: the list, one alert with all that is known of it, and what was done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from compare.alerts.actions import Matcher, Silence
from dashboards.asked import Asked, frame
from dashboards.questions.drift import Hours
from dashboards.questions.summary import Series

MOST_ALERTS = 500
MOST_EVENTS = 200

_OF_SERIES = "experiment = {experiment:String} AND candidate IN ('', {candidate:String})"
_LISTED = (
    "alert_id, state, severity, category, kind, metric, dimension, slice, group_key, started_at, fired_at,"
    " resolved_at, change_at, unit, value_before, value_since, value_low, value_high, observed_rate,"
    " pairs_since_change, pairs_since_start, is_acknowledged, acknowledged_by, is_silenced, silenced_until"
)
_MATCHED = ("experiment", "candidate", "metric", "dimension", "slice", "group_key", "alert_id")
"""What a silence names, all or some."""
_OF_PAIR = (
    "topic_id, `partition`, `offset`, request_id, verdict, candidate_only_families, candidate_failure_kind,"
    " divergence_position"
)


def listed(asked: Asked, series: Series, start: datetime | None, end: datetime | None) -> pd.DataFrame:
    """The alerts that were open at any time of the range, one row each: groups with a firing alert first,
    newest first, and in a group the newest alert first, of equals that of the whole experiment.
    """
    within, bounds = "", dict[str, Any]()
    if start is not None:
        within += " AND (state = 'firing' OR resolved_at >= {start:DateTime64(3, 'UTC')})"
        bounds["start"] = _text(start)
    if end is not None:
        within += " AND fired_at < {end:DateTime64(3, 'UTC')}"
        bounds["end"] = _text(end)
    found = frame(
        asked,
        f"SELECT {_LISTED} FROM alerts_v1 WHERE {_OF_SERIES}{within}"
        " ORDER BY state = 'firing' DESC, fired_at DESC, alert_id LIMIT {most:UInt32}",
        {**series.parameters(), **bounds, "most": MOST_ALERTS},
    )
    if found.empty:
        return found
    by_group = found.groupby("group_key")
    found["group_fires"] = (found["state"] == "firing").groupby(found["group_key"]).transform("any")
    found["group_fired_at"] = by_group["fired_at"].transform("max")
    found["is_slice"] = found["dimension"] != "experiment"
    return found.sort_values(
        ["group_fires", "group_fired_at", "group_key", "fired_at", "is_slice", "alert_id"],
        ascending=[False, False, True, False, True, True],
        ignore_index=True,
    )


def one(asked: Asked, experiment: str, alert_id: str) -> dict[str, Any] | None:
    """Every column of `alerts_v1` for one alert, None if the store holds no such alert."""
    rows = asked.query(
        "SELECT * FROM alerts_v1 WHERE experiment = {experiment:String} AND alert_id = {id:String} LIMIT 1",
        {"experiment": experiment, "id": alert_id},
    ).dicts()
    return rows[0] if rows else None


def worst(asked: Asked, series: Series, positions: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of these pairs (`topic_id`, `partition`, `offset`), in their order; those still stored."""
    if not positions:
        return pd.DataFrame()
    parts, values = [], dict[str, Any]()
    for number, pair in enumerate(positions):
        parts.append(
            f"(topic_id = {{t{number}:String}} AND `partition` = {{p{number}:UInt32}}"
            f" AND `offset` = {{o{number}:Int64}})"
        )
        values |= {f"t{number}": pair["topic_id"], f"p{number}": pair["partition"]}
        values[f"o{number}"] = pair["offset"]
    found = frame(
        asked,
        f"SELECT {_OF_PAIR} FROM pairs_v1 WHERE experiment = {{experiment:String}}"
        f" AND candidate = {{candidate:String}} AND ({' OR '.join(parts)})",
        {**series.parameters(), **values},
    )
    place = {
        (pair["topic_id"], pair["partition"], pair["offset"]): number for number, pair in enumerate(positions)
    }
    order = [place[key] for key in zip(found["topic_id"], found["partition"], found["offset"], strict=True)]
    return found.assign(place=order).sort_values("place", ignore_index=True)


def hours(asked: Asked, alert: Mapping[str, Any], start: datetime, end: datetime) -> Hours:
    """hour_at, pairs, observed, baseline, tolerated of the alert's own series, oldest first."""
    return asked.query(
        "SELECT hour_at, pairs, observed, baseline, tolerated FROM drift_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND metric = {metric:String} AND dimension = {dimension:String} AND slice = {slice:String}"
        " AND hour_at BETWEEN {start:DateTime('UTC')} AND {end:DateTime('UTC')} ORDER BY hour_at LIMIT 1000",
        {
            **{name: alert[name] for name in ("experiment", "candidate", "metric", "dimension", "slice")},
            "start": start,
            "end": end,
        },
    ).dicts()


def history(asked: Asked, alert: Mapping[str, Any]) -> pd.DataFrame:
    """happened_at, event, acted_by, detail of the alert and of its group, oldest first: silences that cover
    more than the group too, and the ends of all.
    """
    covers = " AND ".join(f"{name} IN ('', {{{name}:String}})" for name in _MATCHED)
    silences = f"FROM alert_actions_v1 WHERE action = 'silence' AND {covers}"
    return frame(
        asked,
        "SELECT DISTINCT happened_at, event, acted_by, detail FROM ("
        "SELECT happened_at, event, acted_by, detail FROM alert_history_v1"
        " WHERE experiment = {experiment:String} AND group_key = {group_key:String}"
        " AND alert_id IN ('', {alert_id:String})"
        " UNION ALL SELECT acted_at, 'silenced', acted_by, trim(concat(ifNull(concat('until ',"
        " formatDateTime(ends_at, '%F %T UTC')), ''), if(metric = '', '', concat(' metric ', metric)),"
        f" if(dimension = '', '', concat(' ', dimension, ' ', slice)), ' ', note)) {silences}"
        " AND group_key = ''"
        " UNION ALL SELECT acted_at, 'unsilenced', acted_by, note FROM alert_actions_v1"
        f" WHERE action = 'unsilence' AND action_id IN (SELECT action_id {silences})"
        ") ORDER BY happened_at, event LIMIT {most:UInt32}",
        {**{name: alert[name] for name in _MATCHED}, "most": MOST_EVENTS},
    )


def notices(asked: Asked, alert: Mapping[str, Any]) -> pd.DataFrame:
    """The notices of the alert's group, a row for each sink, newest first."""
    return frame(
        asked,
        "SELECT number, reason, severity, created_at, sink, is_delivered, attempts, error, attempted_at"
        " FROM alert_notices_v1 WHERE experiment = {experiment:String} AND group_key = {group:String}"
        " ORDER BY number DESC, sink LIMIT {most:UInt32}",
        {"experiment": alert["experiment"], "group": alert["group_key"], "most": MOST_EVENTS},
    )


def evidence(asked: Asked, alert: Mapping[str, Any]) -> pd.DataFrame:
    """Each time that the alert's evidence was gathered, newest first."""
    return frame(
        asked,
        "SELECT gathered_at, severity, pairs_since, value_since, value_low, value_high, effect, effect_low,"
        " effect_high FROM alert_evidence_v1 WHERE experiment = {experiment:String}"
        " AND candidate = {candidate:String} AND alert_id = {id:String}"
        " ORDER BY gathered_at DESC LIMIT {most:UInt32}",
        {
            "experiment": alert["experiment"],
            "candidate": alert["candidate"],
            "id": alert["alert_id"],
            "most": MOST_EVENTS,
        },
    )


def pending(asked: Asked, series: Series) -> pd.DataFrame:
    """metric, dimension, slice, statistic, threshold, pairs_folded of series that may fire soon."""
    return frame(
        asked,
        "SELECT metric, dimension, slice, statistic, threshold, pairs_folded FROM detectors_v1"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String} AND status = 'pending'"
        " ORDER BY statistic / threshold DESC, metric, dimension, slice LIMIT 100",
        series.parameters(),
    )


def silences(asked: Asked, experiment: str, now: datetime) -> list[Silence]:
    """The silences in force that may cover alerts of the experiment, newest first."""
    rows = asked.query(
        "SELECT action_id, experiment, candidate, metric, dimension, slice, group_key, alert_id, acted_at,"
        " assumeNotNull(ends_at), acted_by, note FROM alert_actions_v1"
        " WHERE action = 'silence' AND isNotNull(ends_at) AND experiment IN ('', {experiment:String})"
        " AND action_id NOT IN (SELECT action_id FROM alert_actions_v1 WHERE action = 'unsilence')"
        " ORDER BY acted_at DESC",
        {"experiment": experiment},
    ).rows
    made = [
        Silence(str(row[0]), Matcher(*map(str, row[1:8])), row[8], row[9], str(row[10]), str(row[11]))
        for row in rows
    ]
    return [silence for silence in made if silence.holds(now)]


def is_covered(alert: Mapping[str, Any], silence: Silence) -> bool:
    """Whether the silence is one of this alert."""
    matcher = silence.matcher
    return all(getattr(matcher, name) in ("", alert[name]) for name in _MATCHED)


def _text(time: datetime) -> str:
    """A time as ClickHouse reads it for DateTime64(3, 'UTC') whatever the session's zone."""
    return f"{time.timestamp():.3f}"
