"""Family `logprobs_format`: the bookkeeping of logprobs is wrong while the text may be fine.

No fault of the model: what is found here says which numbers must not be believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.alternative import Alternative
from ingest.notes import NOTES
from ingest.settings import DetectorSettings
from ingest.tokens import NO_KEY, Tokens, key_of

_NOTED = (
    "logprob_positive",
    "logprob_impossible",
    "logprob_differs",
    "alternatives_positive",
    "alternatives_conflict",
    "alternatives_stale",
    "alternatives_over_asked",
    "logprobs_all_zero",
    "logprobs_filtered",
    "logprobs_uneven",
    "logprobs_resent",
    "odd_logprobs",
    "bytes_invalid",
    "bytes_byte_level",
)
"""What the reader notes and is no mere matter of dialect."""
_MASS_SLACK = 0.01  # sums of 20 rounded logprobs stay well within
_ALL_ZERO_MIN_TOKENS = 5
_NOT_ARGMAX_NATS = 0.5  # a tie may be broken either way
_STUB_POSITIONS = 4  # a stub stands at every position, and so does a nameless list
_NAMELESS_MIN_ENTRIES = 2  # one entry without text may be the end mark
_KEY_OF_NOTHING = key_of(b"")
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
        if note in _NOTED:
            yield _finding(subject, note, NOTES[note])
    tokens = observation.tokens
    if not tokens:
        return
    yield from _lists(subject, tokens)
    yield from _all_zero(subject, tokens)
    yield from _missing(subject, tokens)
    yield from detect_misspelt(subject)


def _lists(subject: Subject, tokens: Tokens) -> Iterable[Finding]:
    """Look at each position's list; the first hit of each code is reported."""
    lists = subject.lists
    over = lists.mass > 1.0 + _MASS_SLACK
    if over.any():
        mass = float(lists.mass[over][0])
        yield _at(
            subject, "mass_over_one", lists.position[over], f"the list's probabilities add up to {mass:.2f}"
        )
    if not subject.is_constrained:
        if lists.has_impossible:
            only = (lists.possible == 1) & (lists.size > 2) & (lists.mass > 1.0 - 1e-9)
            if only.any():
                yield _at(
                    subject,
                    "only_sentinels",
                    lists.position[only],
                    "all alternatives are a sentinel for impossible",
                )
        if subject.is_greedy:
            lower = lists.best > subject.answer.logprobs[lists.position] + _NOT_ARGMAX_NATS
            if lower.any():
                yield _at(
                    subject,
                    "not_argmax",
                    lists.position[lower],
                    "temperature 0 chose against a likelier token",
                )
    yield from _without_names(subject, tokens)
    for index in lists.repeated():
        previous, token = tokens[index - 1], tokens[index]
        if (
            previous.text != token.text
            and previous.top == token.top
            and all(entry.text != token.text for entry in token.top)
        ):
            yield _at(
                subject, "stale", [index], f"the list is the one before and lacks {shorten(token.text)}"
            )
            break


def _without_names(subject: Subject, tokens: Tokens) -> Iterable[Finding]:
    """Find entries that stand for no token: they have no text and a round logprob, or nothing at all."""
    columns = tokens.columns
    entries = slice(0, int(columns.start[: _STUB_POSITIONS + 1][-1]))
    keys = columns.top_key[entries]
    if ((keys != NO_KEY) & (keys != _KEY_OF_NOTHING)).all():
        return  # each has its bytes
    first = [tokens[index] for index in range(min(_STUB_POSITIONS, len(tokens)))]
    for index, token in enumerate(first):
        if token.text and any(not e.text and e.logprob == round(max(e.logprob, -1e9)) for e in token.top):
            yield _at(subject, "stub", [index], "an alternative has no text and a round logprob")
            break
    for index, token in enumerate(first):
        if token.text and len(token.top) >= _NAMELESS_MIN_ENTRIES and not any(map(_is_named, token.top)):
            yield _at(subject, "nameless", [index], "no alternative has a text, bytes or an id")
            break


def _is_named(entry: Alternative) -> bool:
    return bool(entry.text) or entry.id is not None or bool(entry.raw)


def _at(subject: Subject, code: str, indices: NDArray[np.int64] | list[int], message: str) -> Finding:
    first = int(indices[0])
    return subject.finding(
        Family.LOGPROBS_FORMAT,
        code,
        f"{message}, at {len(indices)} positions, first at token {first}",
        place="tokens",
        span=(first, int(indices[-1]) + 1),
        is_fault=False,
        measured=float(len(indices)),
        threshold=1.0,
    )


def _all_zero(subject: Subject, tokens: Tokens) -> Iterable[Finding]:
    if len(tokens) < _ALL_ZERO_MIN_TOKENS or subject.is_constrained:
        return
    if not subject.answer.logprobs.any() and not (subject.lists.size > 1).any():
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


def _missing(subject: Subject, tokens: Tokens) -> Iterable[Finding]:
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
    if len(tokens) >= used - 1:
        return
    joined = "".join(tokens.texts)
    if len(joined) < len(observation.text) and observation.text.startswith(joined):
        yield subject.finding(
            Family.LOGPROBS_FORMAT,
            "missing",
            f"{len(tokens)} logprob entries for {used} tokens",
            is_fault=False,
            measured=float(len(tokens)),
            threshold=float(used),
        )


def detect_misspelt(subject: Subject) -> Iterable[Finding]:
    """Find tokens that do not spell the answer: entries repeated, shifted, or of another answer."""
    observation, tokens = subject.observation, subject.observation.tokens
    text = observation.text
    if len(tokens) < 2 or observation.tool_calls or observation.reasoning or not text.strip():
        return
    if "tokens_as_ids" in observation.notes or "logprobs_truncated" in observation.notes:
        return
    plain = "".join(tokens.texts)
    if _spells(plain, text):
        return
    raw = b"".join(
        [token.text.encode("utf-8", "replace") if token.raw is None else token.raw for token in tokens]
    )
    if _spells(raw.decode("utf-8", "replace"), text):
        return
    yield _finding(
        subject, "misspelt", f"the tokens spell {shorten(plain, 24)}, the text is {shorten(text, 24)}"
    )


def _spells(joined: str, text: str) -> bool:
    """Whether tokens are the text: servers strip it, keep the end mark, or list a leading part only."""
    return text.strip() in joined or text.lstrip().startswith(joined.strip()) or "\ufffd" in joined


def _finding(subject: Subject, code: str, message: str) -> Finding:
    return subject.finding(Family.LOGPROBS_FORMAT, code, message, is_fault=False)
