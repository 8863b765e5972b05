"""The decision, apart from reading: the same evidence and terms give the same verdict.

In this order:

1. nothing counted: `no_data`;
2. what served the candidate or the reference changed within the range: `mixed`, unless the terms allow it;
3. the lower bound of the excess over the margin, of the whole or of any slice: `hold`;
4. the upper bound of the whole under the margin, and coverage at least as asked: `ship`;
5. else `need_more`.

The chance of ever saying ship although the excess is at the margin or over it is at most half of 1 -
confidence; of ever saying hold although neither the whole nor any slice is over it, at most 1 - confidence.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from compare.pace import pace
from compare.ship.bounds import Counts, interval, pairs_needed
from compare.ship.model import (
    DIMENSIONS,
    EXIT_CODES,
    SCHEMA,
    Decision,
    Evidence,
    Need,
    ServedNow,
    ShipVerdict,
    SliceBound,
    SliceCounts,
    Terms,
)
from compare.ship.words import percent, signed
from ingest.served import Served

ASSUMPTION = "candidate-only and reference-only faults go on at exactly the rates counted so far"

LEAST_CHOSEN = 0.5
"""Under this share of what was not left out by the draw of the sample, the verdict warns."""

_TOLD = Served.__struct_fields__


def decide(evidence: Evidence, terms: Terms, made_at: datetime) -> ShipVerdict:
    """Return the verdict. Raises SettingsError for terms out of range."""
    terms.check()
    tally, coverage = evidence.tally, evidence.coverage
    error = 1.0 - terms.confidence
    low, high = interval(tally.whole, error)
    slices = tuple(_bound(one, terms.margin, error) for one in tally.slices if one.counts.pairs)
    dissenting = [one for one in slices if one.is_dissenting]
    changed_at = changes(evidence.served)
    is_covered = coverage.share is not None and coverage.share >= terms.min_coverage
    decision = _decision(tally.whole.pairs, low, high, bool(dissenting), changed_at, is_covered, terms)
    reasons = _reasons(decision, low, high, dissenting, changed_at, is_covered, coverage.share, terms)
    needs_pairs = decision == "need_more" and high >= terms.margin
    an_hour = pace(tally.whole.pairs, tally.first_ingested_at, tally.last_ingested_at)
    return ShipVerdict(
        schema=SCHEMA,
        experiment=evidence.experiment,
        candidate=evidence.candidate,
        references=evidence.references,
        decision=decision,
        exit_code=EXIT_CODES[decision],
        made_at=made_at,
        terms=terms,
        pairs=tally.whole.pairs,
        repeats=tally.repeats,
        candidate_only=tally.whole.candidate_only,
        reference_only=tally.whole.reference_only,
        excess=tally.whole.excess,
        low=low,
        high=high,
        first_at=tally.first_at,
        last_at=tally.last_at,
        pairs_per_hour=an_hour,
        need=_need(tally.whole, an_hour, terms) if needs_pairs else None,
        reasons=tuple(reasons),
        warnings=tuple(_warnings(evidence, terms, changed_at)),
        slices=_sorted(slices),
        coverage=coverage,
        supports=evidence.supports,
        validity=evidence.validity,
        served=evidence.served,
        changed_at=changed_at,
        alerts=evidence.alerts,
        worst=evidence.worst,
    )


def at_margin(verdict: ShipVerdict, margin: float) -> ShipVerdict:
    """The same counts against another margin, which moves no bound. Raises SettingsError if out of range."""
    terms = msgspec.structs.replace(verdict.terms, margin=margin)
    terms.check()
    low, high, share = verdict.low, verdict.high, verdict.coverage.share
    slices = _sorted(
        tuple(msgspec.structs.replace(one, is_dissenting=one.low > margin) for one in verdict.slices)
    )
    dissenting = [one for one in slices if one.is_dissenting]
    is_covered = share is not None and share >= terms.min_coverage
    changed_at = verdict.changed_at
    decision = _decision(verdict.pairs, low, high, bool(dissenting), changed_at, is_covered, terms)
    neither = verdict.pairs - verdict.candidate_only - verdict.reference_only
    whole = Counts(verdict.candidate_only, verdict.reference_only, neither)
    needs_pairs = decision == "need_more" and high >= margin
    return msgspec.structs.replace(
        verdict,
        terms=terms,
        decision=decision,
        exit_code=EXIT_CODES[decision],
        slices=slices,
        need=_need(whole, verdict.pairs_per_hour, terms) if needs_pairs else None,
        reasons=tuple(_reasons(decision, low, high, dissenting, changed_at, is_covered, share, terms)),
    )


def changes(served: tuple[ServedNow, ...]) -> tuple[datetime, ...]:
    """When an endpoint began to serve something else than before, among what was in force in the range."""
    found = set()
    last: dict[tuple[str, str], tuple[object, ...]] = {}
    for one in sorted(served, key=lambda entry: entry.seen_at):
        key = (one.role, one.endpoint_name)
        told = tuple(getattr(one, name) for name in _TOLD)
        if key in last and last[key] != told:
            found.add(one.seen_at)
        last[key] = told
    return tuple(sorted(found))


def slice_error(rank: int, error: float) -> float:
    """The share of `error` for a dimension's slice that was the `rank`-th to appear, rank from 1.

    1 / (k (k + 1)) sums to 1 over all k, and the order of appearance is known before a slice's first pair is
    judged, so that the statement holds together however many values turn up.
    """
    return error / len(DIMENSIONS) / (rank * (rank + 1))


def _decision(
    pairs: int,
    low: float,
    high: float,
    is_dissenting: bool,
    changed_at: tuple[datetime, ...],
    is_covered: bool,
    terms: Terms,
) -> Decision:
    if not pairs:
        return "no_data"
    if changed_at and not terms.may_mix:
        return "mixed"
    if low > terms.margin or is_dissenting:
        return "hold"
    return "ship" if high < terms.margin and is_covered else "need_more"


def _sorted(slices: tuple[SliceBound, ...]) -> tuple[SliceBound, ...]:
    """Those on hold first, then by the lower bound."""
    return tuple(sorted(slices, key=lambda one: (not one.is_dissenting, -one.low)))


def _bound(one: SliceCounts, margin: float, error: float) -> SliceBound:
    share = slice_error(one.rank, error)
    low, high = interval(one.counts, share)
    excess = one.counts.excess
    return SliceBound(
        dimension=one.dimension,
        value=one.value,
        pairs=one.counts.pairs,
        candidate_only=one.counts.candidate_only,
        reference_only=one.counts.reference_only,
        excess=0.0 if excess is None else excess,
        low=low,
        high=high,
        error=share,
        is_dissenting=low > margin,
    )


def _reasons(
    decision: Decision,
    low: float,
    high: float,
    dissenting: list[SliceBound],
    changed_at: tuple[datetime, ...],
    is_covered: bool,
    share: float | None,
    terms: Terms,
) -> list[str]:
    """What decided, the first line first."""
    margin = percent(terms.margin)
    if decision == "no_data":
        return ["no pair was counted in this range: nothing can be said"]
    found = []
    if decision == "mixed":
        when = ", ".join(f"{time:%F %T}" for time in changed_at)
        found.append(
            f"what served changed at {when} UTC: the pairs are of more than one thing."
            f" Give --since {changed_at[-1]:%FT%T}Z for what serves now"
        )
    if low > terms.margin:
        found.append(f"the lower bound of the excess, {signed(low)}, is over the margin of {margin}")
    found += [
        f"{one.dimension.replace('_', ' ')} {one.value} is on hold: its lower bound, {signed(one.low)},"
        f" is over the margin of {margin}"
        for one in dissenting
    ]
    if high < terms.margin:
        found.append(f"the upper bound of the excess, {signed(high)}, is under the margin of {margin}")
    elif low <= terms.margin:
        found.append(
            f"the margin of {margin} lies between the bounds of the excess, {signed(low)} and {signed(high)}"
        )
    if not is_covered:
        found.append(
            f"the comparison covers {'none' if share is None else percent(share)} of the traffic, less than"
            f" the {percent(terms.min_coverage)} asked for: never ship"
        )
    return found


def _warnings(evidence: Evidence, terms: Terms, changed_at: tuple[datetime, ...]) -> list[str]:
    found = []
    if changed_at and terms.may_mix:
        found.append(
            f"what served changed at {', '.join(f'{time:%F %T}' for time in changed_at)} UTC: the verdict is"
            " on a mixture, as --allow-changes asked"
        )
    # Without pairs nobody looked at what served.
    if evidence.tally.whole.pairs and not any(one.role == "candidate" for one in evidence.served):
        found.append("the candidate's endpoint did not say what it serves: the verdict is on its name only")
    if len(evidence.references) > 1:
        found.append("pairs of more than one reference are counted together")
    drawn = sum(one.records for one in evidence.coverage.left_out if one.reason == "sampled_out")
    chosen = evidence.coverage.consumed - drawn
    if chosen > 0 and evidence.coverage.covered < LEAST_CHOSEN * chosen:
        found.append(
            f"of the records that the sample chose only {percent(evidence.coverage.covered / chosen)} are"
            " counted: what is left out may differ"
        )
    if evidence.alerts:
        number = len(evidence.alerts)
        found.append("an alert is firing" if number == 1 else f"{number} alerts are firing")
    found += [
        f"more values of {name.replace('_', ' ')} than are looked at: only the first to appear have bounds"
        for name in evidence.tally.cut
    ]
    return found


def _need(whole: Counts, pairs_per_hour: float | None, terms: Terms) -> Need:
    excess = whole.excess
    pairs = pairs_needed(whole, terms.margin, 1.0 - terms.confidence)
    hours = None if pairs is None or pairs_per_hour is None else pairs / pairs_per_hour
    if excess is None or pairs is None:
        return Need(None, None, "neither", ASSUMPTION)
    return Need(pairs, hours, "ship" if excess < terms.margin else "hold", ASSUMPTION)
