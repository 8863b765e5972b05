"""Whether the consumer group fits the experiment, by what the store knows of both."""

from __future__ import annotations

from compare.reprocess.experiment import group_of
from compare.store.client import Store
from ingest.kafka_group import shared_group

_RECENT_DAYS = 1
"""What was read by a group longer ago may have been renamed meanwhile."""


def group_warnings(store: Store, experiment: str, group: str) -> list[str]:
    """One line for each thing that the person who starts a service should know. Raises what the store raises.

    Another experiment's service that writes to another store is not seen here.
    """
    sharing = store.query(
        "SELECT DISTINCT experiment FROM delivered_ranges WHERE consumer_group = {group:String}"
        " AND experiment != {experiment:String} AND ingested_at > now() - toIntervalDay({days:UInt16})"
        " ORDER BY experiment",
        {"experiment": experiment, "group": group, "days": _RECENT_DAYS},
    ).rows
    found = [shared_group(group, str(row[0]), experiment) for row in sharing]
    former = store.query(
        "SELECT consumer_group, max(ingested_at) FROM delivered_ranges WHERE experiment = {experiment:String}"
        " AND consumer_group != {replay:String} GROUP BY consumer_group ORDER BY max(ingested_at) DESC",
        {"experiment": experiment, "replay": group_of(experiment)},
    ).rows
    if former and group not in (str(row[0]) for row in former):
        name, last = str(former[0][0]), former[0][1]
        found.append(
            f'experiment "{experiment}" was read by the group "{name}" until {last:%Y-%m-%d %H:%M} UTC, and '
            f'"{group}" begins with the oldest record (what is stored is not asked again): '
            f'kafka.group = "{name}" goes on where that one was'
        )
    return found
