"""Teacher-forced scoring: the candidate's distribution at every position of the reference's own answer.

The ids of the prompt come from the candidate's own template and tokenizer and are used only if their
number is what both sides reported; otherwise nothing is scored. Which engine it is, the server is asked;
what each can do is in `ingest.llama_cpp` and `ingest.vllm`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ingest.endpoint import Endpoint
from ingest.forced_server import ForcedPrompt, ForcedServer
from ingest.llama_cpp import LlamaCpp
from ingest.observation import Observation
from ingest.pair import Forced
from ingest.replay_body import is_constrained
from ingest.tokens import Token, Tokens
from ingest.vllm import Vllm

UNSCORED_REASONS = (
    "unsupported_engine",
    "no_answer",
    "constrained",
    "empty_answer",
    "no_token_ids",
    "prompt_too_long",
    "prompt_differs",
    "tools",
    "request_failed",
)
"""Every value of `Forced.unscored`. `tools`: the template with tools cannot be had; `no_answer`: a side
failed."""


async def find_server(endpoint: Endpoint) -> ForcedServer | None:
    """Return what can force tokens there, None where the engine cannot or may not. Raises EndpointAwayError.

    llama.cpp is told by `/props`. vLLM is told by `/version` and used only where `supports_forced = true`
    says so: its `prompt_logprobs` read past the prefix cache and compute the whole prompt again, which no
    endpoint that serves production should be made to do.
    """
    supports = endpoint.settings.supports_forced
    if supports is False:
        return None
    llama = LlamaCpp(endpoint)
    if await llama.props() is not None:
        return llama
    vllm = Vllm(endpoint)
    if supports and await vllm.version() is not None:
        return vllm
    return None


class ForcedScorer:
    """Scores one candidate endpoint, one answer at a time.

    Two at once would spoil each other's cache on llama.cpp and hold two large answers of vLLM.
    """

    def __init__(self, endpoint: Endpoint, *, max_tokens: int, max_prompt_tokens: int) -> None:
        self._endpoint = endpoint
        self._server: ForcedServer | None = None
        self._max_tokens = max_tokens
        self._max_prompt_tokens = max_prompt_tokens
        self._lock = asyncio.Lock()

    async def score(
        self, body: dict[str, Any], path: str, reference: Observation, candidate: Observation
    ) -> Forced:
        """Score the reference's tokens on the candidate. Raises EndpointAwayError.

        `body` is what the candidate was asked, in greedy mode. Positions where the server merged
        several tokens into one entry are passed over, their tokens stay in the context.
        """
        if not reference.has_answer or not candidate.has_answer:
            return Forced(unscored="no_answer")
        if is_constrained(body):
            return Forced(unscored="constrained")
        if not reference.tokens:
            return Forced(unscored="empty_answer")
        # Asked again until it is found: a server may still be starting.
        self._server = server = self._server or await find_server(self._endpoint)
        if server is None:
            return Forced(unscored="unsupported_engine")
        prompt = await server.forced_prompt(body, path)
        reason = self._prompt_reason(prompt, body, reference, candidate)
        if prompt is None or reason is not None:
            return Forced(unscored=reason)
        forced = await _forced_ids(server, prompt.model, reference)
        room = min(self._max_tokens, prompt.context_tokens - len(prompt.ids) - 1)
        forced = forced[:room]
        if not any(token is not None for _, token in forced):
            return Forced(unscored="no_token_ids")
        async with self._lock:
            return await self._positions(server, prompt, forced)

    def _prompt_reason(
        self,
        prompt: ForcedPrompt | None,
        body: dict[str, Any],
        reference: Observation,
        candidate: Observation,
    ) -> str | None:
        if prompt is None:
            return "tools" if body.get("tools") else "request_failed"
        size = len(prompt.ids)
        if size > self._max_prompt_tokens or size + 1 >= prompt.context_tokens:
            return "prompt_too_long"
        if {reference.prompt_tokens, candidate.prompt_tokens} != {size}:
            return "tools" if body.get("tools") else "prompt_differs"
        return None

    async def _positions(
        self, server: ForcedServer, prompt: ForcedPrompt, forced: list[tuple[int, Token | None]]
    ) -> Forced:
        scored = [(place, token) for place, (_, token) in enumerate(forced) if token is not None]
        ids = [token_id for token_id, _ in forced]
        seen = await server.forced_tokens(
            prompt, ids, [place for place, _ in scored], top=self._endpoint.settings.top_logprobs
        )
        if seen is None:
            return Forced(unscored="request_failed")
        return Forced(
            reference=Tokens(msgspec.structs.replace(token, id=ids[place]) for place, token in scored),
            candidate=Tokens(
                _candidate(ids[place], token, there)
                for (place, token), there in zip(scored, seen, strict=True)
            ),
        )


async def _forced_ids(
    server: ForcedServer, model: str, reference: Observation
) -> list[tuple[int, Token | None]]:
    """Return the ids of the reference's answer, each with its token where that holds a distribution.

    A merged entry (a character of several tokens) is tokenized again. The whole is believed if the
    number of ids is the reported number of tokens, or one less (a stream leaves the end token out);
    otherwise what stands before the first merged entry is, if its bytes are the answer's text.
    """
    ids: list[tuple[int, Token | None]] = []
    certain: int | None = None
    is_merged = "tokens_merged" in reference.notes
    for token in reference.tokens:
        if token.id is not None:
            ids.append((token.id, token if token.top else None))
            continue
        if certain is None:
            certain = len(ids)
        pieces = await server.text_ids(token.text, model=model) if is_merged else None
        if not pieces:
            return ids[:certain]
        ids.extend((piece, None) for piece in pieces)
    if "logprobs_truncated" in reference.notes and certain is None:
        return ids
    count = reference.completion_tokens
    if count is not None and count - len(ids) in (0, 1):
        return ids
    certain = len(ids) if certain is None else certain
    raw = b"".join(token.raw or b"" for token in reference.tokens[:certain])
    return ids[:certain] if reference.text.encode().startswith(raw) else []


def _candidate(token_id: int, reference: Token, there: Token) -> Token:
    """Return the candidate's distribution as one of the reference's token."""
    logprob = next((item.logprob for item in there.top if item.id == token_id), None)
    return Token(reference.text, logprob, reference.raw, token_id, there.top, there.ranked)
