"""Golden cases hold a stored request and answers to it: a purge takes them out with the request."""

from __future__ import annotations

from compare.store.client import Store
from compare.store.cluster_ddl import local_table, on_cluster


def forget_cases(store: Store, column: str, value: str, keys: str, cluster: str | None) -> int:
    """Remove the cases whose `column` (`request_id` or `tenant`) is `value`, or that were made of a position
    of the query `keys`, which binds `{value:String}`; all their versions and results. Return how many cases.

    Results go first: killed in between, the next purge finds the rest by the cases. Raises as the store.
    """
    among = "GLOBAL IN" if cluster else "IN"
    found = store.query(
        "SELECT set_name, groupUniqArray(case_id) FROM golden_cases"
        f" WHERE {column} = {{value:String}}"
        f" OR (source_topic_id, source_partition, source_offset) {among} ({keys})"
        " GROUP BY set_name",
        {"value": value},
    ).rows
    for table in ("golden_results", "golden_cases"):
        for set_name, ids in found:
            store.command(
                f"ALTER TABLE {local_table(table, cluster)}{on_cluster(cluster)}"
                " DELETE WHERE set_name = {set_name:String} AND has({ids:Array(String)}, case_id)"
                " SETTINGS mutations_sync = 2",
                {"set_name": str(set_name), "ids": list(ids)},
            )
    return sum(len(ids) for _, ids in found)
