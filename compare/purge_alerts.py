"""Alerts name their worst pairs as examples: a purge takes those names out."""

from __future__ import annotations

import msgspec

from compare.store.client import Store
from compare.store.cluster_ddl import local_table, on_cluster

_IS_ONE = "has({ids:Array(String)}, example.request_id)"


def forget_examples(store: Store, value: str, request_id: str | None, keys: str, cluster: str | None) -> int:
    """Remove the positions of query `keys`, which binds `{value:String}`, from alerts; how many there were.

    Also from the detectors' state, where an alert that fires is kept. A service that runs holds that in
    memory and writes it again until the alert is resolved: it names ids and positions, no content.
    """
    among = "GLOBAL IN" if cluster else "IN"
    rows = store.query(
        "SELECT DISTINCT example.request_id FROM alerts ARRAY JOIN worst_pairs AS example"
        f" WHERE (example.topic_id, example.`partition`, example.`offset`) {among} ({keys})",
        {"value": value},
    ).rows
    ids = [str(found) for (found,) in rows]
    if ids:
        _update(
            store,
            "alerts",
            f"worst_pairs = arrayFilter(example -> NOT {_IS_ONE}, worst_pairs)",
            f"arrayExists(example -> {_IS_ONE}, worst_pairs)",
            {"ids": ids},
            cluster,
        )
    for one in dict.fromkeys([*ids, *([request_id] if request_id else [])]):
        _update(
            store,
            "detector_state",
            "state = replaceAll(state, {named:String}, {unnamed:String}),"
            " outbox = replaceAll(outbox, {named:String}, {unnamed:String})",
            "position(state, {named:String}) > 0 OR position(outbox, {named:String}) > 0",
            {"named": '"request_id":' + msgspec.json.encode(one).decode(), "unnamed": '"request_id":""'},
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
