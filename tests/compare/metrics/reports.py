"""Reports and pairs made by hand for the tests of the metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.metrics.distribution import Positions, normalise
from compare.metrics.sides import Sides
from compare.metrics.token_scores import TokenResult, score_tokens
from compare.result import Scores
from ingest.alternative import Alternative
from ingest.observation import Observation, Timings
from ingest.pair import Forced, Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, SourcePosition
from ingest.tokens import Token, Tokens

Floats = NDArray[np.float64]


class Report(NamedTuple):
    """One position's list: the first `ranked` entries are ranked."""

    entries: Sequence[Alternative]
    ranked: int


def positions(reports: Sequence[Report]) -> Positions:
    """Bring lists into normal form; the chosen token adds nothing."""
    return normalise(
        Tokens(Token("", None, None, None, tuple(entries), ranked) for entries, ranked in reports).columns
    )


def log(p: float) -> float:
    return float(np.log(p)) if p > 0.0 else float("-inf")


def entry(token_id: int, p: float) -> Alternative:
    return Alternative(f"t{token_id}", log(p), None, token_id)


def report(*entries: tuple[int, float], appended: Iterable[tuple[int, float]] = ()) -> Report:
    """Make a report from (id, probability): the ranked ones, then those appended."""
    return Report(tuple(entry(*item) for item in (*entries, *appended)), len(entries))


def top_k(p: Floats, k: int, extra: Iterable[int] = ()) -> Report:
    """Report the k likeliest tokens of a whole distribution, and append `extra` ones."""
    ranked = [int(i) for i in np.argsort(-p, kind="stable")[:k]]
    return report(
        *((i, float(p[i])) for i in ranked), appended=[(i, float(p[i])) for i in extra if i not in ranked]
    )


def token(token_id: int, *others: tuple[int, float], p: float = 0.9) -> Token:
    """Make a token with a list: itself with probability p, then the others."""
    top = (entry(token_id, p), *(entry(*other) for other in others))
    return Token(f"t{token_id}", log(p), None, token_id, top, len(top))


def answer(*tokens: Token, text: str = "yes", **more: Any) -> Observation:
    return Observation(text=text, tokens=Tokens(tokens), finish_reason="stop", **more)


def sides(reference: Observation, candidate: Observation, **more: Any) -> Sides:
    settings: dict[str, Any] = {
        "reference_body": {},
        "candidate_body": {},
        "request": {},
        "mode": Mode.GREEDY,
        "vocabulary_size": None,
    }
    return Sides(reference=reference, candidate=candidate, **(settings | more))


def pair(reference: Observation, candidate: Observation, **more: Any) -> ResponsePair:
    body: dict[str, Any] = more.pop("body", {"messages": [{"role": "user", "content": "hello"}]})
    now = datetime(2026, 1, 1, tzinfo=UTC)
    settings: dict[str, Any] = {
        "mirrored": MirroredRequest(SourcePosition("t", "id", 0, 0), "r-1", body, "0" * 32, now, now),
        "experiment": "e",
        "reference_name": "a",
        "candidate_name": "b",
        "reference_body": body,
        "candidate_body": body,
        "plan": ReplayPlan(more.pop("mode", Mode.GREEDY), True, True, True),
        "vocabulary_size": 1000,
    }
    return ResponsePair(reference=reference, candidate=candidate, **(settings | more))


def scored(reference: Observation, candidate: Observation, **more: Any) -> tuple[Scores, TokenResult]:
    """Return the token scores of two answers and what is shown beside them."""
    scores = Scores()
    (result,) = score_tokens([sides(reference, candidate, **more)], [scores], 0.25)
    return scores, result


def forced(*pairs: tuple[Token, Token]) -> Forced:
    """Make forced positions from each side's token."""
    return Forced(Tokens(own for own, _ in pairs), Tokens(other for _, other in pairs))


TIMED = Timings(total_ms=200.0, first_token_ms=50.0)
NO_FORCED = Forced(unscored="unsupported_engine")
