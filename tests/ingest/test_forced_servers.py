"""One contract for what can force tokens: on the real llama.cpp, and on vLLM's wire in front of it."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from compare.demo.llama_server import LlamaServer
from compare.score import score_pairs
from ingest.endpoint import Endpoint
from ingest.forced import find_server
from ingest.forced_server import ForcedPrompt, ForcedServer
from ingest.llama_cpp import LlamaCpp
from ingest.observation import Observation
from ingest.pair import ResponsePair
from ingest.replay import Replayer
from ingest.settings import CompareSettings, EndpointSettings, ExperimentSettings
from ingest.vllm import Vllm
from tests.fixtures.fake_vllm import FakeVllm
from tests.ingest.fault_server import FaultServer, says
from tests.ingest.mirrored import mirrored

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Name three colours."}],
    "temperature": 0,
    "max_tokens": 6,
    "logprobs": True,
    "top_logprobs": 5,
}


@pytest.fixture
async def vllm(reference_server: LlamaServer) -> AsyncIterator[FakeVllm]:
    async with FakeVllm(reference_server.url).running() as server:
        yield server


@pytest.fixture
async def generated(reference_server: LlamaServer) -> Observation:
    """What the model itself generates, with the distributions that it had: the truth for all of them."""
    async with Endpoint("truth", EndpointSettings(url=reference_server.url)) as endpoint:
        return await endpoint.ask(BODY, PATH)


@pytest.fixture(params=["llama.cpp", "vllm"])
async def server(
    request: pytest.FixtureRequest, reference_server: LlamaServer, vllm: FakeVllm
) -> AsyncIterator[ForcedServer]:
    url = reference_server.url if request.param == "llama.cpp" else vllm.url
    async with Endpoint("e", EndpointSettings(url=url, supports_forced=True)) as endpoint:
        found = await find_server(endpoint)
        assert isinstance(found, LlamaCpp if request.param == "llama.cpp" else Vllm)
        yield found


async def test_the_prompt_is_the_one_that_the_chat_route_reads(
    server: ForcedServer, generated: Observation
) -> None:
    prompt = await server.forced_prompt(BODY, PATH)
    assert prompt is not None and prompt.model == "m"
    assert len(prompt.ids) == generated.prompt_tokens
    assert prompt.context_tokens > len(prompt.ids)
    assert await server.forced_prompt({"prompt": ["a", "b"]}, "/v1/completions") is None


async def test_text_has_ids_without_a_start_token(server: ForcedServer, generated: Observation) -> None:
    text = "".join(token.text for token in generated.tokens)
    assert await server.text_ids(text, model="m") == [token.id for token in generated.tokens]


async def test_forced_tokens_have_the_distributions_of_generating_them(
    server: ForcedServer, generated: Observation
) -> None:
    prompt = await server.forced_prompt(BODY, PATH)
    assert prompt is not None
    ids = [token.id for token in generated.tokens if token.id is not None]
    seen = await server.forced_tokens(prompt, ids, [0, 2, 5], top=5)
    assert seen is not None and len(seen) == 3
    for token, place in zip(seen, (0, 2, 5), strict=True):
        truth = {item.id: item.logprob for item in generated.tokens[place].top}
        assert token.ranked == 5
        assert {item.id: item.logprob for item in token.top[:5]} == pytest.approx(truth, abs=1e-3)


async def test_an_unlikely_token_is_known_mass_at_most_and_never_ranked(server: ForcedServer) -> None:
    prompt = await server.forced_prompt(BODY, PATH)
    unlikely = await server.text_ids(" xylophone", model="m")
    assert prompt is not None and unlikely is not None
    seen = await server.forced_tokens(prompt, unlikely[:1], [0], top=5)
    assert seen is not None
    (token,) = seen
    assert token.ranked == 5
    assert unlikely[0] not in {item.id for item in token.top[:5]}
    assert all(item.logprob <= token.top[4].logprob for item in token.top[5:])
    assert {item.id for item in token.top[5:]} <= {unlikely[0]}


def experiment(**fields: Any) -> ExperimentSettings:
    settings: dict[str, Any] = {"noise_fraction": 0.0, "forced_fraction": 1.0, **fields}
    return ExperimentSettings("e", "ref", ["cand"], {"*": {"ref": "m", "cand": "m"}}, **settings)


async def replay(reference: str, candidate: str, supports: bool | None, **fields: Any) -> ResponsePair:
    replayer = Replayer(
        experiment(**fields),
        {
            "ref": EndpointSettings(url=reference),
            "cand": EndpointSettings(url=candidate, supports_forced=supports),
        },
    )
    await replayer.start()
    try:
        (pair,) = await replayer.replay(mirrored({**BODY, "max_tokens": 8}))
    finally:
        await replayer.close()
    return pair


@pytest.mark.parametrize("is_reference_vllm", [False, True])
async def test_a_model_forced_on_itself_through_vllm_has_no_divergence(
    is_reference_vllm: bool, reference_server: LlamaServer, vllm: FakeVllm
) -> None:
    """A vLLM reference lists its alternatives without ids: they are told by bytes.

    Pieces of characters have none that can be told, so positions that list one are unscored.
    """
    pair = await replay(vllm.url if is_reference_vllm else reference_server.url, vllm.url, True)
    assert pair.forced is not None and pair.forced.unscored is None
    assert len(pair.forced.reference) == len(pair.reference.tokens) == 8
    for own, other in zip(pair.forced.reference, pair.forced.candidate, strict=True):
        assert other.logprob == pytest.approx(own.logprob, abs=1e-3)
        assert (own.top[0].id is None) is is_reference_vllm
    (scored,) = score_pairs([pair], None, CompareSettings(embedding_model=""))
    values = scored.scores.values
    assert values["kl_forced_max_nats"] == pytest.approx(0.0, abs=1e-4)
    assert values["top1_agreement_forced_ratio"] == 1.0
    assert values["perplexity_forced_ratio"] == pytest.approx(1.0, abs=1e-3)
    asked = [body.get("return_token_ids") for path, body in vllm.calls if path == PATH]
    assert asked.count(True) == int(is_reference_vllm)


async def test_vllm_is_forced_only_where_the_settings_say_so(vllm: FakeVllm) -> None:
    for supports in (None, False):
        pair = await replay(vllm.url, vllm.url, supports)
        assert pair.forced is not None and pair.forced.unscored == "unsupported_engine"
    assert not [path for path, _ in vllm.calls if path in ("/tokenize", "/v1/completions")]


async def test_what_is_unscored_on_vllm_has_the_same_reasons(vllm: FakeVllm) -> None:
    pair = await replay(vllm.url, vllm.url, True, forced_max_prompt_tokens=5)
    assert pair.forced is not None and pair.forced.unscored == "prompt_too_long"


def completion(*positions: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": "x", "prompt_logprobs": list(positions)}]}


def listed(**entries: float) -> dict[str, Any]:
    return {
        key[1:]: {"logprob": value, "rank": rank, "decoded_token": key}
        for rank, (key, value) in enumerate(entries.items(), 1)
    }


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (
            400,
            {"error": {"message": "Requested prompt logprobs of 20, which is greater than max allowed: 5"}},
        ),
        (200, {}),
        (200, {"choices": []}),
        (200, completion()),
        (200, completion(None, listed(t7=-0.1))),  # one position short
        (200, completion(None, listed(t7=-0.1), listed(t8=-0.1), listed(t9=-0.1))),  # one too many
        (200, completion(None, listed(t7=-0.1), listed(t8=-0.1))),  # not the forced token
        (200, completion(None, listed(t7=-0.1), {"x": {"logprob": -0.1}})),
        (200, completion(None, listed(t7=-0.1), None)),
        (200, "text"),
    ],
)
async def test_answers_of_another_shape_are_refused(status: int, answer: Any) -> None:
    fault = FaultServer(says(status, answer))
    async with fault.running(), Endpoint("e", EndpointSettings(url=fault.url, max_attempts=1)) as endpoint:
        assert await Vllm(endpoint).forced_tokens(ForcedPrompt([3, 7], 100, "m"), [9], [0], top=2) is None


async def test_how_vllm_writes_a_position() -> None:
    """The forced token first, wherever it ranks; -9999 is impossible; U+FFFD stands for unknown bytes."""
    last = {
        "9": {"logprob": -9999.0, "rank": 40, "decoded_token": " z"},
        "4": {"logprob": -0.25, "rank": 1, "decoded_token": "a"},
        "5": {"logprob": -1.75, "rank": 2, "decoded_token": "\ufffd"},
    }
    fault = FaultServer(says(200, completion(None, listed(t7=-0.1), last)))
    async with fault.running(), Endpoint("e", EndpointSettings(url=fault.url)) as endpoint:
        seen = await Vllm(endpoint).forced_tokens(ForcedPrompt([3, 7], 100, "m"), [9, 8], [0], top=2)
    assert seen is not None
    (token,) = seen
    assert [(item.id, item.raw, item.logprob) for item in token.top] == [
        (4, b"a", -0.25),
        (5, None, -1.75),
        (9, b" z", -math.inf),
    ]
    assert token.ranked == 2
    (body,) = fault.bodies
    assert body == {
        "model": "m",
        "prompt": [3, 7, 9],
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 2,
    }


async def test_the_positions_of_a_long_prompt_are_never_held_decoded() -> None:
    rows = {str(i): {"logprob": -1.5 - i, "rank": i + 1, "decoded_token": f" word{i}"} for i in range(21)}
    answer = completion(None, *[rows] * 2_000)
    size = len(json.dumps(answer))
    fault = FaultServer(says(200, answer))
    async with fault.running(), Endpoint("e", EndpointSettings(url=fault.url)) as endpoint:
        vllm, ids = Vllm(endpoint), [1] * 1_990
        seen = await vllm.forced_tokens(ForcedPrompt(ids, 9_000, "m"), [3] * 11, list(range(11)), top=20)
        assert seen is not None and len(seen) == 11
        tracemalloc.start()
        try:
            await vllm.forced_tokens(ForcedPrompt(ids, 9_000, "m"), [3] * 11, list(range(11)), top=20)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # The fake's own copies of the answer count too; as Python objects it would be over ten times its size.
    assert peak < 6 * size
