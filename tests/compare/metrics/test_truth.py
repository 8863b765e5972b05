"""The bounds against the whole truth: full-vocabulary distributions of the demo's two real models."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon

from compare.demo.llama_server import LlamaServer
from compare.metrics.distribution import Positions
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.metrics.js import js_bounds
from compare.metrics.kl import kl_lower
from compare.metrics.overlap import overlap
from ingest.alternative import Alternative
from tests.compare.metrics.reports import Report, positions

VOCABULARY = 49_152
POSITIONS = 40
LISTS = (1, 5, 10, 20)

# Forced on both models, token by token: prose, JSON, a chat turn, Chinese, a loop, arithmetic.
TEXTS = (
    "The capital of France is Paris, and the river that runs through it is called the Seine.",
    '{"level": "ERROR", "code": 4012, "message": "connection reset by peer", "at": "0x7fff5fbff8c0"}',
    "<|im_start|>user\nSay hello<|im_end|>\n<|im_start|>assistant\nHello! How can I help you today?",
    "\u9519\u8bef\u7801 E1021\uff1a\u6570\u636e\u5e93\u8fde\u63a5\u8d85\u65f6",
    "no no no no no no no no no no no no no",
    "17 + 25 = 42, and 42 - 19 = 23.",
)

Floats = NDArray[np.float64]


class _Entry(msgspec.Struct):
    id: int
    logprob: float


class _Position(msgspec.Struct):
    top_logprobs: list[_Entry]


class _Completion(msgspec.Struct):
    completion_probabilities: list[_Position] = []


class _Tokens(msgspec.Struct):
    tokens: list[int]


def post(server: LlamaServer, path: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(
        f"{server.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        data: bytes = answer.read()
    return data


def whole(server: LlamaServer, prompt: list[int]) -> Floats | None:
    """Return log-probabilities (V,), None where the model would end: the server lists nothing then."""
    body = {"prompt": prompt, "n_predict": 1, "n_probs": VOCABULARY, "temperature": 0, "cache_prompt": True}
    answer = msgspec.json.decode(post(server, "/completion", body), type=_Completion)
    if not answer.completion_probabilities:
        return None
    logprob = np.full(VOCABULARY, np.nan)
    for entry in answer.completion_probabilities[0].top_logprobs:
        logprob[entry.id] = entry.logprob
    assert np.isfinite(logprob).all()
    return logprob


@pytest.fixture(scope="module")
def reported(reference_server: LlamaServer, candidate_server: LlamaServer) -> Floats:
    """Log-probabilities as the servers report them: (positions, 2, V), reference first."""
    prompts: list[list[int]] = []
    for text in TEXTS:
        body = {"content": text, "parse_special": True}
        ids = msgspec.json.decode(post(reference_server, "/tokenize", body), type=_Tokens).tokens
        prompts += [ids[:count] for count in range(1, len(ids) + 1)]
    # Every third prefix, and then some for those at which a model would end.
    prompts = prompts[::3][: POSITIONS + 8]
    rows: list[Floats] = []
    with ThreadPoolExecutor(2) as pool:
        for prompt in prompts:
            sides = list(pool.map(lambda s, p=prompt: whole(s, p), (reference_server, candidate_server)))
            if len(rows) < POSITIONS and sides[0] is not None and sides[1] is not None:
                rows.append(np.stack([sides[0], sides[1]]))
            if len(rows) == POSITIONS:
                break
    return np.stack(rows)


def reports(logprob: Floats, k: int) -> Positions:
    """The k likeliest of each row of (n, V)."""
    made = []
    for row in logprob:
        best = np.argsort(-row, kind="stable")[:k]
        made.append(Report(tuple(Alternative("", float(row[i]), None, int(i)) for i in best), k))
    return positions(made)


def lumped(p: Floats, q: Floats, k: int) -> float:
    """The bound that puts all outside both lists into one bucket."""
    both = np.intersect1d(np.argsort(-p)[:k], np.argsort(-q)[:k])
    tail_p, tail_q = 1.0 - p[both].sum(), 1.0 - q[both].sum()
    exact = float((p[both] * np.log(p[both] / q[both])).sum())
    return max(exact + float(tail_p * np.log(tail_p / tail_q)), 0.0)


@pytest.fixture(scope="module")
def true(reported: Floats) -> Floats:
    """The reported distributions brought to a sum of 1, in float64, as logarithms."""
    normalised: Floats = reported - np.log(np.exp(reported).sum(axis=2, keepdims=True))
    return normalised


def truth_of(true: Floats) -> tuple[Floats, Floats]:
    """Entropies (n, 2) and KL (n,), summed over the whole vocabulary."""
    p = np.exp(true)
    return -(p * true).sum(axis=2), (p[:, 0] * (true[:, 0] - true[:, 1])).sum(axis=1)


@pytest.mark.parametrize("k", LISTS)
def test_every_bound_holds_at_every_position(true: Floats, k: int) -> None:
    entropies, kl = truth_of(true)
    sides = [reports(true[:, side], k) for side in (0, 1)]
    found = kl_lower(sides[0], sides[1], overlap(sides[0], sides[1]))
    coarse = np.array([lumped(np.exp(row[0]), np.exp(row[1]), k) for row in true])
    lower = np.stack([entropy_lower(side) for side in sides], axis=1)
    upper = np.stack([entropy_upper(side, VOCABULARY) for side in sides], axis=1)
    print(
        f"\nk={k}: KL {kl.mean():.4f} nats, read {found.nats.sum() / kl.sum():.1%}, "
        f"lumped tail {coarse.sum() / kl.sum():.1%}; entropy {entropies.mean():.4f} nats, "
        f"lower reads {lower.sum() / entropies.sum():.1%}, upper {upper.sum() / entropies.sum():.1%}"
    )
    assert len(kl) == POSITIONS
    assert set(found.reasons) == {None}
    assert np.count_nonzero(found.nats > kl + 1e-9) == 0
    assert np.count_nonzero(found.nats < coarse - 1e-9) == 0
    assert np.count_nonzero(lower > entropies + 1e-9) == 0
    assert np.count_nonzero(upper < entropies - 1e-9) == 0


@pytest.mark.parametrize("k", LISTS)
def test_jensen_shannon_lies_between_its_bounds_at_every_position(true: Floats, k: int) -> None:
    p, q = np.exp(true[:, 0]), np.exp(true[:, 1])
    js = np.array([jensenshannon(one, other) ** 2 for one, other in zip(p, q, strict=True)])
    sides = [reports(true[:, side], k) for side in (0, 1)]
    found = js_bounds(sides[0], sides[1], overlap(sides[0], sides[1]))
    print(f"\nk={k}: JS {js.mean():.4f} nats, from {found.lower.mean():.4f} to {found.upper.mean():.4f}")
    assert np.count_nonzero(found.lower > js + 1e-9) == 0
    assert np.count_nonzero(found.upper < js - 1e-9) == 0


@pytest.mark.parametrize("k", LISTS)
def test_as_reported_the_bounds_hold_but_for_the_servers_rounding(
    reported: Floats, true: Floats, k: int
) -> None:
    """The server's 32-bit sums leave its probabilities too large by a common factor.

    That hides mass of |sum - 1|, which can carry no more than log V and its own surprise.
    """
    entropies, kl = truth_of(true)
    hidden = np.abs(np.exp(reported).sum(axis=2) - 1.0)
    assert hidden.max() < 5e-4
    allowed = hidden * (np.log(VOCABULARY) - np.log(np.maximum(hidden, 1e-12)))
    sides = [reports(reported[:, side], k) for side in (0, 1)]
    found = kl_lower(sides[0], sides[1], overlap(sides[0], sides[1])).nats
    for side in (0, 1):
        lower, upper = entropy_lower(sides[side]), entropy_upper(sides[side], VOCABULARY)
        assert np.count_nonzero(lower > entropies[:, side] + allowed[:, side]) == 0
        assert np.count_nonzero(upper < entropies[:, side] - allowed[:, side]) == 0
    assert np.count_nonzero(found > kl + allowed.sum(axis=1)) == 0
