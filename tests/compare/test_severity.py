"""Severity: its range, its order, and the documented formula reckoned by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.result import Family, Scores, Verdict, VerdictKind
from compare.severity import FAMILY_SHARES, VERDICT_SHARES, severity

_SHARE = st.floats(0.0, 1.0)
_COUNT = st.integers(0, 50).map(float)
_MORE_IS_WORSE: dict[str, st.SearchStrategy[float]] = {
    "kl_forced_mean_nats": st.floats(0.0, 50.0),
    "kl_prefix_mean_nats": st.floats(0.0, 50.0),
    "numbers_differ": _COUNT,
    "keys_differ": _COUNT,
    "refusal_flip": st.sampled_from([0.0, 1.0]),
    "latency_ratio": st.floats(0.0, 1e6),
}
_MORE_IS_BETTER: dict[str, st.SearchStrategy[float]] = {
    "edit_similarity": _SHARE,
    "cosine_similarity": st.floats(-1.0, 1.0),
    "field_agreement": _SHARE,
    "tool_name_agreement": _SHARE,
    "tool_arguments_agreement": _SHARE,
    "candidate_is_schema_valid": st.sampled_from([0.0, 1.0]),
    "candidate_is_valid_json": st.sampled_from([0.0, 1.0]),
}
_OTHERS = {"reference_is_schema_valid": st.just(1.0), "reference_is_valid_json": st.just(1.0)}
_VALUES = st.fixed_dictionaries({}, optional={**_MORE_IS_WORSE, **_MORE_IS_BETTER, **_OTHERS})
_FAMILIES = st.sets(st.sampled_from(sorted(FAMILY_SHARES)), max_size=4)
_KINDS = st.sampled_from(list(VerdictKind))


def of(values: dict[str, float], kind: VerdictKind = VerdictKind.MATCH, *families: Family) -> float:
    return severity(Scores(values), Verdict(kind, (), candidate_only=families))


def test_nothing_against_the_candidate_is_zero() -> None:
    assert of({}) == 0.0
    alike = {"edit_similarity": 1.0, "cosine_similarity": 1.0, "kl_forced_mean_nats": 0.0}
    assert of({**alike, "latency_ratio": 2.0, "numbers_differ": 0.0, "field_agreement": 1.0}) == 0.0
    assert of({}, VerdictKind.REFERENCE_WORSE) == 0.0


@pytest.mark.parametrize(
    ("values", "kind", "families", "expected"),
    [
        ({"kl_forced_mean_nats": 0.1}, VerdictKind.MATCH, (), 0.3),
        # The forced KL speaks where there is one.
        ({"kl_forced_mean_nats": 0.1, "kl_prefix_mean_nats": 9.0}, VerdictKind.MATCH, (), 0.3),
        ({"kl_prefix_mean_nats": 0.3}, VerdictKind.EQUIVALENT, (), 0.45),
        ({}, VerdictKind.CANDIDATE_WORSE, (Family.REPETITION, Family.TRUNCATION), 1 - 0.8 * 0.3 * 0.6),
        ({"edit_similarity": 0.5, "cosine_similarity": 0.9}, VerdictKind.DIVERGED, (), 1 - 0.9 * 0.9 * 0.97),
        ({"reference_is_valid_json": 1.0, "candidate_is_valid_json": 0.0}, VerdictKind.MATCH, (), 0.6),
        ({"reference_is_valid_json": 0.0, "candidate_is_valid_json": 0.0}, VerdictKind.MATCH, (), 0.0),
        ({"numbers_differ": 1.0, "latency_ratio": 4.0}, VerdictKind.MATCH, (), 1 - 0.9 * 0.9),
        ({}, VerdictKind.CANDIDATE_ERROR, (), 0.9),
    ],
)
def test_the_documented_formula_by_hand(
    values: dict[str, float], kind: VerdictKind, families: tuple[Family, ...], expected: float
) -> None:
    assert of(values, kind, *families) == pytest.approx(expected)


def test_an_infinite_divergence_is_the_largest() -> None:
    infinite = Scores({"kl_prefix_mean_nats": 0.0}, {"kl_forced_mean_nats": "infinite"})
    not_asked = Scores({"kl_prefix_mean_nats": 0.0}, {"kl_forced_mean_nats": "not_asked"})
    verdict = Verdict(VerdictKind.MATCH, ())
    assert severity(infinite, verdict) == pytest.approx(0.6)
    assert severity(not_asked, verdict) == 0.0


@given(_VALUES, _KINDS, _FAMILIES)
def test_it_lies_between_0_and_1(values: dict[str, float], kind: VerdictKind, families: set[Family]) -> None:
    assert 0.0 <= of(values, kind, *families) <= 1.0


@given(st.data(), _VALUES, _KINDS, _FAMILIES)
def test_it_never_falls_when_one_score_gets_worse(
    data: st.DataObject, values: dict[str, float], kind: VerdictKind, families: set[Family]
) -> None:
    name = data.draw(st.sampled_from([*_MORE_IS_WORSE, *_MORE_IS_BETTER]))
    is_growing = name in _MORE_IS_WORSE
    strategy: Any = (_MORE_IS_WORSE if is_growing else _MORE_IS_BETTER)[name]
    low, high = sorted((data.draw(strategy), data.draw(strategy)))
    better, worse = (low, high) if is_growing else (high, low)
    mild = of({**values, name: better}, kind, *families)
    assert of({**values, name: worse}, kind, *families) >= mild - 1e-12


@given(_VALUES, _KINDS, _FAMILIES, st.sampled_from(sorted(FAMILY_SHARES)))
def test_it_never_falls_with_one_family_more(
    values: dict[str, float], kind: VerdictKind, families: set[Family], more: Family
) -> None:
    assert of(values, kind, *families, *({more} - families)) >= of(values, kind, *families) - 1e-12


@given(_VALUES, _FAMILIES)
def test_verdicts_rise_from_alike_to_error(values: dict[str, float], families: set[Family]) -> None:
    order = ("match", "equivalent", "diverged", "candidate_worse", "candidate_error")
    found = [of(values, VerdictKind(kind), *families) for kind in order]
    assert found == sorted(found)


def test_every_fault_family_has_a_share_and_no_other_family() -> None:
    faults = {family for family in Family if family not in (Family.REQUEST, Family.LOGPROBS_FORMAT)}
    assert set(FAMILY_SHARES) == faults
    assert all(0.0 < share < 1.0 for share in [*FAMILY_SHARES.values(), *VERDICT_SHARES.values()])
