from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from ingest.outcome import Skipped, SkipReason
from ingest.records import MirroredRequest, ProductionAnswer
from ingest.sampling import FRACTION_TAG, KEPT_TAG, Sampler, is_sampled, prompt_characters
from ingest.settings import SamplingRule, SamplingSettings
from tests.ingest.mirrored import mirrored

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def sampler(fraction: float = 0.0, **settings: Any) -> Sampler:
    return Sampler(SamplingSettings(**settings), fraction=fraction, seed=7)


def request(request_id: str = "r-1", body: dict[str, Any] | None = None, **fields: Any) -> MirroredRequest:
    return msgspec.structs.replace(mirrored(body or CHAT, request_id), **fields)


def chosen(which: Sampler, count: int = 4000, **fields: Any) -> int:
    seen = (which.sample(request(f"r-{n}", **fields)) for n in range(count))
    return sum(isinstance(one, MirroredRequest) for one in seen)


def test_sampling_is_stable_and_near_its_fraction() -> None:
    ids = [f"request-{n}" for n in range(20_000)]
    sample = {i for i in ids if is_sampled(i, 0.25, seed=7)}
    # Five standard deviations of a binomial(20000, 1/4) around its mean of 5000.
    assert abs(len(sample) - 5000) < 5 * (20_000 * 0.25 * 0.75) ** 0.5
    assert sample <= {i for i in ids if is_sampled(i, 0.5, seed=7)}
    assert not any(is_sampled(i, 0.0, seed=7) for i in ids)
    assert all(is_sampled(i, 1.0, seed=7) for i in ids)


def test_another_process_with_another_hash_seed_takes_the_same_sample() -> None:
    program = (
        "from ingest.sampling import is_sampled\n"
        "print([n for n in range(200) if is_sampled(f'r-{n}', 0.3, seed=7)])"
    )
    made = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout.strip() == str([n for n in range(200) if is_sampled(f"r-{n}", 0.3, seed=7)])


def test_the_first_rule_that_matches_decides() -> None:
    rules = [
        SamplingRule(1.0, tenant="acme-*", route="log-extract"),
        SamplingRule(0.0, tenant="acme-*"),
        SamplingRule(0.25, route="chat"),
    ]
    one = sampler(0.5, rules=rules)
    assert chosen(one, 100, tenant="acme-1", route="log-extract") == 100
    assert chosen(one, 100, tenant="acme-1", route="chat") == 0
    # Five standard deviations of a binomial(4000, p).
    assert abs(chosen(one, tenant="other", route="chat") - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5
    assert abs(chosen(one, tenant="other", route="else") - 2000) < 5 * (4000 * 0.25) ** 0.5


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"tenant": "a"}, "sampling.rules 1 (tenant = a, fraction = 0)"),
        ({"tenant": "b", "route": "r"}, "sampling.rules 2 (tenant = b, route = r, fraction = 0)"),
        ({}, "experiment.sample_fraction = 0"),
    ],
)
def test_a_skip_names_its_rule(fields: dict[str, Any], detail: str) -> None:
    rules = [SamplingRule(0.0, tenant="a"), SamplingRule(0.0, tenant="b", route="r")]
    assert sampler(rules=rules).sample(request(**fields)) == Skipped(SkipReason.SAMPLED_OUT, detail)


def test_what_is_always_kept_comes_before_any_rule_and_says_so() -> None:
    one = sampler(
        keep_errors=True,
        keep_prompt_characters=1000,
        keep_tags=["canary", "build=1841"],
        rules=[SamplingRule(0.0)],
    )
    long = {"model": "m", "messages": [{"role": "user", "content": "x" * 1000}]}
    kept = [
        (request(production=ProductionAnswer(status=400)), "keep_errors"),
        (request(production=ProductionAnswer(status=503)), "keep_errors"),
        (request(body=long), "keep_prompt_characters"),
        (request(tags={"canary": ""}), "keep_tags canary"),
        (request(tags={"build": "1841"}), "keep_tags build=1841"),
    ]
    for asked, rule in kept:
        seen = one.sample(asked)
        assert isinstance(seen, MirroredRequest)
        assert seen.tags == {**asked.tags, KEPT_TAG: rule}
    for asked in (
        request(production=ProductionAnswer(status=200)),
        request(production=ProductionAnswer()),
        request(tags={"build": "1842"}),
    ):
        assert isinstance(one.sample(asked), Skipped)


def test_a_rules_sample_is_tagged_with_its_fraction_and_the_plain_one_is_not() -> None:
    by_rule = sampler(rules=[SamplingRule(1.0, tenant="a")]).sample(request(tenant="a"))
    assert isinstance(by_rule, MirroredRequest) and by_rule.tags == {FRACTION_TAG: "1"}
    assert sampler(1.0).sample(request()) == request()


@pytest.mark.parametrize(
    ("body", "characters"),
    [
        ({"messages": [{"content": "abc"}, {"content": [{"type": "text", "text": "de"}, "f"]}]}, 6),
        ({"messages": [{"content": None}, "odd", {"content": [None, {"text": 5}]}]}, 0),
        ({"prompt": "abcd"}, 4),
        ({"prompt": ["abcd"]}, 4),
        ({"prompt": [17, 18, 19]}, 12),
        ({"messages": "odd", "prompt": None}, 0),
        ({}, 0),
    ],
)
def test_prompt_characters(body: dict[str, Any], characters: int) -> None:
    assert prompt_characters(body) == characters
