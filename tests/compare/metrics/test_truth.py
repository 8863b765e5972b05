"""The bounds against the whole truth: full-vocabulary distributions of the demo's real models.

The benchmark of the same name in small: what it calls broken, and its truth (scipy's sums over the whole
vocabulary), are used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Precision

from bench.full_vocabulary import VOCABULARY, Floats, normalised, post, reported, tokenized, unconstrained
from bench.truth import LISTS, TOLERANCE, Tally, Truth, bounds, cut, examine
from compare.demo.llama_server import LlamaServer
from compare.demo.models import prepare_model
from compare.metrics.blocks import Stretch
from compare.metrics.position_numbers import pair_numbers
from ingest.endpoint import Endpoint
from ingest.forced import ForcedScorer
from ingest.llama_cpp import LlamaCpp
from ingest.pair import Mode
from ingest.replay_body import replay_body
from ingest.settings import EndpointSettings

POSITIONS = {"MXFP4": 40, "Q4_0": 8, "Q5_0": 8}
"""Positions read of each candidate; the servers' time is what they cost."""

# Forced on both models, token by token: prose, JSON, a chat turn, Chinese, a loop, arithmetic.
TEXTS = (
    "The capital of France is Paris, and the river that runs through it is called the Seine.",
    '{"level": "ERROR", "code": 4012, "message": "connection reset by peer", "at": "0x7fff5fbff8c0"}',
    "<|im_start|>user\nSay hello<|im_end|>\n<|im_start|>assistant\nHello! How can I help you today?",
    "\u9519\u8bef\u7801 E1021\uff1a\u6570\u636e\u5e93\u8fde\u63a5\u8d85\u65f6",
    "no no no no no no no no no no no no no",
    "17 + 25 = 42, and 42 - 19 = 23.",
)

Pairs = dict[str, list[tuple[Floats, Floats]]]


@pytest.fixture(scope="module")
def small_servers() -> Iterator[dict[str, LlamaServer]]:
    with ExitStack() as stack:
        yield {
            precision.name: stack.enter_context(LlamaServer(prepare_model(precision), alias=precision.name))
            for precision in (Precision.Q4_0, Precision.Q5_0)
        }


@pytest.fixture(scope="module")
def read(
    reference_server: LlamaServer, candidate_server: LlamaServer, small_servers: dict[str, LlamaServer]
) -> Pairs:
    """Log-probabilities as the servers report them, reference and candidate, by candidate."""
    contexts: list[list[int]] = []
    for text in TEXTS:
        ids = tokenized(reference_server.url, text)
        contexts += [ids[:count] for count in range(1, len(ids) + 1)]
    chosen = contexts[:: len(contexts) // POSITIONS["MXFP4"]][: POSITIONS["MXFP4"]]
    servers = {"MXFP4": candidate_server, **small_servers}
    pairs: Pairs = {name: [] for name in POSITIONS}
    with ThreadPoolExecutor(2) as pool:
        for place, context in enumerate(chosen):
            due = [name for name, count in POSITIONS.items() if place % (len(chosen) // count) == 0]
            urls = [reference_server.url, *(servers[name].url for name in due)]
            reference, *candidates = pool.map(reported, urls, [context] * len(urls))
            for name, candidate in zip(due, candidates, strict=True):
                pairs[name].append((reference, candidate))
    return pairs


@pytest.fixture(scope="module")
def tallies(read: Pairs) -> dict[str, dict[int, Tally]]:
    random = np.random.default_rng(3)
    found = {name: {k: Tally() for k in LISTS} for name in read}
    for name, pairs in read.items():
        for place, (reference, candidate) in enumerate(pairs):
            examine(found[name], reference, candidate, place, random)
    return found


@pytest.mark.parametrize("k", LISTS)
@pytest.mark.parametrize("name", POSITIONS)
def test_every_bound_holds_at_every_position(tallies: dict[str, dict[int, Tally]], name: str, k: int) -> None:
    one = tallies[name][k]
    print(
        f"\n{name} k={k}: KL {one.kl / one.positions:.4f} nats, read {one.kl_read / one.kl:.1%}, lumped tail "
        f"{one.kl_lumped / one.kl:.1%}; entropy {one.entropy / one.positions:.4f}, JS "
        f"{one.js / one.positions:.4f}, interval {one.js_width / one.positions:.4f}"
    )
    assert one.positions == POSITIONS[name]
    # Half of the places have a second cut: a sampled token appended, or a mask.
    assert one.checks == POSITIONS[name] * 3 // 2
    assert dict(one.broken) == {}
    assert one.over_lumped >= -TOLERANCE


def test_longer_lists_read_more(tallies: dict[str, dict[int, Tally]]) -> None:
    for own in tallies.values():
        for values in (
            [own[k].kl_read for k in LISTS],
            [own[k].entropy_lower for k in LISTS],
            [own[k].js_lower for k in LISTS],
            [-own[k].entropy_width for k in LISTS],
            [-own[k].js_width for k in LISTS],
        ):
            assert values == sorted(values)


@pytest.mark.parametrize("k", LISTS)
def test_as_reported_the_bounds_hold_but_for_the_servers_rounding(read: Pairs, k: int) -> None:
    """The server's 32-bit sums leave its probabilities too large by a common factor.

    That hides mass of |sum - 1|, which can carry no more than log V and its own surprise.
    """
    for reference, candidate in (pair for pairs in read.values() for pair in pairs):
        hidden = np.abs(np.exp([reference, candidate]).sum(axis=1) - 1.0)
        assert hidden.max() < 5e-4
        allowed = (hidden * (np.log(VOCABULARY) - np.log(np.maximum(hidden, 1e-12)))).sum()
        truth = Truth.of(np.exp(normalised(reference)), np.exp(normalised(candidate)))
        passed = bounds(cut(reference, k), cut(candidate, k)).excess(truth)
        assert max(passed.values()) <= allowed


async def test_the_same_weights_have_no_kl_at_all_on_their_own_answer(reference_server: LlamaServer) -> None:
    # A prompt long enough that a prompt cache would change its last bits (80 tokens).
    item = unconstrained(2)[1]
    asked = replay_body(
        {**item.request, "max_tokens": 12},
        path=item.endpoint,
        mode=Mode.GREEDY,
        model="m",
        seed=7,
        top_logprobs=20,
        max_tokens_cap=2048,
    )
    settings = EndpointSettings(url=reference_server.url)
    async with Endpoint("e", settings) as endpoint:
        first = await endpoint.ask(asked.body, item.endpoint)
        again = await endpoint.ask(asked.body, item.endpoint)
        scorer = ForcedScorer(endpoint, max_tokens=512, max_prompt_tokens=8192)
        forced = await scorer.score(asked.body, item.endpoint, first, again)
    assert forced.unscored is None and len(forced.reference) == 12
    sides = forced.reference.columns, forced.candidate.columns
    numbers = pair_numbers([Stretch(sides, 0, 12, VOCABULARY)])
    assert numbers.kl.tolist() == [0.0] * 12
    assert numbers.change.tolist() == [0.0] * 12


async def test_where_the_model_would_write_part_of_a_character_there_is_a_list_too(
    reference_server: LlamaServer,
) -> None:
    url = reference_server.url
    ids = tokenized(url, TEXTS[3])
    contexts = [ids[:count] for count in range(1, 8)]
    body = {"prompt": contexts, "n_predict": 1, "n_probs": 5, "temperature": 0}
    plain = msgspec.json.decode(post(f"{url}/completion", body))
    assert any("completion_probabilities" not in answer for answer in plain)  # what this is about
    async with Endpoint("e", EndpointSettings(url=url)) as endpoint:
        seen = await LlamaCpp(endpoint).next_tokens(contexts, top=5, slot=0)
    assert seen is not None and len(seen) == len(contexts)
    for answer, token in zip(plain, seen, strict=True):
        assert token.ranked == 5
        if "completion_probabilities" in answer:
            listed = answer["completion_probabilities"][0]["top_logprobs"]
            expected = {entry["id"]: entry["logprob"] for entry in listed}
        else:
            whole = reported(url, contexts[plain.index(answer)])
            expected = {int(at): float(whole[at]) for at in np.argsort(-whole)[:5]}
        # Whether a prompt is read in one piece or from the cache moves the last bits.
        assert token.top[0].logprob == pytest.approx(max(expected.values()), abs=0.3)
        assert len(expected.keys() & {entry.id for entry in token.top}) >= 3
