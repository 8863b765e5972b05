"""What the no-data detector reads and keeps: one row of `detector_state`, fenced like the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.describe import utc
from compare.alerts.no_data import NoDataState
from compare.alerts.no_data_words import Missing
from compare.row_values import milliseconds
from compare.store.client import Store
from ingest.errors import FatalError

KIND = "no_data"
_LOOK_BACK_MS = 2 * 86_400_000
_COLUMNS = (
    "experiment",
    "candidate",
    "kind",
    "status",
    "threshold",
    "statistic",
    "alert_id",
    "state",
    "outbox",
    "folded_until",
    "updated_at",
    "version",
)
_MINE = " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"


def load_no_data(
    store: Store, experiment: str, candidate: str
) -> tuple[NoDataState | None, list[Alert], int]:
    """The stored state, the outbox of its last write, and its version; None, none and 0 before the first.

    Raises FatalError if the row cannot be read, naming it.
    """
    rows = store.query(
        "SELECT state, outbox, version FROM detector_state FINAL" + _MINE + " AND kind = {kind:String}",
        {"experiment": experiment, "candidate": candidate, "kind": KIND},
    ).rows
    if not rows:
        return None, [], 0
    ((text, sent, version),) = rows
    try:
        state = msgspec.json.decode(text, type=NoDataState)
        return state, msgspec.json.decode(sent, type=list[Alert]), int(version)
    except (msgspec.MsgspecError, ValueError) as error:
        where = f"{experiment}/{candidate} {KIND} version {version}"
        raise FatalError(f"detector_state row {where}: {error}") from error


def save_no_data(
    store: Store,
    experiment: str,
    candidate: str,
    state: NoDataState,
    outbox: Sequence[Alert],
    *,
    after_ms: int,
    version: int,
) -> None:
    """Write the state and what it raised or resolved, in one row."""
    row = (
        experiment,
        candidate,
        KIND,
        state.status,
        after_ms / 1000,
        state.silent_ms / 1000,
        "" if state.alert is None else state.alert.alert_id,
        msgspec.json.encode(state).decode(),
        msgspec.json.encode(list(outbox)).decode(),
        utc(state.newest_ms),
        datetime.now(UTC),
        version,
    )
    store.insert("detector_state", _COLUMNS, [row])


def newest_pair_ms(store: Store, experiment: str, candidate: str, since_ms: int, now_ms: int) -> int:
    """`ingested_at` of the newest pair that was judged, Unix ms; `since_ms` if none is newer.

    Without `since_ms` (0) the last two days are looked at. Any judged pair counts, those that move no
    rate too: what is asked is whether comparing works.
    """
    from_ms = since_ms or max(now_ms - _LOOK_BACK_MS, 0)
    rows = store.query(
        "SELECT max(ingested_at), count() FROM pairs_v1"
        + _MINE
        + " AND verdict != 'unscored' AND ingested_at > {since:DateTime64(3, 'UTC')}",
        {"experiment": experiment, "candidate": candidate, "since": f"{from_ms / 1000:.3f}"},
    ).rows
    ((newest, count),) = rows
    return milliseconds(newest) if count else since_ms


def read_missing(store: Store, experiment: str, candidate: str, since_ms: int) -> Missing:
    """What came of the records since then, when no pair of the candidate did."""
    parameters = {"experiment": experiment, "candidate": candidate, "since": f"{since_ms / 1000:.3f}"}
    later = " AND ingested_at > {since:DateTime64(3, 'UTC')}"
    reasons = store.query(
        "SELECT toString(kind), toString(reason), count() AS records FROM outcomes_v1"
        " WHERE experiment = {experiment:String}" + later + " GROUP BY 1, 2 ORDER BY records DESC, 1, 2",
        parameters,
    ).rows
    ((unscored, others),) = store.query(
        "SELECT countIf(candidate = {candidate:String} AND verdict = 'unscored'),"
        " countIf(candidate != {candidate:String}) FROM pairs_v1 WHERE experiment = {experiment:String}"
        + later,
        parameters,
    ).rows
    return Missing(tuple((kind, reason, records) for kind, reason, records in reasons), unscored, others)
