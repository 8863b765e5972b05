"""The normal form of what a server reports of positions' distributions (design, section 5).

A server ranks the k most likely tokens, p_1 >= ... >= p_k. m = p_k, the last *ranked* entry, bounds
the probability of every token that is not in the report. A sampled token appended beyond the ranked
ones is known mass, never m. r is the mass that the report does not show. Entries written as
impossible are known to have probability 0, and if the ranked list holds one, so does every token
outside the report: r = 0 and the report is *exhausted*.

In the arrays of shape (w, n) a column is a position and a row a place in its list, so that a sum over
every list is a sum of whole rows: with lists of 20 that is many times faster than the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ingest.tokens import NO_ID, NO_KEY, TokenColumns

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Keys = NDArray[np.uint64]
Codes = NDArray[np.uint8]

SUM_TOLERANCE = 5e-3
"""Known mass may pass 1 by this much: servers round log-probabilities, some to three digits."""

ROUNDING_MASS = 5e-4
"""Unseen mass below this is not told from rounding. llama.cpp sums exponentials in 32 bits: over 49,152
tokens its probabilities sum to as much as 1.0003."""

MOST_TOKENS = 10_000_000
"""No vocabulary is larger: unseen mass that more tokens of m could not hold contradicts the list."""

POSITION_REASONS = (
    None,
    "no_logprobs",
    "not_finite",
    "duplicate_tokens",
    "not_normalised",
    "all_impossible",
    "inconsistent_list",
    "no_token_identity",
    "infinite",
)
"""Why a position is unscored, by code; of several the first is said. Code 0: it is scored."""

NO_IDENTITY = POSITION_REASONS.index("no_token_identity")
INFINITE = POSITION_REASONS.index("infinite")


@dataclass(frozen=True)
class Positions:
    """n reports in normal form; w is the longest report's length.

    Columns with a `reason` are unscored and their numbers mean nothing.
    """

    logprob: Floats
    """(w, n) natural logarithms; -inf where impossible and in the padding."""
    probability: Floats
    """(w, n); 0 where impossible and in the padding."""
    id: SmallInts
    """(w, n) token ids, NO_ID where absent and in the padding; no id needs more than 31 bits."""
    key: Keys
    """(w, n) keys of the tokens' bytes, NO_KEY where absent and in the padding."""
    length: Ints
    """(n,) entries of each report."""
    last_ranked: Floats
    """(n,) m; 1 where nothing is ranked, so that it bounds nothing."""
    unseen: Floats
    """(n,) r, at least 0."""
    is_exhausted: Bools
    """(n,) whether every token outside the report is known to be impossible."""
    surprise: Floats
    """(n,) sum of -p log p over the report; an entry a rounding above 1 counts 0, not less."""
    reason: Codes
    """(n,) codes of POSITION_REASONS."""

    def __len__(self) -> int:
        return len(self.length)

    @cached_property
    def is_scored(self) -> Bools:
        """(n,) whether the position can be scored."""
        scored: Bools = self.reason == 0
        return scored

    @property
    def reasons(self) -> tuple[str | None, ...]:
        """(n,) why the position is unscored, None where it is scored."""
        return reason_names(self.reason)

    @property
    def unseen_bound(self) -> Floats:
        """(n,) the most that a single token outside the report can have: min(m, r)."""
        bound: Floats = np.minimum(self.last_ranked, self.unseen)
        return bound

    @cached_property
    def known(self) -> Ints:
        """(n,) how many tokens of probability above 0 the report shows."""
        count: Ints = np.count_nonzero(self.logprob > -np.inf, axis=0).astype(np.int64)
        return count

    @cached_property
    def has_ids(self) -> Bools:
        """(n,) whether every entry has an id."""
        missing = np.count_nonzero(self.id == NO_ID, axis=0)
        whole: Bools = missing == len(self.id) - self.length
        return whole

    @cached_property
    def has_keys(self) -> Bools:
        """(n,) whether every entry has bytes."""
        missing = np.count_nonzero(self.key == NO_KEY, axis=0)
        whole: Bools = missing == len(self.key) - self.length
        return whole


def reason_names(codes: Codes) -> tuple[str | None, ...]:
    """Return the words of codes."""
    return tuple(POSITION_REASONS[code] for code in codes.tolist())


def normalise(columns: TokenColumns) -> Positions:
    """Bring the lists of n tokens into normal form. A chosen token that its list lacks is known mass.

    Reasons for which a position is unscored: `no_logprobs` (empty list), `not_finite` (NaN or
    +inf), `duplicate_tokens`, `not_normalised` (known mass over 1), `all_impossible` (no entry is
    possible), `inconsistent_list` (an appended token likelier than a ranked one, or more mass
    unseen than any vocabulary holds at the last ranked probability).
    """
    length = columns.start[1:] - columns.start[:-1]
    logprob, ids, keys = _lists(columns, length)
    logprob, ids, keys, length = _with_chosen(columns, logprob, ids, keys, length)
    width, count = logprob.shape
    ranked = np.minimum(columns.ranked, length)
    largest = logprob.max(axis=0, initial=-np.inf)
    is_broken = ~(largest < np.inf)
    if is_broken.any():
        logprob[:, is_broken] = -np.inf
    # Over 0 by more than rounding fails the sum below; the cap keeps exp from overflowing.
    is_sane = bool((largest <= 1.0).all())
    probability = np.exp(logprob if is_sane else np.minimum(logprob, 1.0))
    is_inconsistent = np.zeros(count, dtype=np.bool_)
    is_whole = float(logprob.min(initial=0.0)) > -np.inf
    terms = probability * (
        logprob if is_whole else np.maximum(logprob, -1e300)
    )  # 0 times infinity is no number
    if largest.max(initial=0.0) > 0.0:
        np.minimum(terms, 0.0, out=terms)
    if is_whole and (ranked == width).all():
        is_exhausted = np.zeros(count, dtype=np.bool_)
        last_ranked = probability.min(axis=0, initial=1.0)
    else:
        is_ranked = np.arange(width)[:, None] < ranked
        is_impossible = logprob == -np.inf
        is_exhausted = (is_impossible & is_ranked).any(axis=0)
        last_ranked = np.where(is_ranked & ~is_impossible, probability, 1.0).min(axis=0, initial=1.0)
        appended = np.where(is_ranked, 0.0, probability).max(axis=0, initial=0.0)
        is_inconsistent |= (ranked > 0) & (appended > last_ranked * (1.0 + SUM_TOLERANCE))
    known_mass = probability.sum(axis=0)
    unseen = np.where(is_exhausted, 0.0, np.maximum(1.0 - known_mass, 0.0))
    is_inconsistent |= unseen > ROUNDING_MASS + MOST_TOKENS * last_ranked
    reason = np.zeros(count, dtype=np.uint8)
    positions = Positions(
        logprob, probability, ids, keys, length, last_ranked, unseen, is_exhausted, -terms.sum(axis=0), reason
    )
    checks = (
        length == 0,
        is_broken,
        _has_duplicates(positions),
        known_mass > 1.0 + SUM_TOLERANCE,
        (known_mass == 0.0) & (length > 0),
        is_inconsistent,
    )
    for code in range(len(checks), 0, -1):
        reason[checks[code - 1]] = code
    return positions


def _lists(columns: TokenColumns, length: Ints) -> tuple[Floats, SmallInts, Keys]:
    """Lay the lists side by side: (w, n) each, and no view of the columns."""
    count = len(length)
    width = int(length.max(initial=0))
    if len(columns.top_logprob) == count * width:
        shape = (count, width)
        return (
            np.array(columns.top_logprob.reshape(shape).T, order="C"),
            columns.top_id.reshape(shape).T.astype(np.int32, order="C"),
            _turned_keys(columns.top_key, shape),
        )
    places = np.arange(width)[:, None]
    inside = places < length
    at = np.where(inside, columns.start[:-1] + places, 0)
    logprob, ids, keys = columns.top_logprob[at], columns.top_id[at].astype(np.int32), columns.top_key[at]
    logprob[~inside], ids[~inside], keys[~inside] = -np.inf, NO_ID, NO_KEY
    return logprob, ids, keys


def _turned_keys(keys: Keys, shape: tuple[int, int]) -> Keys:
    if not keys.strides[0]:  # all alike: keys that nobody needs (`compare.metrics.blocks`)
        return np.broadcast_to(keys[:1], (shape[1], shape[0])) if len(keys) else keys.reshape(0, shape[0])
    return np.array(keys.reshape(shape).T, order="C")


def _with_chosen(
    columns: TokenColumns, logprob: Floats, ids: SmallInts, keys: Keys, length: Ints
) -> tuple[Floats, SmallInts, Keys, Ints]:
    """Append each chosen token of known probability to a list that surely lacks it."""
    if not len(logprob):
        return logprob, ids, keys, length
    is_named = (columns.id != NO_ID) | (columns.key != NO_KEY)
    # Nearly always the first entry is the chosen token.
    has_ids = (columns.id != NO_ID) & (ids[0] != NO_ID)
    is_first = np.where(has_ids, columns.id == ids[0], (columns.key == keys[0]) & (columns.key != NO_KEY))
    at = np.flatnonzero(~is_first & is_named & (length > 0) & ~np.isnan(columns.logprob))
    if not len(at):
        return logprob, ids, keys, length
    by_id = (ids[:, at] != NO_ID) & (columns.id[at] != NO_ID)
    by_key = (keys[:, at] != NO_KEY) & (columns.key[at] != NO_KEY)
    differs = np.where(by_id, ids[:, at] != columns.id[at], by_key & (keys[:, at] != columns.key[at]))
    places = np.arange(len(ids))[:, None]
    at = at[(differs | (places >= length[at])).all(axis=0)]
    if not len(at):
        return logprob, ids, keys, length
    if int(length[at].max()) == len(ids):
        count = len(length)
        logprob = np.concatenate([logprob, np.full((1, count), -np.inf)])
        ids = np.concatenate([ids, np.full((1, count), NO_ID, dtype=np.int32)])
        keys = np.concatenate([keys, np.full((1, count), NO_KEY, dtype=np.uint64)])
    place = length[at]
    logprob[place, at], ids[place, at] = columns.logprob[at], columns.id[at]
    keys[place, at] = columns.key[at]
    length = length.copy()
    length[at] += 1
    return logprob, ids, keys, length


def _has_duplicates(positions: Positions) -> Bools:
    """(n,) whether a report names one token twice, by id, else by bytes."""
    found = _repeats(positions.id, NO_ID) & positions.has_ids
    if not positions.has_ids.all():
        found |= _repeats(positions.key, NO_KEY) & positions.has_keys & ~positions.has_ids
    return found


def _repeats(names: SmallInts | Keys, absent: int) -> Bools:
    """(n,) whether a name other than `absent` stands twice in a column."""
    ordered = np.sort(np.array(names.T, order="C"), axis=1)
    line = ordered.ravel()
    if not (line[1:] == line[:-1]).any():  # cheap: also compares the ends of neighbours
        return np.zeros(len(ordered), dtype=np.bool_)
    equal = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != absent)
    repeats: Bools = equal.any(axis=1)
    return repeats
