from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compare import comparison
from compare.comparison import compare_pairs, expected_of
from compare.result import Comparison, Family, VerdictKind
from compare.score import ScoredPair, score_pairs
from ingest.answer import read_answer
from ingest.errors import DeadLetterError, SettingsError
from ingest.pair import ResponsePair
from ingest.settings import (
    CompareSettings,
    EndpointSettings,
    ExperimentSettings,
    RouteSettings,
    Settings,
)
from tests.compare.test_verdict import _A, _pair, _said

_SETTINGS = Settings(
    experiment=ExperimentSettings(
        name="e", reference="full", candidates=["q4"], models={"*": {"full": "m", "q4": "m"}}
    ),
    endpoints={
        "full": EndpointSettings(url="http://127.0.0.1:1"),
        "q4": EndpointSettings(url="http://127.0.0.1:2"),
    },
    compare=CompareSettings(embedding_model=""),
)


def test_a_batch_comes_back_in_order() -> None:
    other, alike = _said("Never."), _said("It is warm in May!")
    loop = _said("I will go there. " * 20, "length")
    results = compare_pairs(
        [_pair(_A, _A), _pair(_A, loop), _pair(_A, other), _pair(_A, alike)], None, _SETTINGS
    )
    kinds = [result.verdict.kind for result in results if isinstance(result, Comparison)]
    # Without an encoder, texts that are near by edit distance alone cannot be called equivalent.
    assert kinds == [
        VerdictKind.MATCH,
        VerdictKind.CANDIDATE_WORSE,
        VerdictKind.DIVERGED,
        VerdictKind.UNSCORED,
    ]
    assert isinstance(results[1], Comparison)
    assert Family.REPETITION in results[1].verdict.candidate_only
    assert compare_pairs([], None, _SETTINGS) == []


def test_a_crash_on_one_pair_loses_only_that_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(
        pairs: Sequence[ResponsePair], encoder: None, settings: CompareSettings, *rest: Any
    ) -> list[ScoredPair]:
        if any(pair.mirrored.request_id == "bad" for pair in pairs):
            raise ZeroDivisionError("division by zero")
        return score_pairs(pairs, encoder, settings, *rest)

    monkeypatch.setattr(comparison, "score_pairs", crash)
    good = _pair(_A, _A)
    bad = msgspec.structs.replace(good, mirrored=msgspec.structs.replace(good.mirrored, request_id="bad"))
    results = compare_pairs([good, bad, good], None, _SETTINGS)
    assert isinstance(results[0], Comparison)
    assert isinstance(results[2], Comparison)
    failed = results[1]
    assert isinstance(failed, DeadLetterError)
    assert failed.reason == "comparison_failed"
    assert "request bad (t/0/1)" in str(failed)
    assert "ZeroDivisionError" in str(failed)


def test_a_crash_of_a_detector_loses_only_that_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(comparison, "judge", crash)
    (failed,) = compare_pairs([_pair(_A, _A)], None, _SETTINGS)
    assert isinstance(failed, DeadLetterError)
    assert failed.reason == "comparison_failed"


def test_settings_that_fail_every_pair_stop_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SettingsError("compare.embedding_model: no such model")

    monkeypatch.setattr(comparison, "score_pairs", refuse)
    with pytest.raises(SettingsError, match="embedding_model"):
        compare_pairs([_pair(_A, _A)], None, _SETTINGS)


def test_a_routes_schema_holds_where_the_request_names_none(tmp_path: Path) -> None:
    file = tmp_path / "invoice.json"
    file.write_text('{"type": "object", "required": ["total"]}')
    pair = _pair(_A, _A)
    routed = msgspec.structs.replace(pair, mirrored=msgspec.structs.replace(pair.mirrored, route="invoice"))
    routes = {"invoice": RouteSettings(schema=str(file))}
    assert expected_of(routed, routes).schema == {"type": "object", "required": ["total"]}
    assert not expected_of(routed, routes).is_enforced
    assert expected_of(pair, routes).kind is None
    with pytest.raises(SettingsError, match=r"missing\.json"):
        expected_of(routed, {"invoice": RouteSettings(schema=str(tmp_path / "missing.json"))})


@pytest.mark.parametrize(("name", "expected"), [("full", True), ("q4", True), ("other", False)])
def test_pairs_of_an_endpoint_with_speculative_decoding_are_tagged(name: str, expected: bool) -> None:
    endpoint = EndpointSettings(url="http://127.0.0.1:3", has_speculative_decoding=True)
    settings = msgspec.structs.replace(_SETTINGS, endpoints={**_SETTINGS.endpoints, name: endpoint})
    pair = msgspec.structs.replace(_pair(_A, _A), reference_name="full", candidate_name="q4")
    (result,) = compare_pairs([pair], None, settings)
    assert isinstance(result, Comparison)
    assert ("speculative_decoding" in result.tags) is expected


@pytest.mark.parametrize("side", ["reference", "candidate"])
def test_pairs_of_which_an_answer_says_that_it_was_drafted_are_tagged(side: str) -> None:
    body = b'{"choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}], '
    body += b'"timings": {"predicted_n": 9, "draft_n": 12, "draft_n_accepted": 7}}'
    drafted = read_answer(body, content_type="application/json")
    pair = msgspec.structs.replace(_pair(_A, _A), **{side: drafted})
    (result,) = compare_pairs([pair], None, _SETTINGS)
    assert isinstance(result, Comparison)
    assert result.tags == ("speculative_decoding",)
    assert [finding.code for finding in result.findings if finding.is_fault] == []
