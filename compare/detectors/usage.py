"""Family `truncation`, by the books: finish reasons and token counts that contradict content and request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_ABORTED = (
    "abort",
    "aborted",
    "error",
    "cancelled",
    "canceled",
    "failed",
    "incomplete",
    "timeout",  # TensorRT-LLM
    "connection_closed",  # Ollama
)
_STOPPED_LOOP = "repetition"  # vLLM, where the request has `repetition_detection`
_FILTERED = ("content_filter", "safety", "recitation")
# Bounded: the engine remembers each turn of the first repeat, 1.2 GB for a run of 15 MiB.
_REPEATED = re.compile(r"(.)\1{3,999}|\s{2,}", re.DOTALL)
_LIMIT_SLACK = 8  # speculative decoding may overshoot by a draft


def detect_usage(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `aborted`, `filtered`, `limit_ignored`, `prompt_cut` and `repetition/stopped_loop`."""
    observation = subject.observation
    reason = (observation.finish_reason or "").lower()
    if reason in _ABORTED or reason in _FILTERED:
        is_aborted = reason in _ABORTED
        yield subject.finding(
            Family.TRUNCATION,
            "aborted" if is_aborted else "filtered",
            f"the server ended the answer with {observation.finish_reason!r}",
            is_fault=is_aborted,
        )
    if reason == _STOPPED_LOOP:
        yield subject.finding(
            Family.REPETITION, "stopped_loop", "the server ended the answer because it repeats itself"
        )
    limit, used = subject.token_limit, observation.completion_tokens
    if limit is not None and used is not None and used > limit + max(_LIMIT_SLACK, limit // 10):
        yield subject.finding(
            Family.TRUNCATION,
            "limit_ignored",
            f"{used} tokens were generated although the request allows {limit}",
            is_fault=False,
            measured=float(used),
            threshold=float(limit),
        )
    if "prompt_truncated" in observation.notes:
        yield subject.finding(
            Family.TRUNCATION, "prompt_cut", "the server says that it cut the prompt or shifted the context"
        )
    else:
        yield from _prompt_cut(subject, settings)


def _prompt_cut(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Find a prompt that this side's server shortened without a word."""
    own = subject.observation.prompt_tokens
    if not own:
        return
    other = (
        subject.other.prompt_tokens if subject.other is not None and subject.other.failure is None else None
    )
    least = settings.prompt_cut_share * other if other else 0.0
    if other and own < least and other - own >= settings.prompt_cut_min_tokens:
        yield subject.finding(
            Family.TRUNCATION,
            "prompt_cut",
            f"the prompt counts {own} tokens here and {other} on the other side",
            measured=float(own),
            threshold=least,
        )
    elif len(subject.prompt) >= settings.prompt_cut_min_characters:
        # Long runs make long tokens: they are counted short.
        characters = len(_REPEATED.sub("  ", subject.prompt))
        if characters > settings.prompt_cut_characters_a_token * own:
            yield subject.finding(
                Family.TRUNCATION,
                "prompt_cut",
                f"a prompt of {len(subject.prompt)} characters counts {own} tokens",
                measured=len(subject.prompt) / own,
                threshold=settings.prompt_cut_characters_a_token,
            )
