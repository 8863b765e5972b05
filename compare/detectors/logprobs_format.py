"""Family `logprobs_format`: the bookkeeping of logprobs is wrong while the text may be fine.

No fault of the model: what is found here says which numbers must not be believed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.observation import Token
from ingest.settings import DetectorSettings

_NOTES = {
    "logprob_positive": "a chosen token has a logprob over 0: probably a linear probability",
    "alternatives_positive": "an alternative has a logprob over 0: probably a linear probability",
    "logprob_impossible": "a chosen token is reported as impossible",
    "logprobs_uneven": "the lists of tokens, logprobs and alternatives differ in length",
    "bytes_invalid": "the bytes of a token are not bytes",
    "odd_logprobs": "a logprob entry has an unknown shape",
}
_MASS_SLACK = 0.01  # sums of 20 rounded logprobs stay well within
_ALL_ZERO_MIN_TOKENS = 5
_LOGPROBS_ERROR = re.compile(r"logprobs", re.IGNORECASE)


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield the reader's notes and `mass_over_one`, `stub`, `all_zero`, `not_argmax`, `stale`, ..."""
    observation = subject.observation
    failure = observation.failure
    if failure is not None and subject.is_server_error and _LOGPROBS_ERROR.search(failure.message):
        yield _finding(
            subject, "refused", f"the server stumbles over logprobs: {shorten(failure.message, 80)}"
        )
    for note in observation.notes:
        if note in _NOTES:
            yield _finding(subject, note, _NOTES[note])
    tokens = observation.tokens
    if not tokens:
        return
    yield from _lists(subject, tokens)
    yield from _all_zero(subject, tokens)
    yield from _missing(subject, tokens)


def _lists(subject: Subject, tokens: tuple[Token, ...]) -> Iterable[Finding]:
    """Look at each position's list once; the first hit of each code is reported."""
    seen: dict[str, tuple[int, str]] = {}
    previous: Token | None = None
    for index, token in enumerate(tokens):
        if not token.top:
            continue
        for code, message in _of_one_list(subject, token, previous):
            seen.setdefault(code, (index, message))
        previous = token
    for code, (index, message) in seen.items():
        yield subject.finding(
            Family.LOGPROBS_FORMAT,
            code,
            f"{message}, first at token {index}",
            place="tokens",
            span=(index, index + 1),
            is_fault=False,
        )


def _of_one_list(subject: Subject, token: Token, previous: Token | None) -> Iterable[tuple[str, str]]:
    top = token.top
    possible = [entry.logprob for entry in top if entry.logprob > -math.inf]
    mass = math.fsum(math.exp(min(logprob, 1.0)) for logprob in possible)
    if mass > 1.0 + _MASS_SLACK:
        yield "mass_over_one", f"the list's probabilities add up to {mass:.2f}"
    if len(possible) == 1 and len(top) > 2 and mass > 1.0 - 1e-9 and not subject.is_constrained:
        yield "only_sentinels", f"{len(top) - 1} of {len(top)} alternatives are a sentinel for impossible"
    if any(not entry.text and entry.logprob == round(entry.logprob) for entry in top) and token.text:
        yield "stub", "an alternative has no text and a round logprob"
    if subject.is_greedy and not subject.is_constrained and token.logprob is not None:
        best = max(possible, default=-math.inf)
        if best - token.logprob > 0.5:
            yield "not_argmax", f"at temperature 0 {shorten(token.text)} was chosen against a likelier token"
    is_repeated = previous is not None and previous.top == top and previous.text != token.text
    if is_repeated and all(entry.text != token.text for entry in top):
        yield "stale", f"the list repeats the one before and lacks {shorten(token.text)}"


def _all_zero(subject: Subject, tokens: tuple[Token, ...]) -> Iterable[Finding]:
    if len(tokens) < _ALL_ZERO_MIN_TOKENS or subject.is_constrained:
        return
    if all(token.logprob == 0.0 and len(token.top) <= 1 for token in tokens):
        yield subject.finding(
            Family.LOGPROBS_FORMAT,
            "all_zero",
            f"all {len(tokens)} logprobs are exactly 0",
            place="tokens",
            span=(0, len(tokens)),
            is_fault=False,
            measured=float(len(tokens)),
            threshold=float(_ALL_ZERO_MIN_TOKENS),
        )


def _missing(subject: Subject, tokens: tuple[Token, ...]) -> Iterable[Finding]:
    """Find entries for a leading part of the answer only (beyond what the reader itself drops)."""
    observation = subject.observation
    used = observation.completion_tokens
    if (
        used is None
        or "logprobs_truncated" in observation.notes
        or observation.tool_calls
        or observation.reasoning
    ):
        return
    joined = "".join(token.text for token in tokens)
    if len(tokens) < used - 1 and len(joined) < len(observation.text) and observation.text.startswith(joined):
        yield subject.finding(
            Family.LOGPROBS_FORMAT,
            "missing",
            f"{len(tokens)} logprob entries for {used} tokens",
            is_fault=False,
            measured=float(len(tokens)),
            threshold=float(used),
        )


def _finding(subject: Subject, code: str, message: str) -> Finding:
    return subject.finding(Family.LOGPROBS_FORMAT, code, message, is_fault=False)
