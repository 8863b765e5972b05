"""The table of baselines: each version of each metric's, chosen by the program or by a person.

The row with the highest version is in force. A person's `set` adds a closed one and `reset` an open one;
what is learned from then on is closed by the program under the next version, and once more after a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from compare.alerts.baseline import MetricBaseline, bound_of
from compare.alerts.metrics import BY_NAME
from compare.store.client import Store
from ingest.errors import FatalError

COLUMNS = (
    "experiment",
    "candidate",
    "metric",
    "version",
    "chosen_by",
    "is_open",
    "from_at",
    "to_at",
    "pairs",
    "mean",
    "bound",
    "swing",
    "own_slices",
    "note",
    "document",
    "recorded_at",
)


def write_baselines(
    store: Store, experiment: str, candidate: str, baselines: Sequence[MetricBaseline], note: str = ""
) -> None:
    """Store these versions; one that is stored already is replaced."""
    now = datetime.now(UTC)
    rows = []
    for one in baselines:
        kind = BY_NAME[one.metric].kind
        has_pairs = one.whole.moments.n > 0
        rows.append(
            (
                experiment,
                candidate,
                one.metric,
                one.version,
                one.chosen_by,
                one.is_open,
                _time(one.from_ms),
                _time(one.to_ms),
                one.whole.moments.n,
                one.whole.moments.mean if has_pairs and kind != "rank" else None,
                bound_of(kind, one.whole) if has_pairs else None,
                one.swing,
                sum(len(parts) for parts in one.own.values()),
                note,
                msgspec.json.encode(one).decode(),
                now,
            )
        )
    if rows:
        store.insert("alert_baselines", COLUMNS, rows)


def current_baselines(
    store: Store, experiment: str, candidate: str, closed: Mapping[str, int]
) -> dict[str, MetricBaseline]:
    """By metric the baseline in force, for a state whose series are tested against the versions `closed`.

    A version of the program's that the state does not know was written by a fold that did not come to store
    its state; that fold is repeated, so what was in force before it still is. Raises FatalError if a row
    cannot be read, naming it.
    """
    rows = store.query(
        "SELECT metric, version, document FROM alert_baselines FINAL"
        " WHERE experiment = {experiment:String} AND candidate = {candidate:String}"
        " ORDER BY metric, version DESC LIMIT 3 BY metric",
        {"experiment": experiment, "candidate": candidate},
    ).rows
    found: dict[str, MetricBaseline] = {}
    for metric, version, document in rows:
        try:
            one = msgspec.json.decode(document, type=MetricBaseline)
        except msgspec.MsgspecError as error:
            where = f"{experiment}/{candidate} {metric} version {version}"
            raise FatalError(f"alert_baselines row {where}: {error}") from error
        is_known = one.chosen_by == "person" or one.version == closed.get(metric)
        if is_known and metric not in found:
            found[str(metric)] = one
    return found


def next_version(store: Store, experiment: str, candidate: str, metric: str) -> int:
    """The version of a baseline that a person chooses now: over those that the program may be closing."""
    rows = store.query(
        "SELECT max(version) FROM alert_baselines WHERE experiment = {experiment:String}"
        " AND candidate = {candidate:String} AND metric = {metric:String}",
        {"experiment": experiment, "candidate": candidate, "metric": metric},
    ).rows
    return int(rows[0][0]) + 3


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
