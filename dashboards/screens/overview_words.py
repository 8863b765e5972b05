"""A verdict's sentences in the page's language, made from its numbers.

`compare.ship` has them in English, for the command and its reports; here is the same in both languages. What
the numbers do not tell stays as it is there.
"""

from __future__ import annotations

from datetime import timedelta

from compare.ship.decide import LEAST_CHOSEN
from compare.ship.model import Need, ShipVerdict, SliceBound
from compare.ship.words import about, percent, signed, whole
from dashboards.screens.alert_further import dimension
from dashboards.words import Words


def headline(say: Words, verdict: ShipVerdict) -> str:
    """The decision in a few words."""
    need = verdict.need
    if need is not None and need.pairs is not None:
        return say("overview.decision_need_pairs", pairs=about(need.pairs))
    return say(f"overview.decision_{verdict.decision}")


def bounds(say: Words, verdict: ShipVerdict) -> str:
    """The excess with its interval; Markdown."""
    if verdict.excess is None:
        return say("overview.no_pair")
    return say(
        "overview.bounds",
        excess=signed(verdict.excess),
        confidence=percent(verdict.terms.confidence),
        low=signed(verdict.low),
        high=signed(verdict.high),
        margin=percent(verdict.terms.margin),
    )


def counts(say: Words, verdict: ShipVerdict) -> str:
    """The numbers that the bounds are made from."""
    return say(
        "overview.counts",
        **{
            name: whole(getattr(verdict, name))
            for name in ("pairs", "candidate_only", "reference_only", "repeats")
        },
    )


def coverage(say: Words, verdict: ShipVerdict) -> str:
    """The share of the traffic that the comparison speaks for."""
    found = verdict.coverage
    if found.share is None:
        return say("overview.coverage_none")
    return say(
        "overview.coverage",
        share=percent(found.share),
        covered=whole(found.covered),
        consumed=whole(found.consumed),
    ) + _drawn(say, verdict)


def _drawn(say: Words, verdict: ShipVerdict) -> str:
    """How many of them the sample left out, where it did."""
    found = verdict.coverage
    count = sum(one.records for one in found.left_out if one.reason == "sampled_out")
    if not count:
        return ""
    return say("overview.coverage_drawn", count=whole(count), share=percent(count / found.consumed))


def need_line(say: Words, need: Need) -> str:
    """What more pairs would do."""
    if need.pairs is None:
        return say("overview.need_none")
    when = "" if need.hours is None else say("overview.need_when", time=length(say, need.hours))
    return say(
        "overview.need_line",
        pairs=about(need.pairs),
        towards=say(f"overview.towards_{need.towards}"),
        when=when,
    )


def length(say: Words, hours: float) -> str:
    """How long, in the unit that fits."""
    if hours < 1.5:
        return say("overview.minutes", count=max(1, round(hours * 60)))
    if hours < 48:
        return say("overview.hours", count=f"{hours:.0f}")
    return say("overview.days", count=f"{hours / 24:.0f}")


def stretch(say: Words, time: timedelta) -> str:
    """How long, from seconds to days."""
    seconds = max(time.total_seconds(), 0.0)
    if seconds < 90:
        return say("overview.seconds", number=f"{seconds:.0f}")
    return length(say, seconds / 3600)


def slice_name(say: Words, one: SliceBound) -> str:
    """`route extract`; its value is a stranger's text."""
    return f"{dimension(say, one.dimension)} {one.value}"


def reasons(say: Words, verdict: ShipVerdict) -> list[str]:
    """What decided, the first line first, as `compare.ship.decide` says it; with strangers' text."""
    terms, low, high = verdict.terms, verdict.low, verdict.high
    margin = percent(terms.margin)
    if verdict.decision == "no_data":
        return [say("overview.reason_no_data")]
    found = []
    if verdict.decision == "mixed":
        since = f"{verdict.changed_at[-1]:%FT%T}Z"
        found.append(say("overview.reason_mixed", when=_changes(verdict), since=since))
    if low > terms.margin:
        found.append(say("overview.reason_low", low=signed(low), margin=margin))
    found += [
        say(
            "overview.reason_slice",
            dimension=dimension(say, one.dimension),
            value=one.value,
            low=signed(one.low),
            margin=margin,
        )
        for one in verdict.slices
        if one.is_dissenting
    ]
    if high < terms.margin:
        found.append(say("overview.reason_high", high=signed(high), margin=margin))
    elif low <= terms.margin:
        found.append(say("overview.reason_between", margin=margin, low=signed(low), high=signed(high)))
    share = verdict.coverage.share
    if share is None or share < terms.min_coverage:
        covers = say("overview.coverage_share_none") if share is None else percent(share)
        found.append(say("overview.reason_coverage", share=covers, least=percent(terms.min_coverage)))
    return found


def warnings(say: Words, verdict: ShipVerdict) -> list[str]:
    """What to mind. A warning that the numbers do not tell is said as `compare.ship` says it, in English."""
    found = []
    if verdict.changed_at and verdict.terms.may_mix:
        found.append(say("overview.warning_mixed", when=_changes(verdict)))
    if verdict.pairs and not any(one.role == "candidate" for one in verdict.served):
        found.append(say("overview.warning_served"))
    if len(verdict.references) > 1:
        found.append(say("overview.warning_references"))
    drawn = sum(one.records for one in verdict.coverage.left_out if one.reason == "sampled_out")
    chosen = verdict.coverage.consumed - drawn
    if chosen > 0 and verdict.coverage.covered < LEAST_CHOSEN * chosen:
        found.append(say("overview.warning_chosen", share=percent(verdict.coverage.covered / chosen)))
    if verdict.alerts:
        number = len(verdict.alerts)
        found.append(
            say("overview.warning_alert") if number == 1 else say("overview.warning_alerts", count=number)
        )
    # Which dimensions were cut short is told in words only; they come last.
    return found + list(verdict.warnings[len(found) :])


def _changes(verdict: ShipVerdict) -> str:
    return ", ".join(f"{time:%F %T}" for time in verdict.changed_at)
