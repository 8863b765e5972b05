"""What only vLLM's server offers: its tokenizer, and the distribution at every token of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ingest.endpoint import Endpoint
from ingest.forced_server import ForcedPrompt
from ingest.logprobs import Head, make_token
from ingest.replay_body import is_chat
from ingest.tokens import Token
from ingest.wire import Listed

CHAT_KEYS = (
    "messages",
    "tools",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "chat_template",
    "chat_template_kwargs",
)
"""Keys of a chat body that `/tokenize` takes; it puts them through the template as the chat route does."""


class _Listed(msgspec.Struct, gc=False):
    logprob: float | None = None
    decoded_token: str | None = None


class _Choice(msgspec.Struct):
    # Each position stays undecoded until it is wanted: those of the prompt are 11 MB at 8,192 tokens.
    prompt_logprobs: list[msgspec.Raw] | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_COMPLETION = msgspec.json.Decoder(_Completion)
_POSITION = msgspec.json.Decoder(dict[str, _Listed] | None)


class Vllm:
    """Calls of one vLLM server, and its ForcedServer. Every method raises EndpointAwayError when it is away.

    One call scores a whole answer: the prompt's ids and the forced ids go in as the prompt, and
    `prompt_logprobs` gives the distribution at each. They are computed anew, past the prefix cache.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def version(self) -> str | None:
        """Return the server's version, None if it is no vLLM."""
        status, value = await self._endpoint.request_json("GET", "/version")
        version = value.get("version") if status == 200 and isinstance(value, dict) else None
        return version if isinstance(version, str) else None

    async def forced_prompt(self, body: dict[str, Any], path: str) -> ForcedPrompt | None:
        """Return the prompt that the server's template and tokenizer make of a body."""
        if is_chat(path):
            # Null is no default there.
            asked = {key: body[key] for key in CHAT_KEYS if body.get(key) is not None}
        elif isinstance(body.get("prompt"), str):
            asked = {key: body[key] for key in ("prompt", "add_special_tokens") if body.get(key) is not None}
        else:
            return None
        return await self._tokenize(asked, str(body.get("model", "")))

    async def text_ids(self, text: str, *, model: str) -> list[int] | None:
        """Return the ids of a piece of an answer."""
        read = await self._tokenize({"prompt": text, "add_special_tokens": False}, model)
        return None if read is None else read.ids

    async def forced_tokens(
        self, prompt: ForcedPrompt, forced: Sequence[int], wanted: Sequence[int], *, top: int
    ) -> list[Token] | None:
        """Return the distributions at the wanted places, all in one call."""
        end = wanted[-1] + 1
        asked = {
            "model": prompt.model,
            "prompt": [*prompt.ids, *forced[:end]],
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": top,
        }
        cost = len(prompt.ids) + end + 1
        status, answer = await self._endpoint.request_bytes("POST", "/v1/completions", asked, tokens=cost)
        if status != 200:
            return None
        try:
            (choice,) = _COMPLETION.decode(answer).choices
            listed = choice.prompt_logprobs or []
            if len(listed) != len(prompt.ids) + end:
                return None
            asked_for = listed[len(prompt.ids) :]
            read = [_token(_POSITION.decode(asked_for[place]), forced[place], top) for place in wanted]
        except (msgspec.MsgspecError, ValueError):
            return None
        tokens = [token for token in read if token is not None]
        return tokens if len(tokens) == len(read) else None

    async def _tokenize(self, asked: dict[str, Any], model: str) -> ForcedPrompt | None:
        status, value = await self._endpoint.request_json("POST", "/tokenize", {"model": model, **asked})
        if status != 200 or not isinstance(value, dict):
            return None
        ids, limit = value.get("tokens"), value.get("max_model_len")
        if not isinstance(ids, list) or not all(isinstance(item, int) for item in ids):
            return None
        return ForcedPrompt(ids, limit, model) if isinstance(limit, int) else None


def _token(position: dict[str, _Listed] | None, forced: int, top: int) -> Token | None:
    """Read one position: the `top` most likely tokens, and the forced one wherever it ranks.

    None where the forced token is missing: then the server did not score what it was asked to.
    """
    if position is None or (own := position.get(str(forced))) is None:
        return None
    listed = [
        Listed(item.decoded_token or "", item.logprob, _bytes(item.decoded_token), int(key))
        for key, item in position.items()
    ]
    # The server writes the forced token first, wherever it ranks.
    listed.sort(key=lambda item: float("inf") if item.logprob is None else -item.logprob)
    head = Head(own.decoded_token or "", own.logprob, _raw(own.decoded_token), forced)
    return make_token(head, listed, top, {})


def _raw(text: str | None) -> bytes | None:
    """Return a token's bytes; U+FFFD and an empty text stand for bytes that are no character alone."""
    return text.encode("utf-8", "replace") if text and "\ufffd" not in text else None


def _bytes(text: str | None) -> list[int] | None:
    raw = _raw(text)
    return None if raw is None else list(raw)
