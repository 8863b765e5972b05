"""FINAL reads only what is asked: the days that a bound on `ingested_at` leaves, the rows of the keys named.

ClickHouse 26.3 made `defer_partition_pruning_after_final` its default: FINAL reads every partition, since
another one may hold a later version of a row, and 400 days are read for an hour's query. Each view of a
table of days turns it off. Under a lower bound that changes nothing: a version *is* `ingested_at`, and no day
that is left out holds a later one. Under an upper bound a row shows as the last of the days read left it.
(`do_not_merge_across_partitions_select_final` would be wrong: without a bound, a record that was stored on
two days would be two rows.) Servers before 26.3 always prune first, and know no such setting.

A condition on key columns is tested before the other columns are read (`optimize_move_to_prewhere_if_final`,
off by default): every version of a row has its key. Looking one pair up takes half to a quarter of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compare.store.errors import StoreQueryError

if TYPE_CHECKING:
    from compare.store.client import Store

PRUNES_DAYS = "defer_partition_pruning_after_final"
READS_KEYS_FIRST = "optimize_move_to_prewhere_if_final"
_CLAUSE = f", {PRUNES_DAYS} = 0"
_UNKNOWN_SETTING = 115


def knows_setting(store: Store) -> bool:
    """Whether the server has the setting at all."""
    try:
        store.command(f"SELECT 1 SETTINGS {PRUNES_DAYS} = 0", use_database=False)
    except StoreQueryError as error:
        if error.code == _UNKNOWN_SETTING:
            return False
        raise
    return True


def without_setting(view: str) -> str:
    """The view's SQL for a server that does not have the setting."""
    return view.replace(_CLAUSE, "")
