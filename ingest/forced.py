"""Teacher-forced scoring: the candidate's distribution at every position of the reference's own answer.

llama.cpp gives the distribution of one position a request: the prompt's token ids and the reference's ids
so far go in, one token is predicted, and the prompt cache leaves one token to compute. The ids of the
prompt come from the candidate's own template and tokenizer and are used only if their number is what both
sides reported; otherwise nothing is scored.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ingest.llama_cpp import LlamaCpp
from ingest.observation import Observation, Token
from ingest.pair import Forced, ForcedPosition
from ingest.replay_body import is_chat, is_constrained

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


class ForcedScorer:
    """Scores one candidate endpoint, one answer at a time: two at once would spoil each other's cache."""

    def __init__(self, server: LlamaCpp, *, top: int, max_tokens: int, max_prompt_tokens: int) -> None:
        self._server = server
        self._top = top
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
        props = await self._server.props()
        if props is None:
            return Forced(unscored="unsupported_engine")
        prompt = await self._prompt_ids(body, path)
        reason = self._prompt_reason(prompt, body, reference, candidate, props.context_tokens)
        if prompt is None or reason is not None:
            return Forced(unscored=reason)
        forced = await self._forced_ids(reference)
        if not forced:
            return Forced(unscored="no_token_ids")
        room = min(self._max_tokens, props.context_tokens - len(prompt) - 1)
        async with self._lock:
            return await self._positions(prompt, forced[:room])

    async def _prompt_ids(self, body: dict[str, Any], path: str) -> list[int] | None:
        if is_chat(path):
            text = await self._server.apply_template(body)
        else:
            prompt = body.get("prompt")
            text = prompt if isinstance(prompt, str) else None
        return None if text is None else await self._server.tokenize(text, is_prompt=True)

    def _prompt_reason(
        self,
        prompt: list[int] | None,
        body: dict[str, Any],
        reference: Observation,
        candidate: Observation,
        context_tokens: int,
    ) -> str | None:
        if prompt is None:
            return "tools" if body.get("tools") else "request_failed"
        if len(prompt) > self._max_prompt_tokens or len(prompt) + 1 >= context_tokens:
            return "prompt_too_long"
        if {reference.prompt_tokens, candidate.prompt_tokens} != {len(prompt)}:
            return "tools" if body.get("tools") else "prompt_differs"
        return None

    async def _forced_ids(self, reference: Observation) -> list[tuple[int, Token | None]]:
        """Return the ids of the reference's answer, each with its token where that holds a distribution.

        An entry without an id may be a character of several tokens: it is tokenized again, and believed
        if the number of tokens then is the reported one. Otherwise the answer is used up to that entry.
        """
        ids: list[tuple[int, Token | None]] = []
        sure = 0
        for token in reference.tokens:
            if token.id is not None:
                ids.append((token.id, token if token.top else None))
                continue
            if sure == 0:
                sure = len(ids) or -1
            pieces = await self._server.tokenize(token.text, is_prompt=False)
            if not pieces or "tokens_merged" not in reference.notes:
                return ids
            ids.extend((piece, None) for piece in pieces)
        if sure and len(ids) != reference.completion_tokens:
            return ids[: max(sure, 0)]
        return ids

    async def _positions(self, prompt: list[int], forced: list[tuple[int, Token | None]]) -> Forced:
        context = list(prompt)
        positions: list[ForcedPosition] = []
        for token_id, token in forced:
            if token is not None:
                seen = await self._server.next_token(context, top=self._top)
                if seen is None:
                    return Forced(
                        positions=tuple(positions), unscored=None if positions else "request_failed"
                    )
                top = seen.top[: seen.ranked]
                positions.append(
                    ForcedPosition(
                        token_id=token_id,
                        token_text=token.text,
                        reference_logprob=token.logprob,
                        candidate_logprob=next((item.logprob for item in top if item.id == token_id), None),
                        reference_top=token.top[: token.ranked],
                        candidate_top=top,
                    )
                )
            context.append(token_id)
        return Forced(positions=tuple(positions), unscored=None if positions else "no_token_ids")
