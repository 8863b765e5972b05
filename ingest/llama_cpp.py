"""What only llama.cpp's server offers: its template and tokenizer, and the distribution at one position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ingest.endpoint import Endpoint
from ingest.forced_server import ForcedPrompt
from ingest.logprobs import read_entry
from ingest.replay_body import is_chat
from ingest.tokens import Token

POSITIONS_PER_CALL = 16
"""Bounds the size of a call (16 prompts of 8,192 ids are 0.8 MB) and how long the slot is held."""

WHOLE_CHARACTER = [["a", 100.0]]
"""A bias that makes the server choose a whole character. Where it would choose a piece of one (Chinese,
emoji), it lists nothing; what it lists are logprobs before any bias."""

TEMPLATE_KEYS = (
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "json_schema",
    "chat_template_kwargs",
    "reasoning_format",
    "add_generation_prompt",
    "continue_final_message",
)
"""Keys of a chat body that shape the prompt; `/apply-template` reads them as the chat route does."""


class Props(msgspec.Struct, frozen=True):
    """What `/props` says: the context of one slot, how many slots there are, and the build, if told."""

    context_tokens: int
    slots: int
    build: str = ""


class LlamaCpp:
    """Calls of one llama.cpp server, and its ForcedServer. All raise EndpointAwayError when it is away.

    It gives the distribution of one position a prompt: the prompt's ids and the forced ids so far go in,
    one token is predicted, and the prompt cache leaves one token to compute, so that a position costs as
    much as generating a token does.

    Methods that return None there mean: the server refused, or answered in another shape.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._props: Props | None = None

    async def props(self) -> Props | None:
        """Return the server's properties, or None if it is no llama.cpp server. Asked once if it is."""
        if self._props is None:
            status, value = await self._endpoint.request_json("GET", "/props")
            if status == 200 and isinstance(value, dict):
                settings = value.get("default_generation_settings")
                context = settings.get("n_ctx") if isinstance(settings, dict) else None
                slots = value.get("total_slots")
                if isinstance(context, int) and isinstance(slots, int):
                    build = value.get("build_info")
                    self._props = Props(context, slots, build if isinstance(build, str) else "")
        return self._props

    async def forced_prompt(self, body: dict[str, Any], path: str) -> ForcedPrompt | None:
        """Return the prompt that the server's template and tokenizer make of a body."""
        props = await self.props()
        if is_chat(path):
            text = await self.apply_template(body)
        else:
            prompt = body.get("prompt")
            text = prompt if isinstance(prompt, str) else None
        ids = None if text is None else await self.tokenize(text, is_prompt=True)
        if ids is None or props is None:
            return None
        return ForcedPrompt(ids, props.context_tokens, str(body.get("model", "")))

    async def text_ids(self, text: str, *, model: str) -> list[int] | None:
        """Return the ids of a piece of an answer."""
        return await self.tokenize(text, is_prompt=False)

    async def forced_tokens(
        self, prompt: ForcedPrompt, forced: Sequence[int], wanted: Sequence[int], *, top: int
    ) -> list[Token] | None:
        """Return the distributions at the wanted places, some places a call.

        The prompt is read anew and in one piece, as it is for an answer without a prompt cache. Taken from
        the cache of an earlier answer but for its last token, it gives other last bits: the same weights
        then showed a KL of 0.0017 nats against themselves, now 0 (seen).
        """
        props = await self.props()
        if props is None:
            return None
        # One slot for all, the last: the server fills the first ones first.
        slot = props.slots - 1
        seen = await self.next_tokens([prompt.ids], top=top, slot=slot, use_cache=False)
        tokens: list[Token] = []
        if wanted and wanted[0] == 0 and seen is not None:
            tokens, wanted = seen, wanted[1:]
        for start in range(0, len(wanted), POSITIONS_PER_CALL):
            if seen is None:
                break
            contexts = [
                [*prompt.ids, *forced[:place]] for place in wanted[start : start + POSITIONS_PER_CALL]
            ]
            seen = await self.next_tokens(contexts, top=top, slot=slot)
            tokens.extend(seen or ())
        return None if seen is None else tokens

    async def apply_template(self, body: dict[str, Any]) -> str | None:
        """Return the prompt text that the chat route makes of a chat body."""
        asked = {key: body[key] for key in TEMPLATE_KEYS if key in body}
        status, value = await self._endpoint.request_json("POST", "/apply-template", asked)
        prompt = value.get("prompt") if status == 200 and isinstance(value, dict) else None
        return prompt if isinstance(prompt, str) else None

    async def tokenize(self, text: str, *, is_prompt: bool) -> list[int] | None:
        """Return token ids. A prompt gets its special tokens parsed and the start token added."""
        asked = {"content": text, "add_special": is_prompt, "parse_special": is_prompt}
        status, value = await self._endpoint.request_json("POST", "/tokenize", asked)
        tokens = value.get("tokens") if status == 200 and isinstance(value, dict) else None
        if not isinstance(tokens, list) or not all(isinstance(item, int) for item in tokens):
            return None
        return tokens

    async def next_tokens(
        self, contexts: list[list[int]], *, top: int, slot: int, use_cache: bool = True
    ) -> list[Token] | None:
        """Return for each context the most likely next token and the `top` most likely ones.

        The logprobs are those before any sampling, mask or bias. All contexts go in one call to one slot:
        where each begins with its predecessor, the cache leaves one token to compute.
        """
        asked: dict[str, Any] = {
            "prompt": contexts,
            "n_predict": 1,
            "n_probs": top,
            "temperature": 0,
            "cache_prompt": use_cache,
            "id_slot": slot,
            "response_fields": ["completion_probabilities"],
        }
        # Each place costs the token that is read and the one that is predicted, and what no cache holds.
        cost = 2 * len(contexts) + (0 if use_cache else sum(map(len, contexts)))
        seen = await self._next_tokens(asked, cost)
        missing = [place for place, token in enumerate(seen or ()) if token is None]
        if seen is None or not missing:
            return None if seen is None else [token for token in seen if token is not None]
        again = await self._next_tokens(
            asked | {"prompt": [contexts[place] for place in missing], "logit_bias": WHOLE_CHARACTER},
            2 * len(missing),
        )
        for place, token in zip(missing, again or (), strict=False):
            seen[place] = token
        found = [token for token in seen if token is not None]
        return found if len(found) == len(contexts) else None

    async def _next_tokens(self, asked: dict[str, Any], cost: int) -> list[Token | None] | None:
        """Return a token for each prompt, None for one without a list. `cost` is in tokens, about."""
        status, value = await self._endpoint.request_json("POST", "/completion", asked, tokens=cost)
        answers = [value] if isinstance(value, dict) else value
        if status != 200 or not isinstance(answers, list) or len(answers) != len(asked["prompt"]):
            return None
        tokens: list[Token | None] = []
        for answer in answers:
            if not isinstance(answer, dict):
                return None
            entries = answer.get("completion_probabilities")
            listed = entries if isinstance(entries, list) else []
            tokens.append(
                read_entry(msgspec.json.encode(listed[0]), asked=asked["n_probs"], notes={})
                if listed
                else None
            )
        return tokens


async def vocabulary_size(endpoint: Endpoint) -> int | None:
    """Return the vocabulary's size where the server tells it (llama.cpp: `/v1/models`), else None.

    Raises EndpointAwayError.
    """
    status, value = await endpoint.request_json("GET", "/v1/models")
    if status != 200 or not isinstance(value, dict) or not isinstance(value.get("data"), list):
        return None
    for model in value["data"]:
        meta = model.get("meta") if isinstance(model, dict) else None
        size = meta.get("n_vocab") if isinstance(meta, dict) else None
        if isinstance(size, int) and size > 0:
            return size
    return None
