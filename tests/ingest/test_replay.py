"""Replay against the real models, and against a faulty server where those cannot fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from ingest.errors import DeadLetterError, EndpointAwayError, SettingsError
from ingest.observation import FailureKind
from ingest.outcome import SkipReason
from ingest.pair import ResponsePair
from ingest.records import MirroredRequest
from ingest.replay import Replayer
from ingest.replay_plan import plan_for
from ingest.settings import EndpointSettings, ExperimentSettings
from tests.ingest.fault_server import GOOD_STREAM, FaultServer, chunk, says, streams
from tests.ingest.mirrored import mirrored

WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


def chat(content: str, **fields: Any) -> dict[str, Any]:
    return {"model": "served", "messages": [{"role": "user", "content": content}], **fields}


def experiment(*candidates: str, **fields: Any) -> ExperimentSettings:
    defaults: dict[str, Any] = {
        "name": "e",
        "reference": "ref",
        "candidates": list(candidates),
        "models": {"*": dict.fromkeys(["ref", *candidates], "asked")},
        "noise_fraction": 0.0,
        "forced_fraction": 0.0,
    }
    return ExperimentSettings(**{**defaults, **fields})


async def replay(
    settings: ExperimentSettings, urls: dict[str, str], request: MirroredRequest, **more: Any
) -> tuple[ResponsePair, ...]:
    replayer = Replayer(
        settings, {name: EndpointSettings(url=url, max_attempts=1, **more) for name, url in urls.items()}
    )
    await replayer.start()
    try:
        return await replayer.replay(request)
    finally:
        await replayer.close()


async def test_a_pair_of_real_models(reference_server: LlamaServer, candidate_server: LlamaServer) -> None:
    request = mirrored(chat("List three colours.", max_tokens=16, temperature=0.9))
    (pair,) = await replay(
        experiment("cand"), {"ref": reference_server.url, "cand": candidate_server.url}, request
    )
    for seen, alias in ((pair.reference, "smollm2-q8_0"), (pair.candidate, "smollm2-mxfp4")):
        assert seen.failure is None and seen.notes == ()
        assert seen.reported_model == alias
        assert seen.completion_tokens is not None and 0 < seen.completion_tokens <= 16
        assert len(seen.tokens) in (seen.completion_tokens, seen.completion_tokens - 1)
        assert b"".join(token.raw or b"" for token in seen.tokens).decode() == seen.text
        assert all(token.ranked == len(token.top) == 20 for token in seen.tokens)
        # Temperature 0: the chosen token leads its list.
        assert all(token.id == token.top[0].id for token in seen.tokens)
        assert seen.timings is not None and seen.timings.first_token_ms is not None
    assert pair.vocabulary_size == 49152
    assert not pair.prompt_differs
    assert (pair.reference_again, pair.candidate_again, pair.forced) == (None, None, None)
    assert "temperature=0" in pair.plan.changes
    assert pair.candidate_body["model"] == "asked"


async def test_forced_scoring_of_a_model_on_itself(reference_server: LlamaServer) -> None:
    """The same weights on the same tokens: the two distributions are one."""
    request = mirrored(chat("What is a sundial?", max_tokens=20, tools=[WEATHER]))
    (pair,) = await replay(
        experiment("cand", forced_fraction=1.0),
        {"ref": reference_server.url, "cand": reference_server.url},
        request,
    )
    assert pair.forced is not None and pair.forced.unscored is None
    forced = pair.forced
    # llama.cpp refuses logprobs with tools on a stream: the fallback was taken, nothing was lost.
    assert pair.reference.timings is not None and pair.reference.timings.first_token_ms is None
    assert [token.id for token in forced.reference] == [token.id for token in pair.reference.tokens]
    for own, other in zip(forced.reference, forced.candidate, strict=True):
        reference = {item.id: item.logprob for item in own.top}
        candidate = {item.id: item.logprob for item in other.top}
        assert len(reference) == len(candidate) == 20
        assert other.top[0].id == other.id == own.id
        assert candidate == pytest.approx(reference, abs=1e-3)
        assert other.logprob == pytest.approx(own.logprob, abs=1e-3)


async def test_forced_scoring_against_generating_it(
    reference_server: LlamaServer, candidate_server: LlamaServer
) -> None:
    """Up to the first difference the candidate's own answer has the same context, so the same numbers."""
    request = mirrored(chat("Write one sentence about the sea.", max_tokens=24))
    (pair,) = await replay(
        experiment("cand", forced_fraction=1.0, forced_max_tokens=8),
        {"ref": reference_server.url, "cand": candidate_server.url},
        request,
    )
    assert pair.forced is not None and len(pair.forced.candidate) == 8
    for forced, own in zip(pair.forced.candidate, pair.candidate.tokens, strict=False):
        assert {item.id for item in forced.top[:5]} == {item.id for item in own.top[:5]}
        assert forced.top[0].logprob == pytest.approx(own.top[0].logprob, abs=1e-3)
        if own.id != forced.id:
            break


@pytest.mark.parametrize(
    ("body", "fields", "reason"),
    [
        (chat("json", max_tokens=4, response_format={"type": "json_object"}), {}, "constrained"),
        (chat("hello", max_tokens=4), {"forced_max_prompt_tokens": 5}, "prompt_too_long"),
        (chat("x " * 5000, max_tokens=4), {}, "no_answer"),
    ],
)
async def test_forced_is_unscored_with_its_reason(
    reference_server: LlamaServer, body: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    urls = {"ref": reference_server.url, "cand": reference_server.url}
    (pair,) = await replay(experiment("cand", forced_fraction=1.0, **fields), urls, mirrored(body))
    assert pair.forced is not None
    assert (pair.forced.unscored, len(pair.forced.reference)) == (reason, 0)
    if reason == "no_answer":
        assert pair.reference.failure is not None
        assert pair.reference.failure.kind is FailureKind.CONTEXT_EXCEEDED


async def test_legacy_completions_are_forced_too(reference_server: LlamaServer) -> None:
    request = mirrored({"model": "x", "prompt": "The sky is", "max_tokens": 6}, endpoint="/v1/completions")
    urls = {"ref": reference_server.url, "cand": reference_server.url}
    (pair,) = await replay(experiment("cand", forced_fraction=1.0), urls, request)
    assert pair.forced is not None and len(pair.forced.candidate) == 6
    assert all(token.top[0].id == token.id for token in pair.forced.candidate)


async def test_forced_scoring_across_a_character_of_several_tokens(reference_server: LlamaServer) -> None:
    """The server hides the tokens of an emoji; the positions behind it must still have the right context."""
    prompt = "Party 🎉 time. Party 🎉 time. Party 🎉 time. Party"
    request = mirrored({"prompt": prompt, "max_tokens": 8}, endpoint="/v1/completions")
    urls = {"ref": reference_server.url, "cand": reference_server.url}
    (pair,) = await replay(experiment("cand", forced_fraction=1.0), urls, request)
    assert pair.reference.text.startswith(" 🎉 time.")
    assert pair.reference.notes == ("tokens_merged",)
    merged = [token for token in pair.reference.tokens if token.id is None]
    assert pair.forced is not None and pair.reference.completion_tokens == 8
    assert len(pair.forced.reference) == len(pair.reference.tokens) - len(merged)
    for own, other in zip(pair.forced.reference, pair.forced.candidate, strict=True):
        assert other.top[0].id == other.id
        assert other.logprob == pytest.approx(own.logprob, abs=1e-3)


async def test_noise_asks_again_with_the_cache_off(reference_server: LlamaServer) -> None:
    urls = {"ref": reference_server.url, "cand": reference_server.url}
    settings = experiment("cand", noise_fraction=1.0)
    by_plan = {
        plan_for(mirrored({}, name), settings, "cand").wants_candidate_noise: name
        for name in (f"r-{n}" for n in range(20))
    }
    for wants_candidate, request_id in by_plan.items():
        (pair,) = await replay(settings, urls, mirrored(chat("Say yes.", max_tokens=4), request_id))
        assert (pair.candidate_again is not None) is wants_candidate
        assert pair.reference_again is not None
        assert pair.reference_again.text == pair.reference.text
        assert pair.reference_body["cache_prompt"] is False
    assert set(by_plan) == {True, False}


async def test_a_second_reference_makes_a_real_floor(
    model_paths: ModelPaths, reference_server: LlamaServer
) -> None:
    """The same weights without flash attention: other bits, so another distribution at nearly every token."""
    settings = experiment(
        "cand",
        reference_b="again",
        models={"*": dict.fromkeys(["ref", "cand", "again"], "asked")},
        noise_fraction=1.0,
        forced_fraction=1.0,
    )
    with LlamaServer(model_paths.reference, alias="again", flash_attention=False) as second:
        urls = {"ref": reference_server.url, "cand": reference_server.url, "again": second.url}
        (pair,) = await replay(settings, urls, mirrored(chat("Name a fruit.", max_tokens=12)))
    assert pair.reference_again_name == "again" and pair.reference_again is not None
    assert pair.forced is not None and pair.forced_again is not None
    assert pair.forced.unscored is None and pair.forced_again.unscored is None
    own = [token.logprob for token in pair.forced_again.reference]
    floor = [token.logprob for token in pair.forced_again.candidate]
    assert len(own) == len(floor) and own != floor
    # Up to 0.18 nats was seen here: the noise floor is no rounding error.
    assert own == pytest.approx(floor, abs=1.0)
    # The candidate is the reference itself here: under the floor there is nothing left.
    assert [token.logprob for token in pair.forced.candidate] == pytest.approx(own, abs=1e-3)


async def test_the_reference_is_asked_once_for_all_candidates() -> None:
    reference, first, second = (FaultServer(streams(*GOOD_STREAM)) for _ in range(3))
    async with reference.running(), first.running(), second.running():
        urls = {"ref": reference.url, "a": first.url, "b": second.url}
        pairs = await replay(experiment("a", "b"), urls, mirrored(chat("x")))
    assert [pair.candidate_name for pair in pairs] == ["a", "b"]
    assert pairs[0].reference is pairs[1].reference
    # One question; the other call looks for the vocabulary's size and sends no body.
    assert [bool(body) for body in reference.bodies] == [True, False]
    assert [bool(body) for body in first.bodies] == [True]


async def test_prompts_of_different_length_are_told() -> None:
    def usage(count: int) -> bytes:
        return b'data: {"choices": [], "usage": {"prompt_tokens": %d}}\n\n' % count

    reference = FaultServer(streams(chunk("x", "stop"), usage(3), b"data: [DONE]\n\n"))
    candidate = FaultServer(streams(chunk("x", "stop"), usage(4), b"data: [DONE]\n\n"))
    async with reference.running(), candidate.running():
        urls = {"ref": reference.url, "cand": candidate.url}
        (pair,) = await replay(experiment("cand"), urls, mirrored(chat("x")))
    assert pair.prompt_differs


async def test_a_failing_side_is_a_pair_and_an_absent_one_is_not() -> None:
    reference = FaultServer(streams(*GOOD_STREAM))
    for status, is_away in ((500, False), (503, True)):
        candidate = FaultServer(says(status))
        async with reference.running(), candidate.running():
            urls = {"ref": reference.url, "cand": candidate.url}
            if is_away:
                with pytest.raises(EndpointAwayError, match='"cand"'):
                    await replay(experiment("cand"), urls, mirrored(chat("x")))
            else:
                (pair,) = await replay(experiment("cand"), urls, mirrored(chat("x")))
                assert pair.candidate.failure is not None and pair.reference.failure is None


async def test_engines_without_forced_scoring() -> None:
    answer = {
        "choices": [
            {
                "message": {"content": "x"},
                "finish_reason": "stop",
                "logprobs": {"content": [{"token": "x", "logprob": -0.5}]},
            }
        ]
    }
    server = FaultServer(says(200, answer))
    async with server.running():
        urls = {"ref": server.url, "cand": server.url}
        for supports in (None, False):
            (pair,) = await replay(
                experiment("cand", forced_fraction=1.0), urls, mirrored(chat("x")), supports_forced=supports
            )
            assert pair.forced is not None and pair.forced.unscored == "unsupported_engine"


async def test_a_model_that_the_map_lacks() -> None:
    settings = experiment("cand", models={"known": {"ref": "r", "cand": "c"}})
    replayer = Replayer(settings, dict.fromkeys(["ref", "cand"], EndpointSettings(url="http://h")))
    skipped = replayer.skip_for(mirrored(chat("x")))
    assert skipped is not None and skipped.reason is SkipReason.MODEL
    assert skipped.detail == 'no model of endpoint "ref" is mapped to "served"'
    assert replayer.skip_for(mirrored({**chat("x"), "model": "known"})) is None
    with pytest.raises(DeadLetterError, match="mapped"):
        await replayer.replay(mirrored(chat("x")))


def test_an_endpoint_that_is_not_configured() -> None:
    with pytest.raises(SettingsError, match='"cand", which is not configured .configured: ref.'):
        Replayer(experiment("cand"), {"ref": EndpointSettings(url="http://h")})


async def test_a_record_is_done_before_younger_ones_have_the_endpoint() -> None:
    """Sixteen records, eight at a time as the pipeline has them, and one place at each endpoint."""
    ref, cand = FaultServer(streams(*GOOD_STREAM)), FaultServer(streams(*GOOD_STREAM))
    done: list[int] = []
    async with ref.running(), cand.running():
        limits = {"ref": ref, "cand": cand}
        endpoints = {name: EndpointSettings(url=one.url, max_in_flight=1) for name, one in limits.items()}
        replayer = Replayer(experiment("cand", noise_fraction=1.0), endpoints)
        await replayer.start()
        slots = asyncio.Semaphore(8)

        async def one(number: int) -> None:
            async with slots:
                await replayer.replay(mirrored(chat(f"{number}"), f"r-{number}"))
                done.append(number)

        await asyncio.gather(*(one(number) for number in range(16)))
        await replayer.close()
    asked = [int(body["messages"][0]["content"]) for body in ref.bodies if "messages" in body]
    assert asked == sorted([*range(16)] * 2)
    assert all(abs(place - number) <= 2 for place, number in enumerate(done))
