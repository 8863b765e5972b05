"""From response pairs to comparisons: scores, findings and the verdict of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from compare.detect import detect_pair, tags_of
from compare.metrics.embedding import TextEncoder
from compare.result import Comparison, Finding
from compare.score import ScoredPair, score_pairs
from compare.verdict import judge
from ingest.drafts import SPECULATIVE
from ingest.errors import DeadLetterError, GnomonError, SettingsError
from ingest.pair import ResponsePair
from ingest.request import ExpectedStructure, expects_json
from ingest.settings import RouteSettings, Settings

SPECULATIVE_DECODING = SPECULATIVE
"""The tag of a pair of which an endpoint drafts tokens with a smaller model: log-probabilities of accepted
tokens may be the draft's, and batches of drafts round differently, so that a difference may not be the
candidate's own."""


def compare_pairs(
    pairs: Sequence[ResponsePair], encoder: TextEncoder | None, settings: Settings
) -> list[Comparison | DeadLetterError]:
    """Compare pairs, in order, one result for each.

    A pair whose comparison crashes becomes a DeadLetterError (`comparison_failed`) in its place; the
    rest of the batch is not lost. Raises SettingsError where the encoder or a route's schema cannot
    be loaded: that would fail for every pair. CPU-bound: call it from a worker thread.
    """
    expected = [expected_of(pair, settings.routes) for pair in pairs]
    found: list[tuple[Finding, ...] | DeadLetterError] = []

    def detect() -> None:
        if not found:
            found.extend([_findings(*both, settings) for both in zip(pairs, expected, strict=True)])

    # Detectors look at one pair at a time, and the encoder's threads need none of what they do.
    scored = _score(pairs, expected, encoder, settings, meanwhile=detect)
    # Where scoring crashed before it came to that.
    detect()
    return [
        score if isinstance(score, DeadLetterError) else _compare(pair, structure, score, findings, settings)
        for pair, structure, score, findings in zip(pairs, expected, scored, found, strict=True)
    ]


def expected_of(pair: ResponsePair, routes: dict[str, RouteSettings]) -> ExpectedStructure:
    """Return what structure the pair's answer should have: from the request, else from its route's schema.

    Raises SettingsError where the route's file holds no JSON object.
    """
    expected = expects_json(pair.mirrored.body)
    route = routes.get(pair.mirrored.route)
    if expected.schema is not None or route is None or route.schema is None:
        return expected
    return ExpectedStructure(
        "json_schema",
        _route_schema(route.schema),
        is_enforced=False,
        source=f"route {pair.mirrored.route}",
    )


def _score(
    pairs: Sequence[ResponsePair],
    expected: Sequence[ExpectedStructure],
    encoder: TextEncoder | None,
    settings: Settings,
    meanwhile: Callable[[], None] | None = None,
) -> list[ScoredPair | DeadLetterError]:
    """Score the batch as one, and pair by pair only if something in it crashes."""
    try:
        return list(score_pairs(pairs, encoder, settings.compare, expected, meanwhile))
    except GnomonError:
        raise
    except Exception as error:
        if len(pairs) == 1:
            return [_failed(pairs[0], error)]
    return [
        result
        for pair, structure in zip(pairs, expected, strict=True)
        for result in _score([pair], [structure], encoder, settings)
    ]


def _findings(
    pair: ResponsePair, expected: ExpectedStructure, settings: Settings
) -> tuple[Finding, ...] | DeadLetterError:
    try:
        return detect_pair(pair, settings.detectors, expected)
    except Exception as error:
        return _failed(pair, error)


def _compare(
    pair: ResponsePair,
    expected: ExpectedStructure,
    scored: ScoredPair,
    findings: tuple[Finding, ...] | DeadLetterError,
    settings: Settings,
) -> Comparison | DeadLetterError:
    if isinstance(findings, DeadLetterError):
        return findings
    try:
        tags = tags_of(pair, settings.detectors) + _endpoint_tags(pair, settings)
        return Comparison(
            scores=scored.scores,
            findings=findings,
            verdict=judge(pair, scored.scores, findings, settings.compare, tags),
            divergence=scored.divergence,
            positions=scored.positions,
            forced_positions=scored.forced_positions,
            noise=scored.noise,
            candidate_noise=scored.candidate_noise,
            tags=tags,
            differing_paths=scored.differing_paths,
            is_structure_enforced=None if expected.kind is None else expected.is_enforced,
        )
    except Exception as error:
        return _failed(pair, error)


def _endpoint_tags(pair: ResponsePair, settings: Settings) -> tuple[str, ...]:
    """Return what the settings know of the pair's endpoints, or an answer says of its own."""
    endpoints = [settings.endpoints.get(name) for name in (pair.reference_name, pair.candidate_name)]
    is_speculative = any(one is not None and one.has_speculative_decoding for one in endpoints) or any(
        SPECULATIVE in seen.notes for seen in (pair.reference, pair.candidate)
    )
    return (SPECULATIVE_DECODING,) if is_speculative else ()


def _failed(pair: ResponsePair, error: Exception) -> DeadLetterError:
    """Wrap a defect of ours. It carries the original as its cause, for the log."""
    position = pair.mirrored.position
    failure = DeadLetterError(
        "comparison_failed",
        f"request {pair.mirrored.request_id} ({position.topic}/{position.partition}/{position.offset}) "
        f"could not be compared: {type(error).__name__}: {error}",
    )
    failure.__cause__ = error
    return failure


@lru_cache(maxsize=256)
def _route_schema(path: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        raise SettingsError(f"routes: the schema {path} cannot be used: {error}") from error
