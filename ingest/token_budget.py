"""Tokens that one endpoint was made to compute, by UTC day, and the limit of a day."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime

import msgspec

from ingest.errors import BudgetError
from ingest.observation import FailureKind, Observation

BYTES_A_TOKEN = 4
"""For estimates: English text in common tokenizers; JSON around it makes the estimate a little high."""

_KEPT_DAYS = 2
_log = logging.getLogger(__name__)


class TokenUse(msgspec.Struct, frozen=True):
    """Tokens of one day. `estimated` of them were estimated, for want of a usage report."""

    prompt: int = 0
    completion: int = 0
    estimated: int = 0
    calls: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion

    def __add__(self, other: TokenUse) -> TokenUse:
        return TokenUse(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.estimated + other.estimated,
            self.calls + other.calls,
        )


class TokenBudget:
    """Counts what this process has an endpoint compute, and adds what others did. Thread-safe.

    The limit is looked at before a record is replayed, so it is overrun by what is under way then.
    """

    def __init__(
        self, name: str, tokens_per_day: int | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """None means no limit; counting goes on."""
        self._name = name
        self._limit = tokens_per_day
        self._now = now
        self._lock = threading.Lock()
        self._own: dict[date, TokenUse] = {}
        self._others: dict[date, int] = {}
        self._used_up_on: date | None = None

    def spend(self, use: TokenUse) -> None:
        """Count one call's tokens on today."""
        today = self._today()
        with self._lock:
            self._own[today] = self._own.get(today, TokenUse()) + use
            for day in sorted(self._own)[:-_KEPT_DAYS]:
                del self._own[day]

    def set_others(self, tokens: Mapping[date, int]) -> None:
        """What other processes, and earlier runs, spent on each day; replaces what was set before."""
        with self._lock:
            self._others = dict(tokens)

    def own(self) -> dict[date, TokenUse]:
        """What this process spent, by day: today and the day before."""
        with self._lock:
            return dict(self._own)

    def used(self) -> int:
        """Tokens of today, of all processes as far as known."""
        today = self._today()
        with self._lock:
            return self._own.get(today, TokenUse()).tokens + self._others.get(today, 0)

    def check(self) -> None:
        """Raise BudgetError if today's tokens are used up. A change is logged, once."""
        if self._limit is None:
            return
        today, used = self._today(), self.used()
        if used < self._limit:
            if self._used_up_on is not None:
                self._used_up_on = None
                _log.warning('endpoint "%s": a new day, its token budget is whole again', self._name)
            return
        if self._used_up_on is None:
            _log.warning(
                'endpoint "%s": the budget of %d tokens a day is used up (%d); records fail until 00:00 UTC',
                self._name,
                self._limit,
                used,
            )
        self._used_up_on = today
        raise BudgetError(
            f'endpoint "{self._name}": {used} tokens of {self._limit} are used up on {today} (UTC)'
        )

    def _today(self) -> date:
        return self._now().astimezone(UTC).date()


def estimated(prompt: int, completion: int = 0) -> TokenUse:
    """Return an estimate of one call's tokens."""
    return TokenUse(prompt, completion, prompt + completion, 1)


def use_of(observation: Observation, request_bytes: int) -> TokenUse:
    """Return the tokens of one answered call: by its usage report, else estimated from its size.

    A request that was refused (4xx) cost nothing; one that failed otherwise cost its prompt at least.
    """
    failure = observation.failure
    is_refused = failure is not None and 400 <= (failure.status or 0) < 500
    if is_refused or (failure is not None and failure.kind is FailureKind.CONTEXT_EXCEEDED):
        return TokenUse(calls=1)
    prompt, completion = observation.prompt_tokens, observation.completion_tokens
    guess_prompt = tokens_of_bytes(request_bytes)
    text = observation.text + observation.reasoning + "".join(c.arguments for c in observation.tool_calls)
    guess_completion = max(len(observation.tokens), tokens_of_bytes(len(text.encode("utf-8", "replace"))))
    return TokenUse(
        guess_prompt if prompt is None else prompt,
        guess_completion if completion is None else completion,
        (guess_prompt if prompt is None else 0) + (guess_completion if completion is None else 0),
        1,
    )


def tokens_of_bytes(size: int) -> int:
    """Return an estimate of the tokens in `size` bytes, rounded up."""
    return -(-size // BYTES_A_TOKEN)
