"""How the endpoints do: what serves, what was asked of them, what failed, and what people have paused."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pandas as pd

from dashboards.asked import Asked, frame
from dashboards.questions.summary import Series

FAILED_WITHIN = timedelta(hours=24)
USE_DAYS = 30
MOST_ORDERS = 50

_EXPERIMENT = "experiment = {experiment:String}"


class _Endpoint(msgspec.Struct):
    tokens_per_day: int | None = None


class _Roles(msgspec.Struct):
    reference: str = ""
    reference_b: str | None = None


class _Settings(msgspec.Struct):
    """The part of `experiments_v1.settings` that is read here."""

    experiment: _Roles = msgspec.field(default_factory=_Roles)
    endpoints: dict[str, _Endpoint] = msgspec.field(default_factory=dict)


class _Served(msgspec.Struct):
    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    quantization: str | None = None


def endpoints(asked: Asked, series: Series) -> pd.DataFrame:
    """The endpoints of the newest settings: endpoint, role (`reference`, `reference_b` or `candidate`),
    tokens_per_day (None: no budget, or settings older than the figure), model, engine, quantization.
    """
    rows = asked.query(
        f"SELECT settings, served FROM experiments_v1 WHERE {_EXPERIMENT} ORDER BY ingested_at DESC LIMIT 1",
        {"experiment": series.experiment},
    ).rows
    if not rows:
        return pd.DataFrame()
    settings = msgspec.json.decode(rows[0][0], type=_Settings)
    served = msgspec.json.decode(rows[0][1], type=dict[str, _Served])
    roles = {settings.experiment.reference: "reference", settings.experiment.reference_b: "reference_b"}
    made = []
    for name, one in settings.endpoints.items():
        told = served.get(name, _Served())
        engine = " ".join(word for word in (told.engine, told.engine_version) if word)
        made.append(
            {
                "endpoint": name,
                "role": roles.get(name, "candidate"),
                "tokens_per_day": one.tokens_per_day,
                "model": told.model or "",
                "engine": engine,
                "quantization": told.quantization or "",
            }
        )
    return pd.DataFrame(made).sort_values(["role", "endpoint"], ascending=[False, True], ignore_index=True)


def token_use(asked: Asked, names: list[str], today: datetime) -> pd.DataFrame:
    """What the endpoints computed for all experiments, which is what a budget counts, by UTC day of the last
    USE_DAYS: endpoint, day, prompt_tokens, completion_tokens, estimated_tokens, calls.
    """
    return frame(
        asked,
        "SELECT endpoint_name AS endpoint, day, sum(prompt_tokens) AS prompt_total,"
        " sum(completion_tokens) AS completion_total, sum(estimated_tokens) AS estimated_total,"
        " sum(calls) AS calls_total FROM token_use_v1"
        " WHERE endpoint_name IN {names:Array(String)} AND day > {today:Date} - {days:UInt16}"
        " GROUP BY endpoint, day ORDER BY endpoint, day",
        {"names": names, "today": today.date(), "days": USE_DAYS},
    ).rename(
        columns={
            "prompt_total": "prompt_tokens",
            "completion_total": "completion_tokens",
            "estimated_total": "estimated_tokens",
            "calls_total": "calls",
        }
    )


def failed(asked: Asked, series: Series, since: datetime) -> pd.DataFrame:
    """Records that failed since then, which says nothing about the models: endpoint (empty where the reason
    names none), reason, records, last_at (UTC), is_paused (its pause is why).
    """
    return frame(
        asked,
        'SELECT extract(detail, \'endpoint "([^"]+)"\') AS endpoint, reason, count() AS records,'
        " max(ingested_at) AS last_at, endsWith(any(detail), 'is paused by command') AS is_paused"
        f" FROM outcomes_v1 WHERE {_EXPERIMENT} AND kind = 'failed'"
        " AND ingested_at >= {since:DateTime('UTC')} GROUP BY endpoint, reason"
        " ORDER BY records DESC, endpoint",
        {"experiment": series.experiment, "since": int(since.timestamp())},
    )


def pauses(asked: Asked, series: Series) -> pd.DataFrame:
    """The pauses that hold now and concern the experiment: endpoint (empty: every one), ordered_at (UTC),
    ordered_by, why.
    """
    return frame(
        asked,
        "SELECT endpoint_name AS endpoint, ordered_at, ordered_by, reason AS why FROM controls_v1"
        " WHERE experiment IN ('', {experiment:String}) AND isNull(`partition`) AND is_last"
        " AND action = 'pause' ORDER BY ordered_at DESC",
        {"experiment": series.experiment},
    )


def orders(asked: Asked, series: Series) -> pd.DataFrame:
    """The last orders, newest first: ordered_at (UTC), action, endpoint, partition (of a held one that was
    let go, else None), ordered_by, why.
    """
    return frame(
        asked,
        "SELECT ordered_at, action, endpoint_name AS endpoint, `partition`, ordered_by, reason AS why"
        " FROM controls_v1 WHERE experiment IN ('', {experiment:String})"
        " ORDER BY ordered_at DESC LIMIT {most:UInt32}",
        {"experiment": series.experiment, "most": MOST_ORDERS},
    )
