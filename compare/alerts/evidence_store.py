"""The table `alert_evidence`: written by the runner, read by notices and by people."""

from __future__ import annotations

import msgspec

from compare.alerts.evidence import Evidence
from compare.store.client import Store

COLUMNS = Evidence.__struct_fields__
_ARRAYS = ("families", "worst_pairs", "served_changes", "tests", "slices")


def write_evidence(store: Store, evidence: Evidence) -> None:
    """Store it. Written again it replaces itself. Raises what the store raises."""
    row = msgspec.structs.asdict(evidence)
    for name in _ARRAYS:
        row[name] = [msgspec.structs.astuple(one) for one in row[name]]
    store.insert("alert_evidence", COLUMNS, [tuple(row.values())])


def read_evidence(store: Store, experiment: str, alert_ids: list[str]) -> dict[str, Evidence]:
    """The last evidence of each of these alerts, for those that have any. Raises what the store raises."""
    if not alert_ids:
        return {}
    rows = store.query(
        f"SELECT {', '.join(COLUMNS)} FROM alert_evidence FINAL"
        " WHERE experiment = {experiment:String} AND alert_id IN {ids:Array(String)}"
        " ORDER BY alert_id, gathered_at DESC LIMIT 1 BY alert_id",
        {"experiment": experiment, "ids": alert_ids},
    ).dicts()
    found = (msgspec.convert(row, Evidence) for row in rows)
    return {one.alert_id: one for one in found}
