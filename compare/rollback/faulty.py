"""Condition B: the share of requests on which the candidate alone fails, over the last minutes.

Minutes are of `ingested_at`, when the candidate answered: a backlog of yesterday's traffic is answered today,
by what serves today. A request counts once however often its client repeats it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from compare.alerts.binomial import lower_bound
from compare.alerts.source import COUNTED
from compare.rollback.condition import Condition
from compare.store.client import Store
from ingest.settings_rollback import RollbackSettings

_OUTAGE_S = 60
"""A stream that was cut so shortly before or after the endpoint was away was cut by its outage."""
_SHOWN = 5


class FaultyCounts(msgspec.Struct, frozen=True):
    """Requests of the window, each once.

    `faulty`: the candidate is worse or errs where the reference does not. `both_faulty`: both are, which is
    no reason to go back. `cut_by_outage`: pairs that are left out. `away`: records that met no candidate.
    """

    pairs: int
    faulty: int
    both_faulty: int = 0
    cut_by_outage: int = 0
    away: int = 0
    families: tuple[tuple[str, int], ...] = ()
    examples: tuple[tuple[str, int, int], ...] = ()
    """(topic, partition, offset) of the last faulty pairs."""


def condition_b(counts: FaultyCounts, settings: RollbackSettings) -> Condition:
    """Return whether the true share is over `faulty_share`, at `faulty_confidence`.

    By the exact one-sided lower bound of Clopper and Pearson (1934): 3 of 3 faulty pairs are no proof where
    20 are asked for, and 6 of 100 are none of over 5 %.
    """
    share, needed = settings.faulty_share, settings.faulty_min_pairs
    minutes = f"{settings.faulty_window_s / 60:g} min"
    low = lower_bound(counts.faulty, counts.pairs, 1.0 - settings.faulty_confidence) if counts.pairs else 0.0
    evidence = {
        "window_s": settings.faulty_window_s,
        "share_allowed": share,
        "confidence": settings.faulty_confidence,
        "pairs": counts.pairs,
        "pairs_needed": needed,
        "faulty": counts.faulty,
        "lower_bound": low,
        "both_faulty": counts.both_faulty,
        "cut_by_outage": counts.cut_by_outage,
        "candidate_away": counts.away,
        "families": dict(counts.families),
        "examples": [f"{topic}/{partition}/{offset}" for topic, partition, offset in counts.examples],
    }
    away = f"; the candidate was away for {counts.away} records" if counts.away else ""
    if counts.pairs < needed:
        text = f"{counts.pairs} comparable requests in {minutes}, {needed} are needed{away}"
        return Condition("unknown", text, evidence)
    seen = (
        f"{counts.faulty} of {counts.pairs} requests faulty on the candidate alone in {minutes}"
        f" ({counts.faulty / counts.pairs:.1%}, at least {low:.1%}), allowed {share:.1%}{away}"
    )
    return Condition("firing" if low > share else "quiet", seen, evidence)


def read_counts(
    store: Store, experiment: str, candidate: str, settings: RollbackSettings, now: datetime
) -> FaultyCounts:
    """Count the window that ends now. Raises what the store raises."""
    parameters: dict[str, Any] = {
        "experiment": experiment,
        "candidate": candidate,
        "since": f"{(now - timedelta(seconds=settings.faulty_window_s)).timestamp():.3f}",
        "now": f"{now.timestamp():.3f}",
        "named": f'endpoint "{candidate}" ',
    }
    away = [
        int(row[0])
        for row in store.query(
            "SELECT toUnixTimestamp64Milli(ingested_at) FROM outcomes_v1"
            " WHERE experiment = {experiment:String} AND reason = 'endpoint_away'"
            " AND startsWith(detail, {named:String}) AND ingested_at > {since:DateTime64(3, 'UTC')}"
            " AND ingested_at <= {now:DateTime64(3, 'UTC')}",
            parameters,
        ).rows
    ]
    # Whole stretches of an outage instead of its every record keep the condition short.
    cut = (
        "candidate_failure_kind = 'cut_stream' AND intDiv(toUnixTimestamp64Milli(ingested_at), {width:Int64})"
    )
    parameters |= {"width": _OUTAGE_S * 1000, "outage": _stretches(away)}
    ((pairs, faulty, both, left_out, families, examples),) = store.query(
        "WITH "
        f"{COUNTED} AS is_counted, ifNull({cut} IN {{outage:Array(Int64)}}, false) AS is_cut,"
        " is_counted AND NOT is_cut AS is_in,"
        " verdict IN ('both_faulty', 'both_error') AS is_both"
        " SELECT uniqExactIf(request_hash, is_in), uniqExactIf(request_hash, is_in AND is_regression),"
        " uniqExactIf(request_hash, is_in AND is_both), countIf(is_counted AND is_cut),"
        " sumMapIf(candidate_only_families, arrayMap(f -> toUInt64(1), candidate_only_families),"
        " is_in AND is_regression),"
        f" arraySlice(arrayReverseSort(e -> e.1, groupArrayIf(1000)((ingested_at, topic, `partition`,"
        f" `offset`), is_in AND is_regression)), 1, {_SHOWN})"
        " FROM pairs_v1 WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " AND ingested_at > {since:DateTime64(3, 'UTC')} AND ingested_at <= {now:DateTime64(3, 'UTC')}",
        parameters,
    ).rows
    return FaultyCounts(
        pairs=int(pairs),
        faulty=int(faulty),
        both_faulty=int(both),
        cut_by_outage=int(left_out),
        away=len(away),
        families=tuple(sorted(zip(families[0], map(int, families[1]), strict=True))),
        examples=tuple((str(one[1]), int(one[2]), int(one[3])) for one in examples),
    )


def _stretches(away_ms: list[int]) -> list[int]:
    """Return the numbers of the minutes in which the endpoint was away, and of those beside them."""
    minutes = {moment // (_OUTAGE_S * 1000) for moment in away_ms}
    return sorted({minute + beside for minute in minutes for beside in (-1, 0, 1)})
