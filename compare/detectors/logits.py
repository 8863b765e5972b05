"""Family `logits`: distributions that no healthy model reports, and servers that say so themselves.

An impossible *alternative* is normal under a mask (schema, grammar, choice). What no mask explains is
a list with nothing possible in it, an emitted token that was impossible, or a list that holds
impossible entries, hence all the mass there is, and still does not add up to one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.observation import Token
from ingest.settings import DetectorSettings

_NUMERIC_ERROR = re.compile(
    r"probability tensor|\bnan\b|\binf\b|`inf`|non-?finite|not finite|overflow|underflow|invalid logits"
    r"|logits? (?:contain|are)",
    re.IGNORECASE,
)
_NAN_NOTES = ("logprob_nan", "alternatives_nan")
_SAYS_NOTHING = re.compile(r"^\W*(?:internal server error)?\W*$", re.IGNORECASE)
_FLAT_MIN_SURPRISE = 1.1  # with p1 over exp(-1.1), entropy cannot pass 9 nats under 270,000 tokens


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `numeric_error`, `nan`, `all_impossible`, `chosen_impossible`, `missing_mass`, `flat`, ..."""
    yield from _server_error(subject)
    tokens = subject.observation.tokens
    if not tokens:
        return
    if notes := [note for note in subject.observation.notes if note in _NAN_NOTES]:
        # The reader drops such values; no mask and no rounding makes a NaN.
        yield subject.finding(Family.LOGITS, "nan", f"a logprob is not a number ({', '.join(notes)})")
    yield from _all_impossible(subject)
    if not subject.is_constrained:
        # Under a mask the list may be taken before or after it: neither contradicts the token.
        yield from _chosen_impossible(subject, tokens)
        yield from _missing_mass(subject, settings)
        yield from _flat(subject, tokens, settings)
        yield from _improbable_greedy(subject, tokens, settings)


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


def _chosen_impossible(subject: Subject, tokens: tuple[Token, ...]) -> Iterable[Finding]:
    hits = [i for i, token in enumerate(tokens) if _is_chosen_impossible(token)]
    if hits:
        yield subject.finding(
            Family.LOGITS,
            "chosen_impossible",
            f"{len(hits)} tokens were emitted although impossible, first {shorten(tokens[hits[0]].text)} "
            f"at token {hits[0]}",
            place="tokens",
            span=(hits[0], hits[-1] + 1),
            measured=float(len(hits)),
            threshold=1.0,
        )


def _is_chosen_impossible(token: Token) -> bool:
    if token.logprob is not None:
        return not math.isfinite(token.logprob)
    # A null for the chosen token alone may mean "not known"; its own entry says more.
    return any(
        entry.logprob == -math.inf and entry.text == token.text and entry.id == token.id
        for entry in token.top
    ) and any(entry.logprob > -math.inf for entry in token.top)


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


def _flat(subject: Subject, tokens: tuple[Token, ...], settings: DetectorSettings) -> Iterable[Finding]:
    lists = subject.lists
    run: list[float] = []
    start = previous = -2
    # Only where even the best token is unlikely can the bound be passed: few positions, as a rule.
    for index in [*lists.position[lists.best <= -_FLAT_MIN_SURPRISE].tolist(), len(tokens) + 1]:
        floor = entropy_floor(tokens[index]) if index < len(tokens) else 0.0
        if floor > settings.flat_entropy_nats and index == previous + 1:
            run.append(floor)
        else:
            if len(run) >= settings.flat_run_tokens:
                yield subject.finding(
                    Family.LOGITS,
                    "flat",
                    f"{len(run)} tokens in a row were drawn from an almost even distribution "
                    f"(at least {min(run):.1f} nats)",
                    place="tokens",
                    span=(start, start + len(run)),
                    measured=min(run),
                    threshold=settings.flat_entropy_nats,
                )
            start, run = index, [floor] if floor > settings.flat_entropy_nats else []
        previous = index


def entropy_floor(token: Token) -> float:
    """A lower bound of the entropy in nats, 0.0 where nothing is known.

    Every unseen token has probability at most m, the least ranked one, so the unseen mass r adds at
    least -r log m (the bound of the design's section 5, without its remainder term).
    """
    ranked = token.top[: token.ranked] if token.ranked else token.top
    if not ranked or ranked[0].logprob > -_FLAT_MIN_SURPRISE:
        return 0.0
    possible = [entry.logprob for entry in ranked if -math.inf < entry.logprob <= 0.0]
    if len(possible) < len(ranked):
        return 0.0
    known = [math.exp(logprob) for logprob in possible]
    unseen = max(0.0, 1.0 - math.fsum(known))
    return -math.fsum(p * q for p, q in zip(known, possible, strict=True)) - unseen * min(possible)


def _improbable_greedy(
    subject: Subject, tokens: tuple[Token, ...], settings: DetectorSettings
) -> Iterable[Finding]:
    """Find answers whose greedy tokens are reported as improbable: the logits buffer is not the answer's."""
    if not subject.is_greedy:
        return
    logprobs = [
        token.logprob for token in tokens if token.logprob is not None and math.isfinite(token.logprob)
    ]
    if len(logprobs) < 2:
        return
    mean = math.fsum(logprobs) / len(logprobs)
    if mean < settings.greedy_mean_logprob:
        yield subject.finding(
            Family.LOGITS,
            "improbable_greedy",
            f"the tokens chosen at temperature 0 have a mean logprob of {mean:.1f} nats",
            place="tokens",
            span=(0, len(tokens)),
            measured=mean,
            threshold=settings.greedy_mean_logprob,
        )
