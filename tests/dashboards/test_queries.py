"""What stands beside a pair is found on the pair's day, and nothing of another day is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from compare.result import Family, VerdictKind
from compare.store import Store, open_store
from compare.writer import Writer
from dashboards import queries
from tests.compare import batches
from tests.dashboards.conftest import night_pair
from tests.fixtures.stores import MigratedAt


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    with open_store(migrated_at(tmp_path_factory.mktemp("queries")), role="owner") as opened:
        pair = night_pair(3, VerdictKind.CANDIDATE_WORSE, (Family.JSON, Family.REPETITION))
        Writer(opened, threading.Event()).write(batches.batch(pair, experiment="night"))
        yield opened


def test_the_pairs_own_day_holds_all_that_stands_beside_it(store: Store) -> None:
    ((experiment, candidate, topic_id, partition, offset, at),) = store.query(
        "SELECT experiment, candidate, topic_id, `partition`, `offset`, ingested_at FROM pairs_v1"
    ).rows
    key = queries.PairKey(experiment, candidate, topic_id, partition, offset)
    (found,) = (row for _, row in queries.pair(store, key).iterrows())
    assert found["ingested_at"] == at
    assert queries.pair(store, key, ("partition", "verdict")).to_dict("records") == [
        {"partition": partition, "verdict": "candidate_worse"}
    ]
    beside = (queries.answers, queries.findings, queries.positions)
    counts = [len(ask(store, key)) for ask in beside]
    assert counts[:2] == [2, 2]
    assert [len(ask(store, key, at.date())) for ask in beside] == counts
    assert queries.request_body(store, key, at.date()) == queries.request_body(store, key) != ""
    other = at.date() - timedelta(days=1)
    assert [len(ask(store, key, other)) for ask in beside] == [0, 0, 0]
    assert queries.request_body(store, key, other) == ""
