"""The normal form of what a server reports of one position's distribution (design, section 5).

A server ranks the k most likely tokens, p_1 >= ... >= p_k. m = p_k, the last *ranked* entry, bounds
the probability of every token that is not in the report. A sampled token appended beyond the ranked
ones is known mass, never m. r is the mass that the report does not show. Entries written as
impossible are known to have probability 0, and if the ranked list holds one, so does every token
outside the report: r = 0 and the report is *exhausted*.

Rows of the arrays are positions, columns are entries: everything downstream works on whole arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.alternative import Alternative
from ingest.pair import ForcedPosition
from ingest.tokens import Token

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

SUM_TOLERANCE = 5e-3
"""Known mass may pass 1 by this much: servers round log-probabilities, some to three digits."""

ROUNDING_MASS = 5e-4
"""Unseen mass below this is not told from rounding. llama.cpp sums exponentials in 32 bits: over 49,152
tokens its probabilities sum to as much as 1.0003."""

MOST_TOKENS = 10_000_000
"""No vocabulary is larger: unseen mass that more tokens of m could not hold contradicts the list."""

NO_KEY = -1


class Report(NamedTuple):
    """One position as reported: entries in the server's order, the first `ranked` of them ranked."""

    entries: Sequence[Alternative]
    ranked: int


@dataclass(frozen=True, slots=True)
class Positions:
    """n reports in normal form; w is the longest report's length.

    Rows with a `reasons` entry are unscored and their numbers mean nothing.
    """

    reports: tuple[Report, ...]
    logprob: Floats
    """(n, w) natural logarithms; -inf where impossible and in the padding."""
    probability: Floats
    """(n, w); 0 where impossible and in the padding."""
    has_entry: Bools
    """(n, w); False in the padding."""
    ids: Ints
    """(n, w) token ids, `NO_KEY` where absent."""
    last_ranked: Floats
    """(n,) m; 1 where nothing is ranked, so that it bounds nothing."""
    unseen: Floats
    """(n,) r, at least 0."""
    is_exhausted: Bools
    """(n,) whether every token outside the report is known to be impossible."""
    reasons: tuple[str | None, ...]
    """(n,) why the row is unscored, None where it is scored."""

    def __len__(self) -> int:
        return len(self.reports)

    @property
    def is_scored(self) -> Bools:
        """(n,) whether the row can be scored."""
        return np.array([reason is None for reason in self.reasons], dtype=np.bool_)

    @property
    def unseen_bound(self) -> Floats:
        """(n,) the most that a single token outside the report can have: min(m, r)."""
        bound: Floats = np.minimum(self.last_ranked, self.unseen)
        return bound

    @property
    def known(self) -> Ints:
        """(n,) how many tokens of probability above 0 the report shows."""
        count: Ints = np.count_nonzero(np.isfinite(self.logprob), axis=1).astype(np.int64)
        return count

    def head(self, count: int) -> Positions:
        """Return the first `count` rows."""
        return Positions(
            self.reports[:count],
            self.logprob[:count],
            self.probability[:count],
            self.has_entry[:count],
            self.ids[:count],
            self.last_ranked[:count],
            self.unseen[:count],
            self.is_exhausted[:count],
            self.reasons[:count],
        )

    def byte_keys(self, intern: dict[bytes, int]) -> Ints:
        """Return (n, w) numbers that are equal where the tokens' bytes are, by way of `intern`."""
        keys = np.full(self.ids.shape, NO_KEY, dtype=np.int64)
        keys[self.has_entry] = [
            NO_KEY if entry.raw is None else intern.setdefault(entry.raw, len(intern))
            for report in self.reports
            for entry in report.entries
        ]
        return keys


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which entries of two lists of reports are the same token.

    `same[i, a, b]` is whether entry a of the reference and entry b of the candidate at position i
    are one token. `reasons` holds why a position cannot be compared, None where it can.
    """

    same: Bools
    reasons: tuple[str | None, ...]


def same_token(a: Token | Alternative, b: Token | Alternative) -> bool | None:
    """Compare by id, else by bytes; None where neither can tell. Text alone never decides."""
    if a.id is not None and b.id is not None:
        return a.id == b.id
    if a.raw is not None and b.raw is not None:
        return a.raw == b.raw
    return None


def report_of(token: Token) -> Report:
    """Return a token's report. A sampled token that its list lacks is appended as known mass."""
    return _with_known(
        Report(token.top, token.ranked), Alternative(token.text, _or_nan(token.logprob), token.raw, token.id)
    )


def forced_reports(position: ForcedPosition) -> tuple[Report, Report]:
    """Return the reference's and the candidate's report at one forced position."""
    reports = []
    for top, logprob in (
        (position.reference_top, position.reference_logprob),
        (position.candidate_top, position.candidate_logprob),
    ):
        forced = Alternative(position.token_text, _or_nan(logprob), position.token_raw, position.token_id)
        reports.append(_with_known(Report(top, len(top)), forced))
    return reports[0], reports[1]


def normalise(reports: Sequence[Report]) -> Positions:
    """Bring n reports into normal form.

    Reasons for which a position is unscored: `no_logprobs` (empty list), `not_finite` (NaN or
    +inf), `duplicate_tokens`, `not_normalised` (known mass over 1), `all_impossible` (no entry is
    possible), `inconsistent_list` (an appended token likelier than a ranked one, or more mass
    unseen than any vocabulary holds at the last ranked probability).
    """
    count = len(reports)
    lengths = np.array([len(report.entries) for report in reports], dtype=np.int64)
    ranked = np.minimum(np.array([report.ranked for report in reports], dtype=np.int64), lengths)
    width = int(lengths.max()) if count else 0
    columns = np.arange(width)
    has_entry: Bools = columns < lengths[:, None]
    is_ranked = columns < ranked[:, None]
    logprob = np.full((count, width), -np.inf)
    logprob[has_entry] = [entry.logprob for report in reports for entry in report.entries]
    ids = np.full((count, width), NO_KEY, dtype=np.int64)
    ids[has_entry] = [
        NO_KEY if entry.id is None else entry.id for report in reports for entry in report.entries
    ]
    is_broken = (np.isnan(logprob) | (logprob == np.inf)).any(axis=1)
    # Over 0 by more than rounding fails the sum below; the cap keeps exp from overflowing.
    probability = np.exp(np.minimum(logprob, 1.0))
    probability[is_broken] = 0.0
    impossible = has_entry & (logprob == -np.inf)
    is_exhausted: Bools = (impossible & is_ranked).any(axis=1)
    possible_ranked = is_ranked & ~impossible
    last_ranked = np.where(possible_ranked, probability, 1.0).min(axis=1, initial=1.0)
    known_mass = probability.sum(axis=1)
    unseen = np.where(is_exhausted, 0.0, np.maximum(1.0 - known_mass, 0.0))
    appended = np.where(has_entry & ~is_ranked, probability, 0.0).max(axis=1, initial=0.0)
    is_inconsistent = (ranked > 0) & (appended > last_ranked * (1.0 + SUM_TOLERANCE))
    is_inconsistent |= unseen > ROUNDING_MASS + MOST_TOKENS * last_ranked
    checks = (
        ("no_logprobs", lengths == 0),
        ("not_finite", is_broken),
        ("duplicate_tokens", _has_duplicates(reports, ids, has_entry)),
        ("not_normalised", known_mass > 1.0 + SUM_TOLERANCE),
        ("all_impossible", (known_mass == 0.0) & (lengths > 0)),
        ("inconsistent_list", is_inconsistent),
    )
    reasons: list[str | None] = [None] * count
    for reason, failed in reversed(checks):
        for row in np.flatnonzero(failed).tolist():
            reasons[row] = reason
    return Positions(
        tuple(reports),
        logprob,
        probability,
        has_entry,
        ids,
        last_ranked,
        unseen,
        is_exhausted,
        tuple(reasons),
    )


def overlap(reference: Positions, candidate: Positions) -> Overlap:
    """Find the tokens that both reports hold, position by position, by id, else by bytes.

    The identity is one for a whole position: ids if every entry of both reports has one, else bytes
    if every entry has them, else `no_token_identity`. Raises ValueError if the lengths differ.
    """
    if len(reference) != len(candidate):
        raise ValueError(f"{len(reference)} reference positions against {len(candidate)} of the candidate")
    sides = (reference, candidate)
    by_id = np.logical_and(*(_is_complete(side.ids, side.has_entry) for side in sides))
    keys = [side.ids for side in sides]
    has_key = by_id
    if not by_id.all():
        intern: dict[bytes, int] = {}
        raw_keys = [side.byte_keys(intern) for side in sides]
        by_bytes = np.logical_and(
            *(_is_complete(raw, side.has_entry) for raw, side in zip(raw_keys, sides, strict=True))
        )
        keys = [np.where(by_id[:, None], a, b) for a, b in zip(keys, raw_keys, strict=True)]
        has_key = by_id | by_bytes
    same: Bools = keys[0][:, :, None] == keys[1][:, None, :]
    same &= reference.has_entry[:, :, None] & candidate.has_entry[:, None, :] & has_key[:, None, None]
    return Overlap(
        same,
        tuple(
            a or b or (None if known else "no_token_identity")
            for a, b, known in zip(reference.reasons, candidate.reasons, has_key, strict=True)
        ),
    )


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _with_known(report: Report, token: Alternative) -> Report:
    """Append a token of known probability to a report that lacks it."""
    if not report.entries or token.logprob != token.logprob or (token.id is None and token.raw is None):
        return report
    if any(same_token(token, entry) is not False for entry in report.entries):
        return report
    return Report((*report.entries, token), report.ranked)


def _is_complete(keys: Ints, has_entry: Bools) -> Bools:
    complete: Bools = ((keys != NO_KEY) | ~has_entry).all(axis=1)
    return complete


def _has_duplicates(reports: Sequence[Report], ids: Ints, has_entry: Bools) -> Bools:
    """(n,) whether a report names one token twice, by id, else by bytes."""
    padding = -2 - np.arange(ids.shape[1])
    ordered = np.sort(np.where(has_entry, ids, padding), axis=1)
    found: Bools = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    for row in np.flatnonzero(~_is_complete(ids, has_entry)).tolist():
        raws = [entry.raw for entry in reports[row].entries]
        found[row] = None not in raws and len(set(raws)) < len(raws)
    return found
