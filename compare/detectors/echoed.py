"""Takes the prompt off an answer that repeats it on request: prompt tokens are not the model's choices.

The completions API gives text and tokens of the prompt before those of the answer where `echo` is set,
TGI the text alone (`return_full_text`), and vLLM's chat the assistant's words that it goes on with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from compare.detectors.facts import messages_of
from compare.detectors.subject import Subject
from compare.result import Finding
from ingest.observation import Observation
from ingest.tokens import Token, Tokens

_KEYS = ("echo", "return_full_text")
_SPECIAL = re.compile(r"<[^<>\s]{1,40}>|\[[A-Z]{2,8}\]|")


class Echo(NamedTuple):
    """How much of an answer is the prompt: characters of its text and tokens of its list."""

    characters: int
    tokens: int


def without_echo(subject: Subject) -> tuple[Subject, Echo]:
    """Return the subject with the prompt taken off both sides, and what was taken off its own side.

    A request without echo, and an answer that does not begin with its prompt, are returned as they are.
    """
    body = subject.body
    if not asks_echo(body):
        return subject, Echo(0, 0)
    echo = echo_of(subject.observation, body)
    other = subject.other
    if other is not None and other.failure is None:
        other = generated(other, echo_of(other, body))
    if echo == Echo(0, 0) and other is subject.other:
        return subject, echo
    plain = {key: value for key, value in body.items() if key not in _KEYS}
    observation = generated(subject.observation, echo)
    return replace(subject, observation=observation, other=other, body=plain, shared=None), echo


def put_back(finding: Finding, echo: Echo) -> Finding:
    """Return the finding with its span counted in the whole answer again."""
    shift = {"characters": echo.characters, "tokens": echo.tokens}.get(finding.unit, 0)
    if not shift:
        return finding
    return msgspec.structs.replace(finding, start=finding.start + shift, end=finding.end + shift)


def asks_echo(body: dict[str, Any]) -> bool:
    """Whether the request wants its prompt back in front of the answer."""
    nested = body.get("parameters")
    sources = (body, nested) if isinstance(nested, dict) else (body,)
    return any(source.get(key) is True for source in sources for key in _KEYS)


def echo_of(observation: Observation, body: dict[str, Any]) -> Echo:
    """How much of the answer is the prompt.

    Told by the prompt's text; where the prompt is token ids, by the number of tokens that were not
    generated. Nothing is taken off where neither tells.
    """
    text, tokens = observation.text, observation.tokens
    said = messages_of(body)
    prompt = said[-1][1] if said else ""
    is_text = bool(prompt) and text.startswith(prompt)
    count = _not_generated(observation)
    if is_text:
        rest = text[len(prompt) :]
        if count and _spells(tokens[count:], rest):
            return Echo(len(prompt), count)
        return Echo(len(prompt), _leading(tokens, prompt) if _spells(tokens, text) else 0)
    if not count or prompt:
        return Echo(0, 0)
    spelt = "".join([token.text for token in tokens[:count] if not _SPECIAL.fullmatch(token.text)])
    return Echo(len(spelt), count) if text.startswith(spelt) else Echo(0, 0)


def generated(observation: Observation, echo: Echo) -> Observation:
    """Return the observation without its echo."""
    if echo == Echo(0, 0):
        return observation
    return msgspec.structs.replace(
        observation,
        text=observation.text[echo.characters :],
        tokens=Tokens(observation.tokens[echo.tokens :]),
    )


def without_prompt(observation: Observation, body: dict[str, Any]) -> Observation:
    """Return the observation without the prompt that `body` wants back.

    Where the request allows no generated token it wants its prompt scored, and the prompt stays.
    """
    if not asks_echo(body) or body.get("max_tokens") == 0 or observation.failure is not None:
        return observation
    return generated(observation, echo_of(observation, body))


def _not_generated(observation: Observation) -> int:
    """How many tokens of the list are beyond those that usage counts as generated, 0 if it cannot be told."""
    prompt, used = observation.prompt_tokens, observation.completion_tokens
    total = len(observation.tokens)
    if used is None or used > total:
        return 0
    return total - used if prompt is None or total - used <= prompt + 1 else 0


def _spells(tokens: Sequence[Token], text: str) -> bool:
    """Whether the tokens are the text, but for special ones and outer white space."""
    joined = "".join([token.text for token in tokens if not _SPECIAL.fullmatch(token.text)])
    return joined.strip() == text.strip() or "\ufffd" in joined


def _leading(tokens: Sequence[Token], prompt: str) -> int:
    """How many leading tokens spell the prompt, a special one before it included."""
    length = 0
    for index, token in enumerate(tokens):
        if length >= len(prompt):
            return index
        if length or not _SPECIAL.fullmatch(token.text) or prompt.startswith(token.text):
            length += len(token.text)
    return len(tokens)
