"""What a detector looks at: one side of a pair with its request and the other side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from compare.detectors.top_lists import TopLists, top_lists
from compare.result import Family, Finding, Side
from ingest.observation import FailureKind, Observation
from ingest.request import ExpectedStructure

_FINISHED = frozenset(
    {
        "stop",
        "eos",
        "eos_token",
        "end_turn",
        "stop_sequence",
        "stop_sequence_hit",
        "tool_calls",
        "function_call",
    }
)
_LIMITED = frozenset({"length", "max_tokens", "limit", "max_output_tokens", "model_length"})
_LIMIT_KEYS = (
    "max_completion_tokens",
    "max_tokens",
    "max_output_tokens",
    "num_predict",
    "n_predict",
    "max_new_tokens",
)
_CONSTRAINT_KEYS = (
    "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
    "json_schema", "regex", "ebnf", "grammar", "format",
)  # fmt: skip


class Part(NamedTuple):
    """One stretch of generated text. `place` names it for a person: `text`, `reasoning`, ..."""

    place: str
    text: str


@dataclass(frozen=True)
class Subject:
    """One observation to be examined, with all that a detector may look at.

    `other` is the other side's observation, None where one answer is inspected alone. `expected` is
    what structure the request asks for, None for free text.
    """

    observation: Observation
    side: Side
    body: dict[str, Any]
    other: Observation | None = None
    expected: ExpectedStructure | None = None

    @cached_property
    def prompt(self) -> str:
        """Every text of the request, joined by new lines: messages of all roles, or the prompt."""
        texts = [text for _, text in _messages(self.body)]
        return "\n".join(texts)

    @cached_property
    def last_user_text(self) -> str:
        """The last user message, or the whole prompt of a completion; empty if there is none."""
        users = [text for role, text in _messages(self.body) if role == "user"]
        return users[-1] if users else ""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The generated texts: the answer, the reasoning and each tool call's arguments."""
        observation = self.observation
        parts = [Part("text", observation.text), Part("reasoning", observation.reasoning)]
        for number, call in enumerate(observation.tool_calls):
            parts.append(Part(f"arguments of tool call {number}", call.arguments))
        return tuple(part for part in parts if part.text)

    @cached_property
    def token_limit(self) -> int | None:
        """The request's own limit of generated tokens, None if it sets none (-1 means none)."""
        options = self.body.get("options")
        for source in (self.body, options if isinstance(options, dict) else {}):
            for key in _LIMIT_KEYS:
                value = source.get(key)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
        return None

    @cached_property
    def reached_limit(self) -> bool | None:
        """Whether usage shows that the request's own limit was used up; None if it cannot be told."""
        used = self.observation.completion_tokens
        if self.token_limit is None or used is None:
            return None
        return used >= self.token_limit

    @cached_property
    def is_limited(self) -> bool:
        """Whether the server says that a limit ended the answer."""
        return (self.observation.finish_reason or "").lower() in _LIMITED

    @cached_property
    def is_finished(self) -> bool:
        """Whether the model ended the answer itself, and did not merely use up its limit."""
        if self.observation.failure is not None:
            return False
        return (self.observation.finish_reason or "").lower() in _FINISHED

    @cached_property
    def is_constrained(self) -> bool:
        """Whether decoding was masked (schema, grammar, choice, forced tool): logits lists are too."""
        if any(self.body.get(key) for key in _CONSTRAINT_KEYS):
            return True
        asked = self.body.get("response_format")
        if isinstance(asked, dict) and asked.get("type") not in (None, "text"):
            return True
        choice = self.body.get("tool_choice")
        return choice == "required" or isinstance(choice, dict)

    @cached_property
    def is_greedy(self) -> bool:
        """Whether the request says temperature 0."""
        temperature = self.body.get("temperature")
        return isinstance(temperature, int | float) and temperature == 0

    @cached_property
    def lists(self) -> TopLists:
        """Numbers of the tokens' lists of alternatives, computed once for all detectors."""
        return top_lists(self.observation.tokens)

    @property
    def has_text_to_judge(self) -> bool:
        """False where the endpoint refused or broke before a word came."""
        return self.observation.failure is None or bool(self.parts or self.observation.tokens)

    @property
    def is_server_error(self) -> bool:
        """Whether the endpoint answered with an error instead of an answer."""
        failure = self.observation.failure
        return failure is not None and failure.kind in (FailureKind.HTTP_ERROR, FailureKind.ERROR_IN_STREAM)

    def finding(
        self,
        family: Family,
        code: str,
        message: str,
        *,
        place: str = "none",
        span: tuple[int, int] = (0, 0),
        is_fault: bool = True,
        measured: float | None = None,
        threshold: float | None = None,
    ) -> Finding:
        """Make a finding on this side.

        A span of `place` "text" is counted in characters of the answer's text and one of
        "tokens" in its tokens; any other place (reasoning, arguments) is named in the message only,
        because a span must never point into the wrong text.
        """
        unit: Literal["characters", "tokens", "none"] = "none"
        if place in ("text", "tokens"):
            unit = "characters" if place == "text" else "tokens"
        else:
            span = (0, 0)
            if place != "none":
                message = f"{message} (in the {place})"
        return Finding(
            family=family,
            code=code,
            side=self.side,
            message=message,
            is_fault=is_fault,
            unit=unit,
            start=span[0],
            end=span[1],
            measured=measured,
            threshold=threshold,
        )


def shorten(text: str, limit: int = 40) -> str:
    """Quote at most `limit` characters of model output for a message, control characters escaped."""
    return repr(text if len(text) <= limit else text[:limit] + "…")


def _messages(body: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict):
            role = message.get("role")
            found.append((role if isinstance(role, str) else "", _content_text(message.get("content"))))
    for key in ("prompt", "inputs", "input"):
        if text := _content_text(body.get(key)):
            found.append(("user", text))
    return found


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts: list[str] = []
    for item in content:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            texts.append(item["text"])
    return "\n".join(texts)
