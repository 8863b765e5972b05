"""Runs of positions whose distribution is too flat, too narrow, or sinks: the token half of `logits`.

Entropies are bounds (design, section 5): a lower bound says "flat" even through a list of twenty, an
upper bound says "collapsed" whatever the list leaves out. Healthy positions are told by their best
logprob alone, so that bounds are worked out for few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.detectors.asked import is_asked_for, other_side_repeats
from compare.detectors.subject import Subject
from compare.detectors.top_lists import UNSURE
from compare.metrics.distribution import normalise
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.result import Family, Finding
from ingest.settings import DetectorSettings
from ingest.tokens import NO_ID, NO_KEY, TokenColumns, Tokens

LARGEST_VOCABULARY = 262_144
"""Stands in where the vocabulary is not known: an upper bound grows with it."""
_EVEN_MIN_ENTRIES = 3
_EVEN_TOLERANCE = 1e-6


class TokenRun(NamedTuple):
    """Positions [start, end) in a row."""

    start: int
    end: int


def detect_runs(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `flat`, `even`, `collapse` and `slide` for an answer whose decoding was not masked."""
    if subject.lists.best.size and subject.lists.best.min() <= UNSURE:
        yield from _flat(subject, settings)
        yield from _even(subject, settings)
    yield from _collapse(subject, settings)
    yield from _slide(subject, settings)


def lower_bounds(columns: TokenColumns) -> NDArray[np.float64]:
    """(n,) lower bounds of the entropy in nats, 0 where a list cannot be trusted."""
    positions = normalise(columns)
    bounds: NDArray[np.float64] = np.where(positions.is_scored, entropy_lower(positions), 0.0)
    return bounds


def upper_bounds(columns: TokenColumns, vocabulary: int) -> NDArray[np.float64]:
    """(n,) upper bounds of the entropy in nats, infinite where a list cannot be trusted."""
    positions = normalise(columns)
    bounds: NDArray[np.float64] = np.where(positions.is_scored, entropy_upper(positions, vocabulary), np.inf)
    return bounds


def stretch(columns: TokenColumns, run: TokenRun) -> TokenColumns:
    """The columns of the tokens of a run."""
    tokens = slice(run.start, run.end)
    first, last = int(columns.start[run.start]), int(columns.start[run.end])
    return TokenColumns(
        logprob=columns.logprob[tokens],
        id=columns.id[tokens],
        key=columns.key[tokens],
        ranked=columns.ranked[tokens],
        start=columns.start[run.start : run.end + 1] - first,
        top_logprob=columns.top_logprob[first:last],
        top_id=columns.top_id[first:last],
        top_key=columns.top_key[first:last],
    )


def runs_of(indices: NDArray[np.int64], least: int) -> list[TokenRun]:
    """The runs without a gap in increasing indices that are at least `least` long."""
    if indices.size < least:
        return []
    gaps = np.flatnonzero(indices[1:] - indices[:-1] > 1)
    starts = np.concatenate(([0], gaps + 1))
    ends = np.concatenate((gaps, [indices.size - 1]))
    return [
        TokenRun(int(indices[start]), int(indices[end]) + 1)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        if end - start + 1 >= least
    ]


def _flat(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    lists, tokens = subject.lists, subject.observation.tokens
    # No more than -r log m + the known part, which is greatest if the known mass is spread evenly.
    known = np.clip(lists.mass, 1e-12, 1.0)
    ceiling = (1.0 - known) * -lists.least + known * np.log(lists.size / known)
    suspects = lists.position[(ceiling > settings.flat_entropy_nats) & (lists.possible == lists.size)]
    if not suspects.size:
        return
    floors = lower_bounds(Tokens(tokens[index] for index in suspects.tolist()).columns)
    flat = suspects[floors > settings.flat_entropy_nats]
    # A broken layer is flat throughout: a short answer is flat if it is so at nearly every position.
    total = lists.size
    is_throughout = flat.size >= max(2, settings.flat_share * total.size) and bool((total > 1).all())
    runs = runs_of(flat, settings.flat_run_tokens)
    if is_throughout:
        runs = [TokenRun(int(flat[0]), int(flat[-1]) + 1)]
    for run in runs[:1]:
        least = float(floors[(suspects >= run.start) & (suspects < run.end)].min())
        yield _finding(
            subject,
            "flat",
            f"{run.end - run.start} tokens were drawn from an almost even distribution "
            f"(at least {least:.1f} nats)",
            run,
            least,
            settings.flat_entropy_nats,
        )


def _even(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Find lists whose entries all have one and the same probability: no model ranks like that."""
    lists = subject.lists
    even = lists.position[
        (lists.possible >= _EVEN_MIN_ENTRIES)
        & (lists.possible == lists.size)
        & (lists.best < -np.log(_EVEN_MIN_ENTRIES) + _EVEN_TOLERANCE)
        & (np.abs(lists.mass - lists.size * np.exp(lists.best)) <= _EVEN_TOLERANCE * lists.mass)
    ]
    least = settings.flat_share * lists.position.size
    if even.size and even.size >= least:
        run = TokenRun(int(even[0]), int(even[-1]) + 1)
        yield _finding(
            subject,
            "even",
            f"all alternatives have the same probability at {even.size} positions",
            run,
            float(even.size),
            least,
        )


def _collapse(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Find a long run without any choice, in a repetition or where the other side had a choice."""
    lists, columns = subject.lists, subject.observation.tokens.columns
    length = settings.collapse_run_tokens
    if lists.position.size < length:
        return
    # Entropy is at least -p log p - q log q, so a narrow position has p1 over 1 - its entropy.
    narrow = lists.position[lists.best > np.log1p(-settings.collapse_entropy_nats)]
    if narrow.size < length:
        return
    for run in runs_of(narrow, length):
        bounds = upper_bounds(stretch(columns, run), subject.vocabulary_size or LARGEST_VOCABULARY)
        mean = float(bounds.mean())
        if not mean < settings.collapse_entropy_nats:
            continue
        if not subject.is_finished and _is_repetition(subject, run, settings):
            said = "and repeat themselves"
        elif (excess := _other_mean(subject, run)) is not None and excess > settings.collapse_excess_nats:
            said = f"where the other side has {excess:.2f} in the same context"
        else:
            continue
        yield _finding(
            subject,
            "collapse",
            f"{run.end - run.start} tokens in a row have at most {mean:.4f} nats of entropy, {said}",
            run,
            mean,
            settings.collapse_entropy_nats,
        )
        return


def _is_repetition(subject: Subject, run: TokenRun, settings: DetectorSettings) -> bool:
    distinct = len(set(subject.answer.names[run.start : run.end]))
    if distinct > settings.collapse_distinct_share * (run.end - run.start):
        return False
    unit = "".join(subject.observation.tokens.texts[run.start : run.start + distinct])
    return not (
        is_asked_for(subject, unit) and (subject.other_answer is None or other_side_repeats(subject, unit))
    )


def _other_mean(subject: Subject, run: TokenRun) -> float | None:
    """The other side's mean lower bound over the run, if both sides chose the same tokens to its end."""
    if subject.other_answer is None or (subject.lists.best == 0.0).all():
        return None
    other = subject.other_answer.observation.tokens
    if common_prefix(subject.observation.tokens.columns, other.columns) < run.end:
        return None
    return float(lower_bounds(stretch(other.columns, run)).mean())


def common_prefix(own: TokenColumns, other: TokenColumns) -> int:
    """How many leading tokens are the same, by id, else by bytes; one that neither can tell is not."""
    length = min(own.id.size, other.id.size)
    ids, other_ids = own.id[:length], other.id[:length]
    has_ids = (ids != NO_ID) & (other_ids != NO_ID)
    is_same = has_ids & (ids == other_ids)
    if not has_ids.all():
        keys = own.key[:length]
        is_same |= ~has_ids & (keys != NO_KEY) & (keys == other.key[:length])
    return length if is_same.all() else int(is_same.argmin())


def _slide(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    fall = slide_of(subject.answer.logprobs, settings)
    if fall is None:
        return
    if subject.other_answer is not None and slide_of(subject.other_answer.logprobs, settings) is not None:
        return
    window = settings.slide_window_tokens
    total = len(subject.observation.tokens)
    yield _finding(
        subject,
        "slide",
        f"the mean logprob of {window} tokens sinks from {fall[0]:.2f} at first to {fall[1]:.2f} at last",
        TokenRun(total - window, total),
        fall[1],
        settings.slide_mean_logprob,
    )


def slide_of(logprobs: NDArray[np.float64], settings: DetectorSettings) -> tuple[float, float] | None:
    """Return the mean of the first window and of the last where the answer sinks, else None.

    An answer sinks if the last window lies under `slide_mean_logprob`, and by `slide_drop_nats` under
    the first. It needs two whole windows of known, finite logprobs.
    """
    window = settings.slide_window_tokens
    if logprobs.size < 2 * window:
        return None
    after = float(logprobs[-window:].sum()) / window
    if not math.isfinite(after) or after >= settings.slide_mean_logprob:
        return None
    before = float(logprobs[:window].sum()) / window
    if not math.isfinite(before):
        return None
    is_sinking = after < settings.slide_mean_logprob and before - after > settings.slide_drop_nats
    return (before, after) if is_sinking else None


def _finding(
    subject: Subject, code: str, message: str, run: TokenRun, measured: float, threshold: float
) -> Finding:
    return subject.finding(
        Family.LOGITS, code, message, place="tokens", span=run, measured=measured, threshold=threshold
    )
