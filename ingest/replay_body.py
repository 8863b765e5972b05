"""The body that is sent in place of the mirrored one, and what it differs in."""

from __future__ import annotations

from typing import Any

import msgspec

from ingest.pair import Mode

REMOVED_WHEN_GREEDY = (
    "best_of",
    "use_beam_search",
    "length_penalty",
    "early_stopping",
    "min_p",
    "top_k",
    "top_p",
    "typical_p",
    "top_a",
    "tfs",
)
"""What widens or cuts the choice of a token. Penalties stay: they are part of what the client asked for."""

MASK_KEYS = (
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "grammar",
    "json_schema",
    "regex",
    "ebnf",
    "structural_tag",
    "format",
    "allowed_token_ids",
)
"""What masks tokens, by engine: vLLM's, llama.cpp's, SGLang's, Ollama's `format`."""

LEGACY_DEFAULT_MAX_TOKENS = 16
"""What the completions API generates where `max_tokens` is not set."""


class ReplayBody(msgspec.Struct, frozen=True):
    """A body to send and, in words, what was changed against the mirrored one."""

    body: dict[str, Any]
    changes: tuple[str, ...]


def replay_body(
    mirrored: dict[str, Any],
    *,
    path: str,
    mode: Mode,
    model: str,
    seed: int,
    top_logprobs: int,
    max_tokens_cap: int,
    cache_salt: str | None = None,
    wants_token_ids: bool = False,
) -> ReplayBody:
    """Build the body for one endpoint.

    `wants_token_ids` asks vLLM for the ids of what it generates, which it tells only then.

    `cache_salt` is given for calls of a noise pair: it switches the prefix cache off (llama.cpp's
    `cache_prompt`) or makes it miss (vLLM's `cache_salt`). `stream` is left to the endpoint and the
    model's name is no change: both are recorded elsewhere.
    """
    body = dict(mirrored)
    body.pop("stream", None)
    body.pop("stream_options", None)
    body["model"] = model
    changes: list[str] = []

    def put(key: str, value: Any) -> None:
        if key not in body or body[key] != value or isinstance(body[key], bool) != isinstance(value, bool):
            body[key] = value
            changes.append(f"{key}={msgspec.json.encode(value).decode()}")

    if mirrored.get("n") not in (None, 1):
        put("n", 1)
    # The prompt given back says nothing of the model, and its tokens would count as the answer's. A request
    # that generates nothing wants just that, and is left as it is.
    if body.get("echo") is True and body.get("max_tokens") != 0:
        del body["echo"]
        changes.append("removed echo")
    if mode is Mode.GREEDY:
        put("temperature", 0)
        put("seed", seed)
        for key in REMOVED_WHEN_GREEDY:
            if key in body:
                del body[key]
                changes.append(f"removed {key}")
        if is_chat(path):
            put("logprobs", True)
            put("top_logprobs", top_logprobs)
        else:
            put("logprobs", top_logprobs)
    elif mirrored.get("best_of") is not None and mirrored.get("n") not in (None, 1):
        del body["best_of"]
        changes.append("removed best_of")
    _cap(body, changes, cap=max_tokens_cap, is_chat_path=is_chat(path))
    if cache_salt is not None:
        put("cache_prompt", False)
        body["cache_salt"] = cache_salt
    if wants_token_ids:
        put("return_token_ids", True)
    return ReplayBody(body, tuple(changes))


def is_chat(path: str) -> bool:
    """Whether a path is the chat route rather than the legacy one."""
    return path.rstrip("/").endswith("/chat/completions")


def is_constrained(body: dict[str, Any]) -> bool:
    """Whether the engine masks tokens, so that logprobs may be those before the mask."""
    kind = body.get("response_format")
    if isinstance(kind, dict) and kind.get("type") not in (None, "text"):
        return True
    choice = body.get("tool_choice")
    if choice == "required" or isinstance(choice, dict):
        return True
    # SGLang's own API and SDKs carry the engine's parameters one level down.
    nested = [body.get(key) for key in ("sampling_params", "extra_body", "parameters")]
    return any(
        source.get(key) not in (None, "", {}, [])
        for source in (body, *(inner for inner in nested if isinstance(inner, dict)))
        for key in MASK_KEYS
    )


def is_greedy(body: dict[str, Any]) -> bool:
    """Whether the request says temperature 0."""
    temperature = body.get("temperature")
    return isinstance(temperature, int | float) and temperature == 0


def _cap(body: dict[str, Any], changes: list[str], *, cap: int, is_chat_path: bool) -> None:
    keys = [key for key in ("max_tokens", "max_completion_tokens") if body.get(key) is not None]
    if not keys:
        limit = cap if is_chat_path else min(cap, LEGACY_DEFAULT_MAX_TOKENS)
        body["max_tokens"] = limit
        changes.append(f"max_tokens={limit} (none was set)")
    for key in keys:
        value = body[key]
        # llama.cpp takes -1 for "no limit".
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value > cap:
            body[key] = cap
            changes.append(f"{key} capped to {cap}")
