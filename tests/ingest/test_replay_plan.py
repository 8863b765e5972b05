from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ingest.pair import Mode
from ingest.replay_body import is_constrained, replay_body
from ingest.replay_plan import asked_model, plan_for, share_of
from ingest.settings import ExperimentSettings
from tests.ingest.mirrored import mirrored

CHAT = "/v1/chat/completions"


def experiment(**fields: Any) -> ExperimentSettings:
    return ExperimentSettings(
        **{"name": "e", "reference": "ref", "candidates": ["a", "b"], "models": {}, **fields}
    )


def build(body: dict[str, Any], mode: Mode = Mode.GREEDY, path: str = CHAT, **fields: Any) -> Any:
    defaults: dict[str, Any] = {"model": "m2", "seed": 7, "top_logprobs": 20, "max_tokens_cap": 256}
    return replay_body(body, path=path, mode=mode, **{**defaults, **fields})


def test_share_is_the_hash() -> None:
    digest = hashlib.blake2b(b"noise\x007\x00r-1", digest_size=8).digest()
    expected = int.from_bytes(digest, "big") / 2**64
    assert share_of("r-1", purpose="noise", seed=7) == pytest.approx(expected, abs=1e-15)


def test_shares_fill_the_fractions_and_are_independent() -> None:
    chosen = experiment(greedy_fraction=0.5, noise_fraction=0.2, forced_fraction=0.4)
    plans = [plan_for(mirrored({}, f"r-{n}"), chosen, "a") for n in range(4000)]
    others = [plan_for(mirrored({}, f"r-{n}"), chosen, "b") for n in range(4000)]

    def share(flags: list[bool]) -> float:
        return sum(flags) / len(flags)

    # Five standard deviations of a binomial share of 4,000 are at most 0.04.
    assert share([plan.mode is Mode.GREEDY for plan in plans]) == pytest.approx(0.5, abs=0.04)
    assert share([plan.wants_noise for plan in plans]) == pytest.approx(0.2, abs=0.04)
    assert share([plan.wants_candidate_noise for plan in plans]) == pytest.approx(0.1, abs=0.04)
    assert share([plan.wants_forced for plan in plans]) == pytest.approx(0.2, abs=0.04)
    assert all(plan.mode is Mode.GREEDY for plan in plans if plan.wants_forced)
    assert [p.wants_noise for p in plans] == [p.wants_noise for p in others]
    assert [p.wants_candidate_noise for p in plans] != [p.wants_candidate_noise for p in others]


@pytest.mark.parametrize(("fraction", "mode"), [(1.0, Mode.GREEDY), (0.0, Mode.AS_SENT)])
def test_whole_fractions_have_no_exceptions(fraction: float, mode: Mode) -> None:
    chosen = experiment(greedy_fraction=fraction)
    assert {plan_for(mirrored({}, f"r-{n}"), chosen, "a").mode for n in range(500)} == {mode}


def test_model_map() -> None:
    models = {"served": {"ref": "big"}, "*": {"ref": "other", "a": "small"}}
    chosen = experiment(models=models)
    assert asked_model(chosen, "served", "ref") == "big"
    assert asked_model(chosen, "served", "a") == "small"
    assert asked_model(chosen, "unknown", "ref") == "other"
    assert asked_model(chosen, "unknown", "b") is None


def test_greedy_chat_body() -> None:
    sent = {
        "model": "m1",
        "messages": [{"role": "user", "content": "x"}],
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "best_of": 3,
        "n": 2,
        "stream": True,
        "stream_options": {"include_usage": False},
        "max_tokens": 4000,
        "stop": ["END"],
        "logit_bias": {"5": -100},
        "frequency_penalty": 0.5,
        "response_format": {"type": "json_object"},
        "tools": [{"type": "function"}],
    }
    built = build(sent)
    assert built.body == {
        "model": "m2",
        "messages": [{"role": "user", "content": "x"}],
        "temperature": 0,
        "seed": 7,
        "n": 1,
        "logprobs": True,
        "top_logprobs": 20,
        "max_tokens": 256,
        "stop": ["END"],
        "logit_bias": {"5": -100},
        "frequency_penalty": 0.5,
        "response_format": {"type": "json_object"},
        "tools": [{"type": "function"}],
    }
    assert built.changes == (
        "n=1",
        "temperature=0",
        "seed=7",
        "removed best_of",
        "removed min_p",
        "removed top_k",
        "removed top_p",
        "logprobs=true",
        "top_logprobs=20",
        "max_tokens capped to 256",
    )
    assert sent["temperature"] == 0.7 and sent["stream"] is True


def test_nothing_changed_nothing_recorded() -> None:
    sent = {"temperature": 0, "seed": 7, "logprobs": True, "top_logprobs": 20, "max_tokens": 9}
    assert build(sent).changes == ()


def test_greedy_legacy_body() -> None:
    built = build({"prompt": "x", "logprobs": 1}, path="/v1/completions")
    assert built.body["logprobs"] == 20 and "top_logprobs" not in built.body
    assert built.body["max_tokens"] == 16
    assert "max_tokens=16 (none was set)" in built.changes


@pytest.mark.parametrize("mode", [Mode.GREEDY, Mode.AS_SENT])
def test_the_prompt_is_not_asked_back(mode: Mode) -> None:
    sent = {"prompt": "x", "echo": True, "max_tokens": 5}
    built = build(sent, mode, path="/v1/completions")
    assert "echo" not in built.body and "removed echo" in built.changes
    assert sent["echo"] is True


def test_a_request_that_only_scores_its_prompt_keeps_its_echo() -> None:
    built = build({"prompt": "x", "echo": True, "max_tokens": 0}, Mode.AS_SENT, path="/v1/completions")
    assert (built.body["echo"], built.body["max_tokens"]) == (True, 0)


def test_as_sent_keeps_the_sampling() -> None:
    sent = {"temperature": 0.7, "top_p": 0.9, "n": 1, "max_completion_tokens": 100, "seed": 3}
    built = build(sent, Mode.AS_SENT)
    assert built.body == {**sent, "model": "m2"} and built.changes == ()


@pytest.mark.parametrize("limit", [-1, 300, True, "many", 2.5])
def test_odd_limits_are_capped(limit: Any) -> None:
    built = build({"max_completion_tokens": limit}, Mode.AS_SENT)
    assert built.body["max_completion_tokens"] == 256
    assert built.changes == ("max_completion_tokens capped to 256",)


def test_noise_switches_the_prefix_cache_off() -> None:
    built = build({"max_tokens": 1}, Mode.AS_SENT, cache_salt="s")
    assert (built.body["cache_prompt"], built.body["cache_salt"]) == (False, "s")
    assert built.changes == ("cache_prompt=false",)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, False),
        ({"response_format": {"type": "text"}}, False),
        ({"response_format": {"type": "json_object"}}, True),
        ({"tools": [{}], "tool_choice": "auto"}, False),
        ({"tool_choice": "required"}, True),
        ({"tool_choice": {"type": "function"}}, True),
        ({"guided_choice": ["a"]}, True),
        ({"grammar": ""}, False),
        ({"structured_outputs": {"regex": "a"}}, True),
    ],
)
def test_constrained(body: dict[str, Any], expected: bool) -> None:
    assert is_constrained(body) is expected
