"""Family `logits`: distributions that no healthy model reports, stalls, and servers that say so themselves.

An impossible *alternative* is normal under a mask (schema, grammar, choice). What no mask explains is
a list with nothing possible in it, an emitted token that was impossible, or a list that holds
impossible entries, hence all the mass there is, and still does not add up to one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

from compare.detectors.entropy_runs import common_prefix, detect_runs
from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.observation import FailureKind
from ingest.settings import DetectorSettings
from ingest.tokens import Tokens

_NUMERIC_ERROR = re.compile(
    r"probability tensor|\bnans?\b|\binf\b|`inf`|non-?finite|not finite|invalid (?:logits|probabilit)"
    r"|logits? (?:contain|are|is|processor produced)"
    r"|(?:fp16|bf16|float16|half|numeric\w*|exp|softmax|logits?)\W+(?:\w+\W+){0,2}(?:over|under)flow"
    r"|(?:over|under)flow (?:encountered|in)|softmax|multinomial"
    r"|fail\w* to sample|sampl\w+ (?:failed|error)|no (?:valid|candidate) tokens?|device-side assert"
    r"|out of range float|all (?:logits|tokens|candidates) (?:are )?(?:masked|impossible|-?inf)",
    re.IGNORECASE,
)
_NAN_NOTES = ("logprob_nan", "alternatives_nan")
_SAYS_NOTHING = re.compile(r"^\W*(?:internal server error)?\W*$", re.IGNORECASE)
_STALLS = (FailureKind.FIRST_TOKEN_TIMEOUT, FailureKind.IDLE_TIMEOUT, FailureKind.TOTAL_TIMEOUT)
_SAYS_STALL = re.compile(
    r"time[ds]?[-_ ]?out|\bstall(?:s|ed|ing)?\b|\bh(?:ang(?:s|ing)?|ung)\b"
    r"|\bno (?:more |further |new )?(?:data|tokens?|bytes|chunks?|events?)\b",
    re.IGNORECASE,
)
_FEW_TOKENS = 2


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `numeric_error`, `stall`, `nan`, `all_impossible`, `chosen_impossible`, `missing_mass`, ..."""
    yield from _server_error(subject)
    yield from _stall(subject)
    tokens = subject.observation.tokens
    if not tokens:
        return
    if notes := [note for note in subject.observation.notes if note in _NAN_NOTES]:
        # The reader drops such values; no mask and no rounding makes a NaN.
        yield subject.finding(Family.LOGITS, "nan", f"a logprob is not a number ({', '.join(notes)})")
    has_impossible = subject.lists.has_impossible
    if has_impossible:
        yield from _all_impossible(subject)
    if not subject.is_constrained:
        # Under a mask the list may be taken before or after it: neither contradicts the token.
        yield from _chosen_impossible(subject, tokens)
        if has_impossible:
            yield from _missing_mass(subject, settings)
        yield from detect_runs(subject, settings)
        yield from _improbable(subject, settings)


def _server_error(subject: Subject) -> Iterable[Finding]:
    failure = subject.observation.failure
    if failure is None or not subject.is_server_error:
        return
    if _NUMERIC_ERROR.search(failure.message):
        yield subject.finding(
            Family.LOGITS,
            "numeric_error",
            f"the server reports a broken distribution: {shorten(failure.message, 80)}",
        )
    elif failure.status == 500 and _wants_logprobs(subject) and _SAYS_NOTHING.match(_words(failure.message)):
        yield subject.finding(
            Family.LOGITS,
            "error_with_logprobs",
            "the server fails without a word on a request that asks for logprobs",
        )


def _stall(subject: Subject) -> Iterable[Finding]:
    """Find a sampler that stopped: no token for the set time, half-way or while the other side answered.

    A connection that broke off is none, unless whoever cut it says that it was for want of data.
    """
    failure = subject.observation.failure
    if failure is None:
        return
    is_cut_by_time = failure.kind is FailureKind.CUT_STREAM and _SAYS_STALL.search(failure.message)
    if failure.kind not in _STALLS and not is_cut_by_time:
        return
    characters = sum(len(part.text) for part in subject.parts)
    tokens = len(subject.observation.tokens)
    other_answered = subject.other is not None and subject.other.failure is None
    if not characters and not tokens and not other_answered:
        return
    came = f"{characters} characters" if characters or not tokens else f"{tokens} tokens without text"
    if failure.kind is FailureKind.TOTAL_TIMEOUT:
        what = f"the answer was not finished in time, after {came}"
    elif characters or tokens:
        what = f"no token came any more after {came}"
    else:
        what = "no token came at all"
    yield subject.finding(
        Family.LOGITS,
        "stall",
        f"{what} ({failure.kind}: {shorten(failure.message, 80)})"
        + (" while the other side answered" if other_answered else ""),
        measured=float(characters),
    )


def _wants_logprobs(subject: Subject) -> bool:
    return bool(
        subject.body.get("logprobs") or subject.body.get("top_logprobs") or subject.body.get("n_probs")
    )


def _words(message: str) -> str:
    """The server's own words, without the status that our reader may have put before them."""
    return re.sub(r"^HTTP 500\b\W*", "", message.strip())


def _all_impossible(subject: Subject) -> Iterable[Finding]:
    lists = subject.lists
    hits = lists.position[lists.possible == 0]
    if hits.size:
        yield subject.finding(
            Family.LOGITS,
            "all_impossible",
            f"every ranked token is impossible at {hits.size} positions, first at token {hits[0]}",
            place="tokens",
            span=(int(hits[0]), int(hits[-1]) + 1),
            measured=float(hits.size),
            threshold=1.0,
        )


def _chosen_impossible(subject: Subject, tokens: Tokens) -> Iterable[Finding]:
    logprobs, lists = subject.answer.logprobs, subject.lists
    is_hit = np.isinf(logprobs)
    if lists.has_impossible:
        # A null for the chosen token alone may mean "not known"; its own entry says more.
        unknown = lists.position[(lists.possible < lists.size) & (lists.possible > 0)]
        for index in unknown[np.isnan(logprobs[unknown])].tolist():
            token = tokens[index]
            is_hit[index] = any(
                entry.logprob == -math.inf and entry.text == token.text and entry.id == token.id
                for entry in token.top
            )
    hits = np.flatnonzero(is_hit)
    if hits.size:
        yield subject.finding(
            Family.LOGITS,
            "chosen_impossible",
            f"{hits.size} tokens were emitted although impossible, first "
            f"{shorten(tokens[int(hits[0])].text)} at token {hits[0]}",
            place="tokens",
            span=(int(hits[0]), int(hits[-1]) + 1),
            measured=float(hits.size),
            threshold=1.0,
        )


def _missing_mass(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    if any(key in subject.body for key in ("top_p", "top_k", "min_p")):
        return  # processed logprobs of a filtered distribution need not add up
    lists = subject.lists
    is_hit = (
        (lists.possible > 0)
        & (1.0 - lists.possible / lists.size >= settings.non_finite_share)
        & (1.0 - lists.mass > settings.missing_mass)
    )
    hits = lists.position[is_hit]
    if hits.size:
        worst = float((1.0 - lists.mass[is_hit]).max())
        yield subject.finding(
            Family.LOGITS,
            "missing_mass",
            f"most ranked tokens are impossible and the rest lacks {worst:.3f} of the mass, at "
            f"{hits.size} positions, first at token {hits[0]}",
            place="tokens",
            span=(int(hits[0]), int(hits[-1]) + 1),
            measured=worst,
            threshold=settings.missing_mass,
        )


def _improbable(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Find answers whose own tokens are reported as improbable: the logits are not the answer's, or broken.

    Greedy tokens are the likeliest there are. Tokens sampled at temperature 1 or less have a mean
    logprob of about minus the entropy. And in the same context two precisions of one model agree.
    """
    logprobs = subject.answer.logprobs
    known = logprobs[np.isfinite(logprobs)]
    if known.size < _FEW_TOKENS or subject.body.get("echo"):
        return
    mean = float(known.sum()) / known.size
    temperature = subject.body.get("temperature")
    is_hot = isinstance(temperature, int | float) and temperature > 1
    if subject.is_greedy and mean < settings.greedy_mean_logprob:
        code, said = "improbable_greedy", "chosen at temperature 0"
    elif not is_hot and known.size >= settings.flat_run_tokens and mean < settings.greedy_mean_logprob:
        code, said = "improbable", "of the answer"
    else:
        yield from _improbable_prefix(subject, settings)
        return
    yield subject.finding(
        Family.LOGITS,
        code,
        f"the tokens {said} have a mean logprob of {mean:.1f} nats",
        place="tokens",
        span=(0, len(logprobs)),
        measured=mean,
        threshold=settings.greedy_mean_logprob,
    )


def _improbable_prefix(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    if subject.other_answer is None:
        return
    columns, others = subject.observation.tokens.columns, subject.other_answer.observation.tokens.columns
    prefix = common_prefix(columns, others)
    own, other = columns.logprob[:prefix], others.logprob[:prefix]
    known = np.isfinite(own) & np.isfinite(other)
    if np.count_nonzero(known) < settings.prefix_gap_tokens:
        return
    gap = float((other[known] - own[known]).mean())
    if gap > settings.prefix_gap_nats:
        yield subject.finding(
            Family.LOGITS,
            "improbable_prefix",
            f"the same {prefix} tokens are on average {gap:.1f} nats less likely than on the other side",
            place="tokens",
            span=(0, prefix),
            measured=gap,
            threshold=settings.prefix_gap_nats,
        )
