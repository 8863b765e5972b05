"""Questions to one endpoint: what it is, and what its logprobs are worth."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from compare.doctor.check import Check, fail, ok, unknown, warn
from compare.doctor.engine import Engine, find_engine
from ingest.endpoint import Endpoint
from ingest.errors import GnomonError
from ingest.observation import Observation
from ingest.tokens import Token

CHAT = "/v1/chat/completions"

_SAME_NATS = 0.02
"""Two reads of one distribution differ by rounding; other temperatures or masks differ by far more."""

PROMPTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("plain", {"messages": [{"role": "user", "content": "Name three colours."}]}),
    (
        "a system message",
        {
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "user", "content": "Why is the sky blue?"},
            ]
        },
    ),
    (
        "several turns",
        {
            "messages": [
                {"role": "user", "content": "2+2?"},
                {"role": "assistant", "content": "4"},
                {"role": "user", "content": "And 3+3?"},
            ]
        },
    ),
    ("rare characters", {"messages": [{"role": "user", "content": "naïve 错误码 🙂 \u202eabc x₂"}]}),
)
"""The same tokens must come of each on both sides."""


class Facts(msgspec.Struct):
    """What one endpoint showed, for the comparison with the other side."""

    engine: Engine
    prompt_tokens: dict[str, int | None] = {}
    """Prompt tokens of each of PROMPTS, by its name."""
    text_tokens: dict[str, tuple[int, ...]] = {}
    """Token ids of some texts, where the server tokenizes."""


async def check_endpoint(endpoint: Endpoint, model: str) -> tuple[list[Check], Facts | None]:
    """Ask `model` at one endpoint some short questions. No facts where it does not answer."""
    where = f"endpoint {endpoint.name}"
    try:
        engine = await find_engine(endpoint)
        checks = [_engine(where, engine, model, endpoint.settings.url)]
        first = await _ask(endpoint, model, PROMPTS[0][1], max_tokens=8)
        if not first.has_answer:
            failure = first.failure
            assert failure is not None
            advice = "try the same request with curl; see the server's log"
            checks.append(fail(f"{where}: answer", f"{failure.kind.value}: {failure.message[:200]}", advice))
            return checks, None
        facts = Facts(engine)
        checks += _shape(where, first, endpoint.settings.top_logprobs)
        again = await _ask(endpoint, model, PROMPTS[0][1], max_tokens=8)
        checks.append(_repeats(where, first, again))
        if first.tokens:
            checks.append(await _logprob_mode(where, endpoint, model))
        for name, body in PROMPTS:
            facts.prompt_tokens[name] = (await _ask(endpoint, model, body, max_tokens=1)).prompt_tokens
        return checks, facts
    except GnomonError as error:
        advice = f"check endpoints.{endpoint.name}.url, and that the server has started"
        return [fail(f"{where}: connection", str(error), advice)], None


def _engine(where: str, engine: Engine, model: str, url: str) -> Check:
    name = f"{where}: engine"
    seen = f"{engine.label} at {url}"
    if engine.models and model not in engine.models and engine.name != "llama.cpp":
        listed = ", ".join(engine.models[:5])
        return fail(name, f"{seen}; it lists {listed}, not {model}", "mend experiment.models")
    return ok(name, seen)


def _shape(where: str, answer: Observation, wanted_top: int) -> list[Check]:
    checks = []
    tokens = answer.tokens
    if not tokens:
        advice = "without logprobs there is no entropy and no KL: use an engine or an option that gives them"
        return [fail(f"{where}: logprobs", "none", advice)]
    ranked = max(token.ranked for token in tokens)
    name = f"{where}: top-k"
    seen = f"{ranked} of {wanted_top} asked"
    if ranked < wanted_top:
        advice = "raise the server's limit (vLLM: --max-logprobs), or lower top_logprobs of both sides alike"
        checks.append(warn(name, seen, advice))
    else:
        checks.append(ok(name, seen))
    is_streamed = answer.timings is not None and answer.timings.first_token_ms is not None
    name = f"{where}: logprobs in streams"
    if is_streamed:
        checks.append(ok(name, "yes"))
    else:
        advice = "answers come whole: a hang is seen only at total_timeout_s"
        checks.append(warn(name, "no: this server is asked without streaming", advice))
    name = f"{where}: token identity"
    has_ids = all(token.id is not None for token in tokens)
    has_bytes = all(token.raw is not None for token in tokens)
    if has_ids or has_bytes:
        checks.append(ok(name, " and ".join(["ids"] * has_ids + ["bytes"] * has_bytes)))
    else:
        advice = "tokens that are part of a character cannot be told apart: take an engine that gives ids"
        checks.append(warn(name, "texts only", advice))
    if answer.prompt_tokens is None:
        advice = "without prompt_tokens different chat templates are not noticed"
        checks.append(warn(f"{where}: usage", "the answer has none", advice))
    return checks


def _repeats(where: str, first: Observation, again: Observation) -> Check:
    name = f"{where}: repeats itself"
    if first.text == again.text:
        return ok(name, "the same question twice, the same answer")
    advice = "its noise floor is high: keep noise_fraction at 0.1 or more, and read excess, not raw scores"
    return warn(name, "the same question twice, two answers at temperature 0", advice)


async def _logprob_mode(where: str, endpoint: Endpoint, model: str) -> Check:
    """Whether logprobs are the model's own, or what is left after temperature, bias and mask."""
    name = f"{where}: logprob mode"
    greedy = await _first_token(endpoint, model, {"temperature": 0})
    warm = await _first_token(endpoint, model, {"temperature": 1.0, "seed": 1})
    hot = await _first_token(endpoint, model, {"temperature": 2.0, "seed": 1})
    if greedy is None or warm is None or hot is None:
        return unknown(name, "no list at the first token")
    own = _listed(warm)
    if _differ(own, _listed(hot)):
        when = "after temperature"
    elif _differ(own, _listed(greedy)):
        # Some servers report a certainty at temperature 0 whatever the model thought.
        when = "one token certain at temperature 0"
    else:
        parts = ["before temperature", await _bias_mode(endpoint, model, own)]
        parts.append(await _mask_mode(endpoint, model, own))
        return ok(name, ", ".join(part for part in parts if part))
    advice = (
        "entropy and KL of such lists say nothing of the model: start the server so that it gives raw "
        "logprobs (vLLM: --logprobs-mode raw_logprobs; llama.cpp: post_sampling_probs false)"
    )
    return fail(name, f"logprobs are those {when}", advice)


async def _bias_mode(endpoint: Endpoint, model: str, own: dict[object, float]) -> str:
    best = max(own, key=lambda key: own[key])
    if not isinstance(best, int):
        return ""
    token = await _first_token(endpoint, model, {"temperature": 0, "logit_bias": {str(best): -100}})
    if token is None:
        return ""
    return "after bias" if _differ(own, _listed(token)) else "before bias"


async def _mask_mode(endpoint: Endpoint, model: str, own: dict[object, float]) -> str:
    asked = {"temperature": 0, "response_format": {"type": "json_object"}}
    token = await _first_token(endpoint, model, asked)
    if token is None:
        return ""
    return "after mask" if _differ(own, _listed(token)) else "before mask"


def _differ(a: dict[object, float], b: dict[object, float]) -> bool:
    shared = a.keys() & b.keys()
    return not shared or max(abs(a[key] - b[key]) for key in shared) > _SAME_NATS


async def _first_token(endpoint: Endpoint, model: str, options: dict[str, Any]) -> Token | None:
    answer = await _ask(endpoint, model, PROMPTS[0][1], max_tokens=1, **options)
    return answer.tokens[0] if answer.tokens and answer.tokens[0].ranked else None


def _listed(token: Token) -> dict[object, float]:
    """Logprobs by id, else by bytes, else by text, of what is not impossible."""
    return {
        other.id if other.id is not None else other.raw or other.text: other.logprob
        for other in token.top[: token.ranked]
        if other.logprob is not None and math.isfinite(other.logprob)
    }


async def _ask(
    endpoint: Endpoint, model: str, body: dict[str, Any], *, max_tokens: int, **options: Any
) -> Observation:
    asked = {
        "temperature": 0,
        "seed": 7,
        "logprobs": True,
        "top_logprobs": endpoint.settings.top_logprobs,
        **body,
        "model": model,
        "max_tokens": max_tokens,
        **options,
    }
    return await endpoint.ask(asked, CHAT)
