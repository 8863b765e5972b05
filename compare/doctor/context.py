"""Does a long prompt reach the model whole? Some servers cut it in silence."""

from __future__ import annotations

import math
from typing import Any

from compare.doctor.check import Check, fail, ok, unknown, warn
from compare.doctor.endpoint import CHAT, Facts
from ingest.endpoint import Endpoint
from ingest.errors import GnomonError
from ingest.observation import Failure, FailureKind

_NEEDLES = ("alder", "walrus")
_FILLER = "Entry {number}: the pump ran as usual and nothing was found. "
_FEW_ENTRIES = 20
_TOKENS_AN_ENTRY = 20
"""Where the server does not report prompt tokens."""
_LEAST_SHARE = 0.75
"""Numbers grow longer and the template counts once: the estimate is not exact."""
_ROOM_TOKENS = 64
_CLOCKS = {
    FailureKind.FIRST_TOKEN_TIMEOUT: "first_token_timeout_s",
    FailureKind.IDLE_TIMEOUT: "idle_timeout_s",
    FailureKind.TOTAL_TIMEOUT: "total_timeout_s",
}
"""The key of the endpoint's settings that ended a call."""


async def check_context(endpoint: Endpoint, model: str, facts: Facts, wanted_tokens: int) -> list[Check]:
    """Send two long prompts that differ in one word at their very beginning.

    If the next token's distribution is the same to the last bit, the model has not seen the beginning:
    it was cut off. That works with models too weak to repeat the word. The prompt is about `wanted_tokens`
    long, less where the server says that its context is smaller.
    """
    name = f"endpoint {endpoint.name}: context"
    limit = facts.engine.context_tokens
    length = wanted_tokens if limit is None else min(wanted_tokens, limit - _ROOM_TOKENS)
    told = "the server does not tell its length" if limit is None else f"{limit} tokens"
    if length < _ROOM_TOKENS:
        return [fail(name, told, "give the server a larger context")]
    try:
        short = await _read(endpoint, model, _NEEDLES[0], _FEW_ENTRIES)
        an_entry = _TOKENS_AN_ENTRY if short[1] is None else short[1] / _FEW_ENTRIES
        count = max(1, int(length / an_entry))
        seen = [await _read(endpoint, model, needle, count) for needle in _NEEDLES]
    except GnomonError as error:
        return [unknown(name, str(error))]
    refused = next((failure for failure, _, _ in (short, *seen) if failure is not None), None)
    if refused is not None:
        return [warn(name, f"{told}; {_words(refused)}", _advice(refused.kind, length))]
    (_, tokens, first), (_, _, second) = seen
    if first is None or second is None:
        return [unknown(name, f"{told}; no list at the first token")]
    how_long = "a long prompt" if tokens is None else f"a prompt of {tokens} tokens"
    if first == second:
        advice = "it is cut in silence: raise the server's context (Ollama: num_ctx), or cap the prompts"
        return [fail(name, f"{told}; the beginning of {how_long} changes nothing", advice)]
    expected = an_entry * count
    if tokens is not None and short[1] is not None and tokens < _LEAST_SHARE * expected:
        advice = "prompt_tokens stops growing: the server cuts long prompts"
        return [fail(name, f"{told}; {tokens} tokens reported where about {expected:.0f} were sent", advice)]
    checks = [ok(name, f"{told}; {how_long} is read from its first word")]
    if limit is not None and limit < wanted_tokens:
        advice = "longer prompts of your traffic end as context_exceeded on this side"
        checks.append(warn(f"{name} length", f"{limit} of {wanted_tokens} tokens", advice))
    return checks


def _words(failure: Failure) -> str:
    if failure.kind is FailureKind.CONTEXT_EXCEEDED:
        return "it is too long"
    return f"{failure.kind.value}: {failure.message[:120]}"


def _advice(kind: FailureKind, tokens: int) -> str:
    """What to do about a prompt of so many tokens that was not answered."""
    if kind is FailureKind.CONTEXT_EXCEEDED:
        return f"prompts of {tokens} tokens are refused: give the server a larger context"
    if kind in _CLOCKS:
        return (
            f"prompts of {tokens} tokens take this server longer than {_CLOCKS[kind]}, and your traffic's as "
            "long ones will: raise that key of the endpoint, or take a faster server"
        )
    return f"prompts of {tokens} tokens are not answered: see the server's log for this one"


async def _read(
    endpoint: Endpoint, model: str, needle: str, count: int
) -> tuple[Failure | None, int | None, dict[str, float] | None]:
    """Why it was refused, the prompt tokens reported, and the list at the first token."""
    filler = "".join(_FILLER.format(number=number) for number in range(count))
    text = f"The password is {needle}. {filler}\nWhat is the password?"
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": endpoint.settings.top_logprobs,
        # The beginning must be read, not remembered.
        "cache_prompt": False,
    }
    answer = await endpoint.ask(body, CHAT)
    if answer.failure is not None:
        return answer.failure, None, None
    if not answer.tokens:
        return None, answer.prompt_tokens, None
    top = answer.tokens[0].top
    listed = {repr(entry.raw or entry.text): entry.logprob for entry in top if math.isfinite(entry.logprob)}
    return None, answer.prompt_tokens, listed or None
