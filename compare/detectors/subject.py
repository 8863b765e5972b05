"""What a detector looks at: one side of a pair with its request and the other side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from compare.detectors.facts import AnswerFacts, Part, RequestFacts
from compare.detectors.top_lists import TopLists
from compare.result import Family, Finding, Side
from ingest.observation import FailureKind, Observation
from ingest.replay_body import is_constrained, is_greedy
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


class Shared(NamedTuple):
    """Facts worked out once for both sides of a pair."""

    request: RequestFacts
    answer: AnswerFacts
    other: AnswerFacts | None


@dataclass(frozen=True)
class Subject:
    """One observation to be examined, with all that a detector may look at.

    `other` is the other side's observation, None where one answer is inspected alone. `expected` is
    what structure the request asks for, None for free text. `client_body` is the request
    as the client sent it, where the replayed one differs; `shared` saves work where a pair is judged.
    """

    observation: Observation
    side: Side
    body: dict[str, Any]
    other: Observation | None = None
    expected: ExpectedStructure | None = None
    vocabulary_size: int | None = None
    client_body: dict[str, Any] | None = None
    shared: Shared | None = None

    @cached_property
    def request(self) -> RequestFacts:
        """What the request says."""
        return self.shared.request if self.shared else RequestFacts(self.body)

    @cached_property
    def answer(self) -> AnswerFacts:
        """What this side's text and tokens show."""
        return self.shared.answer if self.shared else AnswerFacts(self.observation)

    @cached_property
    def other_answer(self) -> AnswerFacts | None:
        """The same of the other side, None where it gave no answer."""
        if self.other is None or self.other.failure is not None:
            return None
        if self.shared is not None and self.shared.other is not None:
            return self.shared.other
        return AnswerFacts(self.other)

    @property
    def prompt(self) -> str:
        """Every text of the request, joined by new lines: messages of all roles, or the prompt."""
        return self.request.prompt

    @property
    def last_user_text(self) -> str:
        """The last user message, or the whole prompt of a completion; empty if there is none."""
        return self.request.last_user_text

    @property
    def parts(self) -> tuple[Part, ...]:
        """The generated texts: the answer, the reasoning and each tool call's arguments."""
        return self.answer.parts

    @property
    def lists(self) -> TopLists:
        """Numbers of the tokens' lists of alternatives."""
        return self.answer.lists

    @property
    def other_finished(self) -> bool:
        """Whether the other side answered and ended its answer itself."""
        return (
            self.other is not None
            and self.other.failure is None
            and (self.other.finish_reason or "").lower() in _FINISHED
        )

    @property
    def is_own_limit(self) -> bool:
        """Whether the answer was ended by the limit that the request itself set."""
        return self.is_limited and self.token_limit is not None and self.reached_limit is not False

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

    @property
    def asks_for_nothing(self) -> bool:
        """Whether the request allows no generated token, and none came: it wants its prompt scored."""
        is_zero = any(self.body.get(key) == 0 and self.body[key] is not False for key in _LIMIT_KEYS)
        return is_zero and not self.observation.completion_tokens and not self.parts

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
        return is_constrained(self.body)

    @cached_property
    def is_greedy(self) -> bool:
        """Whether the request says temperature 0."""
        return is_greedy(self.body)

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


__all__ = ["Part", "Shared", "Subject", "shorten"]


def shorten(text: str, limit: int = 40) -> str:
    """Quote at most `limit` characters of model output for a message, control characters escaped."""
    return repr(text if len(text) <= limit else text[:limit] + "…")
