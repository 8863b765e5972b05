"""Alerts name their worst pairs as examples: a purge takes those names out."""

from __future__ import annotations

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import local_table, on_cluster

_TABLES = ("alert_evidence", "alerts")
_JSON_COLUMNS = {"alert_notices": ("content",), "detector_state": ("state", "outbox")}
_IS_ONE = "has({ids:Array(String)}, example.request_id)"


def forget_examples(store: Store, value: str, request_id: str | None, keys: str, cluster: str | None) -> int:
    """Remove the positions of query `keys`, which binds `{value:String}`, from alerts; how many there were.

    From the evidence of alerts, from the notices that were made of it, and from where older versions kept
    them: the alerts themselves and the detectors' state.
    """
    among = "GLOBAL IN" if cluster else "IN"
    found: set[str] = set()
    for table in _TABLES:
        rows = store.query(
            f"SELECT DISTINCT example.request_id FROM {table} ARRAY JOIN worst_pairs AS example"
            f" WHERE (example.topic_id, example.`partition`, example.`offset`) {among} ({keys})",
            {"value": value},
        ).rows
        found |= {str(one) for (one,) in rows}
    ids = sorted(found)
    for table in _TABLES if ids else ():
        _update(
            store,
            table,
            f"worst_pairs = arrayFilter(example -> NOT {_IS_ONE}, worst_pairs)",
            f"arrayExists(example -> {_IS_ONE}, worst_pairs)",
            {"ids": ids},
            cluster,
        )
    for one in dict.fromkeys([*ids, *([request_id] if request_id else [])]):
        named: dict[str, object] = {
            "named": '"request_id":' + msgspec.json.encode(one).decode(),
            "unnamed": '"request_id":""',
        }
        for table, columns in _JSON_COLUMNS.items():
            _update(
                store,
                table,
                ", ".join(
                    f"{name} = replaceAll({name}, {{named:String}}, {{unnamed:String}})" for name in columns
                ),
                " OR ".join(f"position({name}, {{named:String}}) > 0" for name in columns),
                named,
                cluster,
            )
    return len(ids)


def _update(
    store: Store, table: str, change: str, where: str, parameters: dict[str, object], cluster: str | None
) -> None:
    ((count,),) = store.query(f"SELECT count() FROM {table} WHERE {where}", parameters).rows
    if count:
        store.command(
            f"ALTER TABLE {local_table(table, cluster)}{on_cluster(cluster)} UPDATE {change} WHERE {where}"
            " SETTINGS mutations_sync = 2",
            parameters,
        )
