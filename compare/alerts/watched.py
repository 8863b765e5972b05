"""Which experiments and candidates a store knows: for commands that are given no settings file."""

from __future__ import annotations

import json

from compare.store.client import Store
from ingest.errors import FatalError


def candidates_of(store: Store, experiment: str) -> tuple[str, ...]:
    """The candidates of the experiment's last settings, else of its pairs, in order.

    Raises FatalError, naming the experiments that there are, if nothing is known of it.
    """
    rows = store.query(
        "SELECT settings FROM experiments_v1 WHERE experiment = {experiment:String}"
        " ORDER BY ingested_at DESC LIMIT 1",
        {"experiment": experiment},
    ).rows
    for (text,) in rows:
        return tuple(str(name) for name in json.loads(text)["experiment"]["candidates"])
    rows = store.query(
        "SELECT DISTINCT candidate FROM pairs_v1 WHERE experiment = {experiment:String} ORDER BY candidate",
        {"experiment": experiment},
    ).rows
    if not rows:
        known = ", ".join(experiments(store)) or "none"
        raise FatalError(f"store {store.where}: experiment {experiment} is unknown; known: {known}")
    return tuple(str(row[0]) for row in rows)


def the_only_experiment(store: Store) -> str:
    """The experiment of the store. Raises FatalError, naming them, if there is not exactly one."""
    known = experiments(store)
    if len(known) != 1:
        named = ", ".join(known) or "none"
        raise FatalError(f"store {store.where}: say which experiment with --experiment; known: {named}")
    return known[0]


def experiments(store: Store) -> list[str]:
    """Every experiment with settings or pairs, by name."""
    rows = store.query(
        "SELECT experiment FROM experiments_v1 UNION DISTINCT SELECT experiment FROM pairs_v1"
        " GROUP BY experiment ORDER BY experiment"
    ).rows
    return sorted({str(row[0]) for row in rows})
