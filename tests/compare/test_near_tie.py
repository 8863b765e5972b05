"""The near-tie limit that noise pairs show, on the real engine."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from compare.near_tie import LEAST_DIVERGENCES, near_tie_nats
from compare.outcomes import Batch
from compare.result import Scores
from compare.rows import rows_of
from compare.store import Store
from tests.compare.batches import compared


def _store_gaps(store: Store, experiment: str, gaps: list[float]) -> None:
    pairs = []
    for offset, gap in enumerate(gaps):
        pair = compared(offset, experiment=experiment)
        comparison = msgspec.structs.replace(pair.comparison, noise=Scores({"divergence_gap_nats": gap}))
        pairs.append(msgspec.structs.replace(pair, comparison=comparison))
    rows = rows_of(Batch(experiment=experiment, pairs=tuple(pairs), others=(), ranges=()))["noise_pairs"]
    store.insert("noise_pairs", rows.columns, rows.rows)


def test_the_95th_percentile_of_noise_pairs_counts_where_it_is_greater(migrated_store: Store) -> None:
    gaps = [float(gap) for gap in np.random.default_rng(5).exponential(0.2, 60)]
    _store_gaps(migrated_store, "noisy", gaps)
    truth = float(np.quantile(gaps, 0.95))
    assert truth > 0.25
    assert near_tie_nats(migrated_store, "noisy", 0.25) == pytest.approx(truth, rel=1e-6)
    assert near_tie_nats(migrated_store, "noisy", 9.0) == 9.0


def test_few_partings_say_nothing(migrated_store: Store) -> None:
    _store_gaps(migrated_store, "few", [5.0] * (LEAST_DIVERGENCES - 1))
    assert near_tie_nats(migrated_store, "few", 0.25) == 0.25
    assert near_tie_nats(migrated_store, "none at all", 0.25) == 0.25
