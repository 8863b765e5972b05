"""The excess over the noise floor, against scipy's paired t-test and closed forms, on the real engine."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest, ttest_rel

from compare.cli.main import cli
from compare.floor import Moments, compared_metrics, excess_over, read_excess
from compare.outcomes import Batch
from compare.result import Scores
from compare.rows import rows_of
from compare.store import Store
from ingest.errors import SettingsError
from ingest.settings import StoreSettings
from tests.compare.batches import compared, mirrored

_SPECS = {spec.name: spec for spec in compared_metrics()}
_RNG = random.Random(7)
_PAIRS = [
    # candidate's cosine and KL, the reference's own, the candidate's own (on every other request)
    (
        _RNG.uniform(0.7, 0.9),
        _RNG.expovariate(5.0),
        _RNG.uniform(0.9, 1.0),
        _RNG.expovariate(50.0),
        _RNG.uniform(0.8, 1.0),
    )
    for _ in range(40)
]


@pytest.fixture(scope="module")
def filled(migrated_store: Store) -> Iterator[Store]:
    pairs = []
    for offset, (cosine, kl, again, kl_again, own) in enumerate(_PAIRS):
        body = {
            "messages": [{"role": "user", "content": "你好，请介绍一下北京的历史" if offset % 4 else "hi"}]
        }
        pair = compared(
            offset,
            request=mirrored(offset, body=body),
            scores=Scores({"cosine_similarity": cosine, "kl_prefix_mean_nats": kl, "exact_match": 0.0}),
        )
        noise = Scores({"cosine_similarity": again, "kl_prefix_mean_nats": kl_again, "exact_match": 1.0})
        candidate_noise = Scores({"cosine_similarity": own}) if offset % 2 else None
        comparison = msgspec.structs.replace(
            pair.comparison, noise=noise, candidate_noise=candidate_noise, tags=()
        )
        pairs.append(msgspec.structs.replace(pair, comparison=comparison))
    for table, rows in rows_of(Batch(experiment="e", pairs=tuple(pairs), others=(), ranges=())).items():
        migrated_store.insert(table, rows.columns, rows.rows)
    yield migrated_store


def test_the_excess_is_a_paired_t_interval(filled: Store) -> None:
    (found,) = read_excess(filled, "e", "q4", metrics=["kl_prefix_mean_nats"])
    truth = ttest_rel([pair[1] for pair in _PAIRS], [pair[3] for pair in _PAIRS])
    interval = truth.confidence_interval(0.95)
    assert found.requests == len(_PAIRS) and found.bounded_by == "reference"
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-5)
    assert found.excess == pytest.approx(sum(pair[1] - pair[3] for pair in _PAIRS) / len(_PAIRS), rel=1e-5)


def test_the_greater_floor_bounds_and_each_interval_takes_half_the_error(filled: Store) -> None:
    (found,) = read_excess(filled, "e", "q4", metrics=["cosine_similarity"])
    odd = _PAIRS[1::2]
    by_reference = ttest_rel([-pair[0] for pair in _PAIRS], [-pair[2] for pair in _PAIRS])
    by_candidate = ttest_rel([-pair[0] for pair in odd], [-pair[4] for pair in odd])
    bounds = [by_reference.confidence_interval(0.975), by_candidate.confidence_interval(0.975)]
    assert found.bounded_by == "candidate" and found.requests == len(odd)
    assert found.low == pytest.approx(min(bound.low for bound in bounds), rel=1e-4)
    assert found.high == pytest.approx(min(bound.high for bound in bounds), rel=1e-4)


def test_no_spread_is_not_certainty() -> None:
    """Ten requests that all differ: the rate of the others may be as Clopper and Pearson bound it."""
    found = excess_over(_SPECS["exact_match"], "", Moments(10, 0.0, -1.0, 0.0), None)
    bound = binomtest(0, 10).proportion_ci(0.95, method="exact").high
    assert found is not None
    # The answers cannot differ more than always.
    assert (found.low, found.high) == pytest.approx((1.0 - bound, 1.0))
    middle = excess_over(_SPECS["exact_match"], "", Moments(10, -0.5, -1.0, 0.0), None)
    assert middle is not None
    assert (middle.low, middle.high) == pytest.approx((0.5 - bound, 0.5 + bound))
    unbounded = excess_over(_SPECS["kl_prefix_mean_nats"], "", Moments(10, 0.5, 0.0, 0.0), None)
    assert unbounded is not None and (unbounded.low, unbounded.high) == (None, None)


def test_a_wide_interval_ends_where_the_metric_does() -> None:
    found = excess_over(_SPECS["exact_match"], "", Moments(2, -0.5, -1.0, 0.7), None)
    assert found is not None and (found.low, found.high) == (-1.0, 1.0)


def test_one_request_has_no_interval_and_none_has_no_excess() -> None:
    found = excess_over(_SPECS["cosine_similarity"], "", Moments(1, -0.8, -0.9, 0.0), None)
    assert found is not None
    assert found.excess == pytest.approx(0.1)
    assert found.low is None and found.high is None
    assert excess_over(_SPECS["cosine_similarity"], "", None, None) is None


def test_slices(filled: Store) -> None:
    found = read_excess(filled, "e", "q4", by="language", metrics=["kl_prefix_mean_nats"])
    by_language = {excess.slice: excess.requests for excess in found}
    assert by_language == {"": len(_PAIRS[::4]), "zh": len(_PAIRS) - len(_PAIRS[::4])}


def test_a_metric_of_one_side_has_no_floor(filled: Store) -> None:
    with pytest.raises(SettingsError, match="reference_total_ms has no noise floor"):
        read_excess(filled, "e", "q4", metrics=["reference_total_ms"])
    every = read_excess(filled, "e", "q4")
    assert {excess.metric for excess in every} <= set(_SPECS)
    assert {"cosine_similarity", "kl_prefix_mean_nats", "exact_match"} <= {excess.metric for excess in every}


def test_the_only_candidate_need_not_be_named(filled: Store, store_settings: StoreSettings) -> None:
    def floor(*options: str) -> list[list[str]]:
        folder = store_settings.url.removeprefix("chdb://")
        command = ["floor", "--dir", folder, "--experiment", "e", "--metric", "cosine_similarity", *options]
        result = CliRunner().invoke(cli, [*command, "--format", "csv"])
        assert result.exit_code == 0, result.output
        return [line.split(",") for line in result.stdout.splitlines()]

    assert floor() == floor("--candidate", "q4")
    row = dict(zip(*floor(), strict=True))
    assert (row["metric"], row["better"], row["requests"]) == (
        "cosine_similarity", "higher", str(len(_PAIRS[1::2]))
    )  # fmt: skip
    # The scores as they are, of the side that bounds: the candidate's own, asked twice at the odd requests.
    own, between = np.mean([pair[4] for pair in _PAIRS[1::2]]), np.mean([pair[0] for pair in _PAIRS[1::2]])
    assert float(row["floor"]) == pytest.approx(own)
    assert float(row["candidate"]) == pytest.approx(between)
    assert float(row["excess"]) == pytest.approx(own - between)
