"""Numbers of an alert in words, alike in every sink and on the terminal."""

from __future__ import annotations

from datetime import datetime, timedelta

from compare.alerts.alert import Alert
from compare.alerts.evidence import FEW_BEFORE, Evidence
from compare.visible import visible_line

_LONGEST_NAME = 80


def at(time: datetime) -> str:
    """`2026-11-30 03:00:10 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def fired(raised_at: datetime, pair_at: datetime | None) -> str:
    """When it was raised by the clock, and when its pair was mirrored if that was a minute or more before."""
    if pair_at is None or raised_at - pair_at < timedelta(minutes=1):
        return at(raised_at)
    return f"{at(raised_at)} (the pair that raised it was mirrored {at(pair_at)})"


def where(alert: Alert) -> str:
    """Whose alert it is: experiment, candidate, and the slice if there is one. Names come from traffic."""
    text = f"{name(alert.experiment)}: candidate {name(alert.candidate)}"
    return text if alert.dimension == "experiment" else f"{text}, {alert.dimension} {name(alert.slice)}"


def name(text: str) -> str:
    """A name from the traffic as it may be shown: on one line, nothing hidden, not too long."""
    return visible_line(text, _LONGEST_NAME)


def value(unit: str, number: float | None) -> str:
    """A value of a metric in its unit."""
    if number is None:
        return "unknown"
    if unit == "rate":
        return f"{number:.2%}"
    if unit == "ratio":
        return f"{number:.3g} times"
    return f"{number:.4g} nats" if unit == "nats" else f"{number:.3f}"


def interval(unit: str, low: float | None, high: float | None) -> str:
    """`95 % interval A to B`, empty where there is none."""
    if low is None or high is None:
        return ""
    return f"95 % interval {value(unit, low)} to {value(unit, high)}"


def change(evidence: Evidence) -> str:
    """Since when, with its uncertainty."""
    if evidence.change_at is None:
        return ""
    began = at(evidence.change_at)
    if evidence.change_earliest_at is None or evidence.change_latest_at is None:
        return f"{began}, by the detector's own estimate"
    if evidence.change_earliest_at == evidence.change_latest_at:
        return f"{began}, to the pair (95 % sure)"
    return (
        f"{began} (95 % sure: {at(evidence.change_earliest_at)} to {at(evidence.change_latest_at)},"
        f" {evidence.change_pairs} possible starts)"
    )


def effect(metric: str, evidence: Evidence) -> str:
    """The metric before and since, and the difference, with intervals."""
    unit = evidence.unit
    if evidence.value_since is None:
        return ""
    text = f"{metric} {value(unit, evidence.value_since)} in {_pairs(evidence.pairs_since)}"
    if around := interval(unit, evidence.value_low, evidence.value_high):
        text += f" ({around})"
    if evidence.value_before is None:
        return text
    if evidence.pairs_before < FEW_BEFORE:
        return f"{text}; before not shown: {_pairs(evidence.pairs_before)}, under {FEW_BEFORE}"
    text += f", before {value(unit, evidence.value_before)} in {evidence.pairs_before}"
    if evidence.effect is None:
        return text
    sign = "" if unit == "ratio" else "+" if evidence.effect >= 0 else ""
    text += f"; change {sign}{value(unit, evidence.effect)}"
    around = interval(unit, evidence.effect_low, evidence.effect_high)
    return f"{text} ({around})" if around else text


def _pairs(count: int) -> str:
    return "1 pair" if count == 1 else f"{count} pairs"


def floor(metric: str, evidence: Evidence) -> str:
    """The noise floor, and what is left over it."""
    if evidence.noise_floor is None:
        return "not measured: no request of this slice was asked twice" if evidence.unit else ""
    if metric in ("regression_rate", "candidate_only_excess"):
        return (
            "not measured: second answers are not searched for faults; in its place, the reference alone is"
            f" faulty in {value('rate', evidence.noise_floor)} of {evidence.noise_requests} pairs"
        )
    # Distances: those of a ratio are of its logarithm.
    unit = "score" if evidence.unit == "ratio" else evidence.unit
    # The distance of a score where more is better is the score with its sign turned.
    if metric in ("cosine_similarity", "top1_agreement_forced"):
        text = f"score of an endpoint against itself {value(unit, 0.0 - evidence.noise_floor)}"
    else:
        text = f"distance of an endpoint to itself {value(unit, evidence.noise_floor)}"
    if evidence.excess is not None:
        text += f", excess of the candidate {value(unit, evidence.excess)}"
        if around := interval(unit, evidence.excess_low, evidence.excess_high):
            text += f" ({around})"
    return f"{text}, {evidence.noise_requests} requests asked twice"


def suspected(evidence: Evidence) -> str:
    """What served before and after, a line for each endpoint that changed."""
    if evidence.change_at is None:
        return ""
    lines = [
        f"{one.role} {name(one.endpoint_name)} seen at {at(one.seen_at)}:"
        f" {visible_line(one.before, 300)} -> {visible_line(one.after, 300)}".replace("  ", " ")
        for one in evidence.served_changes
    ]
    return "\n".join(lines) or "no endpoint told of another model, engine or configuration about then"


def tests(evidence: Evidence) -> str:
    """The descriptive tests and the slices that stand out, a line each."""
    lines = [
        f"{one.name}: {one.statistic:.4g}" + ("" if one.p_value is None else f", p = {one.p_value:.2g}")
        for one in evidence.tests
    ]
    unit = "score" if evidence.unit == "ratio" else evidence.unit
    lines += [
        f"{one.dimension} {name(one.slice)}: {'+' if one.effect >= 0 else ''}{value(unit, one.effect)}"
        f" in {_pairs(one.pairs)}, adjusted p = {one.p_adjusted:.2g}"
        for one in evidence.slices[:5]
        if one.p_adjusted <= 0.05
    ]
    return "\n".join(lines)


def power(kind: str, evidence: Evidence) -> str:
    """The least change that the detector would show at today's traffic."""
    if not evidence.pairs_per_hour:
        return "the rate of pairs is not known yet: too few, or in too short a time" if evidence.unit else ""
    traffic = f"{evidence.pairs_per_hour:.0f} pairs an hour"
    if evidence.detectable is None:
        return f"at {traffic} no change would be seen within {evidence.detectable_hours:.0f} h"
    least = {
        "bounded_mean": f"a fall of the mean by {evidence.detectable:.3f}",
        "rank": f"a rise of all values by {evidence.detectable:.3g} times",
        "candidate_only_excess": f"an excess of {evidence.detectable:.2%}",
    }.get(kind, f"a rate of {evidence.detectable:.2%}")
    return f"at {traffic}, {least} would be seen within {evidence.detectable_hours:.0f} h"


def families(evidence: Evidence) -> str:
    """Fault families, or reasons, with their counts."""
    return ", ".join(f"{name(one.family)} {one.pairs}" for one in evidence.families)


def evidence_summary(alert: Alert, evidence: Evidence) -> str:
    """One line for a person at night: who, what, how much, since when, and what may be the cause."""
    line = f"{where(alert)}: {effect(alert.metric, evidence)}"
    if evidence.change_at is not None:
        line += f"; since {at(evidence.change_at)}"
    if alert.kind in ("regression_rate", "candidate_only_excess", "accounting_rate", ""):
        line += f"; tolerated {alert.tolerated:.2%}"
    if found := families(evidence):
        line += f"; {'reasons' if alert.category == 'accounting' else 'faults'}: {found}"
    for one in evidence.served_changes[:1]:
        line += f"; {one.role} {name(one.endpoint_name)} changed: {visible_line(one.after, 120)}"
    return line if alert.resolved_at is None else f"resolved {at(alert.resolved_at)}: {line}"
