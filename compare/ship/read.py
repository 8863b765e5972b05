"""Reads everything that a verdict is made from, and makes it. For the command and for the explorer."""

from __future__ import annotations

from datetime import UTC, datetime

from compare.ship.decide import decide
from compare.ship.model import Evidence, ShipVerdict, Terms
from compare.ship.read_context import read_alerts, read_served, read_supports, read_validity
from compare.ship.read_counts import read_classes, read_tally
from compare.ship.read_coverage import read_coverage
from compare.ship.read_worst import read_worst
from compare.ship.scope import find_scope
from compare.store.asked import Asked


def read_verdict(
    store: Asked, experiment: str, candidate: str | None, terms: Terms, *, with_text: bool = False
) -> ShipVerdict:
    """Return the verdict on one candidate, from the views `*_v1`. Blocks: minutes for 10 million pairs.

    `candidate` may be None where the experiment has one. Raises SettingsError for terms out of range, an
    unknown experiment or candidate, or several candidates and none named; and what the store raises.
    """
    terms.check()
    scope = find_scope(store, experiment, candidate, terms.since, terms.until)
    classes = read_classes(store, scope)
    tally = read_tally(store, scope, classes)
    evidence = Evidence(
        experiment=experiment,
        candidate=scope.candidate,
        references=scope.references,
        tally=tally,
        coverage=read_coverage(store, scope, classes),
        supports=read_supports(store, scope),
        validity=read_validity(store, scope),
        served=read_served(store, scope, tally),
        alerts=read_alerts(store, scope),
        worst=read_worst(store, scope, with_text=with_text),
    )
    return decide(evidence, terms, datetime.now(UTC))
