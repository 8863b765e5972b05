"""Teacher-forced scoring: the candidate's distribution at every position of the reference's own answer.

llama.cpp gives the distribution of one position a prompt: the prompt's token ids and the reference's ids
so far go in, one token is predicted, and the prompt cache leaves one token to compute, so that a position
costs as much as generating a token does. The ids of the
prompt come from the candidate's own template and tokenizer and are used only if their number is what both
sides reported; otherwise nothing is scored.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ingest.llama_cpp import LlamaCpp
from ingest.observation import Observation
from ingest.pair import Forced, ForcedPosition
from ingest.replay_body import is_chat, is_constrained
from ingest.tokens import Token

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


POSITIONS_PER_CALL = 16
"""Bounds the size of a call (16 prompts of 8,192 ids are 0.8 MB) and how long the slot is held."""


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
            # One slot for all, the last: the server fills the first ones first.
            return await self._positions(prompt, forced[:room], props.slots - 1)

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

        A merged entry (a character of several tokens) is tokenized again. The whole is believed if the
        number of ids is the reported number of tokens, or one less (a stream leaves the end token out);
        otherwise what stands before the first merged entry is, if its bytes are the answer's text.
        """
        ids: list[tuple[int, Token | None]] = []
        certain: int | None = None
        for token in reference.tokens:
            if token.id is not None:
                ids.append((token.id, token if token.top else None))
                continue
            if certain is None:
                certain = len(ids)
            pieces = await self._server.tokenize(token.text, is_prompt=False)
            if not pieces or "tokens_merged" not in reference.notes:
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

    async def _positions(
        self, prompt: list[int], forced: list[tuple[int, Token | None]], slot: int
    ) -> Forced:
        context = list(prompt)
        wanted: list[tuple[int, Token, list[int]]] = []
        for token_id, token in forced:
            if token is not None:
                wanted.append((token_id, token, list(context)))
            context.append(token_id)
        if not wanted:
            return Forced(unscored="no_token_ids")
        positions: list[ForcedPosition] = []
        for start in range(0, len(wanted), POSITIONS_PER_CALL):
            part = wanted[start : start + POSITIONS_PER_CALL]
            seen = await self._server.next_tokens([ids for _, _, ids in part], top=self._top, slot=slot)
            if seen is None:
                return Forced(unscored="request_failed")
            positions.extend(
                _position(token_id, token, there)
                for (token_id, token, _), there in zip(part, seen, strict=True)
            )
        return Forced(positions=tuple(positions))


def _position(token_id: int, reference: Token, candidate: Token) -> ForcedPosition:
    top = candidate.top[: candidate.ranked]
    return ForcedPosition(
        token_id=token_id,
        token_text=reference.text,
        reference_logprob=reference.logprob,
        candidate_logprob=next((item.logprob for item in top if item.id == token_id), None),
        reference_top=reference.top[: reference.ranked],
        candidate_top=top,
    )
