"""The whole distribution of a position from llama.cpp's server, and contexts to ask for it.

This is the truth that bounds from top-k lists are held against. A call gives one position: 4.7 MB and
0.3 to 0.5 s of one core for 49,152 tokens.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.demo.workload import WorkloadItem, workload
from ingest.llama_cpp import TEMPLATE_KEYS, WHOLE_CHARACTER
from ingest.replay_body import is_chat, is_constrained

VOCABULARY = 49_152
"""Of the packaged model."""

Floats = NDArray[np.float64]


class _Entry(msgspec.Struct):
    id: int
    logprob: float


class _Position(msgspec.Struct):
    top_logprobs: list[_Entry]


class _Completion(msgspec.Struct):
    completion_probabilities: list[_Position] = []
    tokens: list[int] = []


class _Ids(msgspec.Struct):
    tokens: list[int]


class _Prompt(msgspec.Struct):
    prompt: str


class Answer(NamedTuple):
    """The token ids of a prompt, and those of the greedy answer to it."""

    prompt: list[int]
    answer: list[int]


def post(url: str, body: dict[str, Any]) -> bytes:
    """Send JSON to a server of ours and return the body of its answer. Raises OSError."""
    request = urllib.request.Request(  # noqa: S310 - a loopback server of our own
        url, msgspec.json.encode(body), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        data: bytes = answer.read()
    return data


def reported(url: str, context: Sequence[int]) -> Floats:
    """Return log-probabilities (VOCABULARY,) in nats as the server reports them.

    Raises ValueError if a token lacks.
    """
    body = {
        "prompt": list(context),
        "n_predict": 1,
        "n_probs": VOCABULARY,
        "temperature": 0,
        "cache_prompt": True,
        "logit_bias": WHOLE_CHARACTER,
        "response_fields": ["completion_probabilities"],
    }
    answer = msgspec.json.decode(post(f"{url}/completion", body), type=_Completion)
    logprob = np.full(VOCABULARY, np.nan)
    for position in answer.completion_probabilities:
        for entry in position.top_logprobs:
            logprob[entry.id] = entry.logprob
    if np.isnan(logprob).any() or logprob.min() < -1e30:
        raise ValueError("a token of the vocabulary has no log-probability")
    return logprob


def normalised(logprob: Floats) -> Floats:
    """Bring the last axis to a sum of 1 in 64 bits: a server's own sums are 32-bit."""
    exact: Floats = logprob - np.log(np.exp(logprob).sum(axis=-1, keepdims=True))
    return exact


def tokenized(url: str, text: str, *, is_prompt: bool = True) -> list[int]:
    """Return the ids of a text, special tokens parsed; a prompt gets the start token."""
    body = {"content": text, "add_special": is_prompt, "parse_special": True}
    return msgspec.json.decode(post(f"{url}/tokenize", body), type=_Ids).tokens


def unconstrained(count: int) -> list[WorkloadItem]:
    """Return the demo's first `count` requests whose lists are the model's own distributions."""
    return [item for item in workload() if not is_constrained(item.request)][:count]


def prompt_ids(url: str, item: WorkloadItem) -> list[int]:
    """Return the ids of the prompt that the server makes of a request."""
    if not is_chat(item.endpoint):
        return tokenized(url, item.request["prompt"])
    shape = {key: item.request[key] for key in TEMPLATE_KEYS if key in item.request}
    return tokenized(url, msgspec.json.decode(post(f"{url}/apply-template", shape), type=_Prompt).prompt)


def answers(url: str, items: Sequence[WorkloadItem], max_tokens: int) -> Iterator[Answer]:
    """Yield the greedy answers of one server to requests, as token ids."""
    for item in items:
        prompt = prompt_ids(url, item)
        body = {"prompt": prompt, "n_predict": max_tokens, "temperature": 0, "return_tokens": True}
        yield Answer(prompt, msgspec.json.decode(post(f"{url}/completion", body), type=_Completion).tokens)
