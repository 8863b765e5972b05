"""All metrics of a batch of response pairs. Nothing here imports torch; the encoder does, when used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from compare.metrics.embedding import CosineResult, TextEncoder
from compare.metrics.grounding import score_grounding
from compare.metrics.latency import score_latency
from compare.metrics.sides import Sides, candidate_noise_of, noise_of, sides_of
from compare.metrics.spec import METRICS
from compare.metrics.structure import score_structure
from compare.metrics.text import answer_text, score_text
from compare.metrics.token_scores import TokenResult, score_tokens
from compare.metrics.tool_calls import score_tool_calls
from compare.position_scores import PositionScores
from compare.result import Divergence, Scores
from ingest.pair import ResponsePair
from ingest.settings import CompareSettings
from ingest.structure import ExpectedStructure, expects_json

_NAMES = tuple(spec.name for spec in METRICS)


@dataclass(slots=True)
class ScoredPair:
    """The scores of one pair and what is shown beside them.

    `noise` and `candidate_noise` are the same scores of an endpoint against its own second answer.
    `differing_paths` are the JSON paths on which the two answers differ, where JSON was asked for, and those
    of their tool calls.
    """

    scores: Scores
    divergence: Divergence | None = None
    positions: PositionScores = PositionScores()
    forced_positions: PositionScores = PositionScores()
    noise: Scores | None = None
    candidate_noise: Scores | None = None
    differing_paths: tuple[str, ...] = ()


@dataclass(slots=True)
class _Work:
    """One comparison: two sides, their texts, and the scores as they come in."""

    sides: Sides
    texts: tuple[str, str]
    scores: Scores = field(default_factory=Scores)
    differing_paths: tuple[str, ...] = ()


def score_pairs(
    pairs: Sequence[ResponsePair],
    encoder: TextEncoder | None,
    settings: CompareSettings,
    expected: Sequence[ExpectedStructure] | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> list[ScoredPair]:
    """Score pairs, in order. Every name of METRICS ends up either scored or unscored with a reason.

    The encoder sees all texts of the batch at once, on threads of its own; None leaves the cosines
    unscored. Everything else is done while it works, and `meanwhile` is called then too. CPU-bound: call
    it from a worker thread. `expected` is the structure that each pair's answers should have; None: what
    its request asks for. Raises SettingsError if the encoder's model cannot be loaded.
    """
    works: list[_Work] = []
    results: list[ScoredPair] = []
    owners: list[_Work] = []
    if expected is None:
        expected = [expects_json(pair.mirrored.body) for pair in pairs]
    for pair, structure in zip(pairs, expected, strict=True):
        owner = _work(sides_of(pair, structure))
        noise, candidate_noise = (
            None if sides is None else _work(sides)
            for sides in (noise_of(pair, structure), candidate_noise_of(pair, structure))
        )
        works += [work for work in (owner, noise, candidate_noise) if work is not None]
        owners.append(owner)
        results.append(
            ScoredPair(
                owner.scores,
                noise=None if noise is None else noise.scores,
                candidate_noise=None if candidate_noise is None else candidate_noise.scores,
            )
        )
    with ThreadPoolExecutor(1, "gnomon-encode") as thread:
        # It waits for the encoder's own threads nearly all the time.
        cosines = thread.submit(_cosines, works, encoder)
        for work in works:
            _score(work)
        tokens = _put_tokens(works, settings)
        for owner, result in zip(owners, results, strict=True):
            found = tokens[id(owner)]
            result.divergence, result.positions = found.divergence, found.positions
            result.forced_positions = found.forced_positions
            result.differing_paths = owner.differing_paths
        if meanwhile is not None:
            meanwhile()
        for work, cosine in zip(works, cosines.result(), strict=True):
            _put_cosine(cosine, work.scores)
    for work in works:
        _check_complete(work.scores)
    return results


def _work(sides: Sides) -> _Work:
    return _Work(sides, (answer_text(sides.reference), answer_text(sides.candidate)))


def _score(work: _Work) -> None:
    """Put every score that looks at one pair alone."""
    sides = work.sides
    score_text(sides, work.texts, work.scores)
    structure = score_structure(sides, work.scores)
    score_grounding(sides, structure.readings, work.scores)
    work.differing_paths = structure.differing + score_tool_calls(sides, work.scores)
    score_latency(sides, work.scores)


def _put_tokens(works: Sequence[_Work], settings: CompareSettings) -> dict[int, TokenResult]:
    """Put the scores of tokens, all positions of the batch at once; return what is shown, by work."""
    found = score_tokens(
        [work.sides for work in works], [work.scores for work in works], settings.near_tie_nats
    )
    return {id(work): result for work, result in zip(works, found, strict=True)}


def _cosines(works: Sequence[_Work], encoder: TextEncoder | None) -> list[CosineResult]:
    """Return the cosines of each work, in order."""
    answered = [work for work in works if work.sides.have_answers]
    if encoder is None:
        found = [CosineResult(None, None, "embeddings_off") for _ in answered]
    else:
        found = encoder.encode_pairs([work.texts for work in answered])
    of = {id(work): result for work, result in zip(answered, found, strict=True)}
    return [of.get(id(work), CosineResult(None, None, "no_answer")) for work in works]


def _put_cosine(result: CosineResult, scores: Scores) -> None:
    for name, value in (
        ("cosine_similarity", result.cosine),
        ("cosine_min_similarity", result.least_match),
    ):
        if value is None:
            scores.skip(name, result.unscored or "empty_text")
        else:
            scores.put(name, value)


def _check_complete(scores: Scores) -> None:
    """Raise RuntimeError where a metric is missing, put twice or unknown: that is a defect."""
    names = [*scores.values, *scores.unscored]
    if len(names) != len(_NAMES) or set(names) != set(_NAMES):
        wrong = sorted(set(names) ^ set(_NAMES)) or sorted(scores.values.keys() & scores.unscored.keys())
        raise RuntimeError(f"metrics not scored exactly once: {', '.join(wrong)}")
