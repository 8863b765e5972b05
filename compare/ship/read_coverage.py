"""What share of the consumed traffic the counted pairs are."""

from __future__ import annotations

from compare.ship.model import Coverage, LeftOut
from compare.ship.read_counts import Classes, not_counted
from compare.ship.scope import Scope
from compare.store.asked import Asked


def read_coverage(store: Asked, scope: Scope, classes: Classes) -> Coverage:
    """Return covered and consumed records, and what is left out and why.

    Without a range, *consumed* is what Kafka delivered by its offset ranges, counted apart from the outcomes;
    with one, where no range of offsets fits, it is the sum of all outcomes with a time in the range. A repeat
    of a request within the hour is covered: it was compared, and counted with the first.
    """
    left_out = not_counted(classes) + _outcomes(store, scope)
    covered = classes.by_class.get("counted", 0)
    known = covered + sum(one.records for one in left_out)
    consumed = known
    if scope.since is None and scope.until is None:
        consumed = max(known, _delivered(store, scope))
        if consumed > known:
            left_out.append(
                LeftOut("other", "not compared with this candidate, or under way", consumed - known)
            )
    share = covered / consumed if consumed else None
    return Coverage(consumed, covered, share, tuple(sorted(left_out, key=lambda one: -one.records)))


def _delivered(store: Asked, scope: Scope) -> int:
    """Records that Kafka delivered. Two consumer groups on one topic read the same records."""
    rows = store.query(
        "SELECT sum(records) FROM (SELECT topic_id, max(delivered) AS records FROM"
        " (SELECT topic_id, consumer_group, sum(records) AS delivered FROM delivered_ranges_v1"
        " WHERE experiment = {experiment:String} GROUP BY topic_id, consumer_group) GROUP BY topic_id)",
        scope.parameters,
    ).rows
    return int(rows[0][0]) if rows else 0


def _outcomes(store: Asked, scope: Scope) -> list[LeftOut]:
    """Skipped, failed and dead-lettered records, less those that became a pair when they came again.

    Only a failed or a shed record can: the others end the same way each time.
    """
    where = f"WHERE experiment = {{experiment:String}}{scope.within}"
    again = "(kind = 'failed' OR reason = 'shed')"
    position = "(topic_id, `partition`, `offset`)"
    columns = "topic_id, `partition`, `offset`"
    rows = store.query(
        f"SELECT kind, reason, count() AS records FROM outcomes_v1 {where}"
        f" AND NOT ({again} AND {position} IN (SELECT {columns} FROM pairs_v1{scope.where}"
        f" AND {position} IN (SELECT {columns} FROM outcomes_v1 {where} AND {again})))"
        " GROUP BY kind, reason ORDER BY records DESC, kind, reason",
        scope.parameters,
    ).rows
    return [LeftOut(str(kind), str(reason), int(records)) for kind, reason, records in rows]
