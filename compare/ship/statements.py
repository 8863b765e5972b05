"""The sentences of a verdict, the same in the terminal, in Markdown and in HTML; names as they are stored."""

from __future__ import annotations

from compare.floor import Excess
from compare.ship.model import (
    Decision,
    LeftOut,
    OpenAlert,
    ServedNow,
    ShipVerdict,
    SliceBound,
    Support,
    Validity,
    WorstPair,
)
from compare.ship.words import about, length, moment, number, percent, signed, whole

HEADLINES: dict[Decision, str] = {
    "ship": "Ship",
    "hold": "Hold",
    "need_more": "Need more pairs",
    "no_data": "No data",
    "mixed": "No verdict: what served changed",
}

MARKS: dict[Decision, str] = {"ship": "✓", "hold": "✕", "need_more": "…", "no_data": "?", "mixed": "≠"}
"""Beside the word, so that no colour has to be told apart."""


SUPPORT_HEADS = (
    "score",
    "pairs",
    "mean",
    "worst 1 %",
    "noise floor, and the candidate in the same requests",
    "excess: the candidate's less the floor, turned so that more is worse (95 %, one look)",
)
SLICE_HEADS = ("slice", "pairs", "candidate only", "reference only", "excess", "bounds", "")
MOST_PLACES = 4
"""Slices that a line of alerts names."""
WORST_HEADS = ("request id", "families", "severity", "cause", "route", "time (UTC)")


def headline(verdict: ShipVerdict) -> str:
    """The decision in a few words."""
    need = verdict.need
    if need is not None and need.pairs is not None:
        return f"Need about {about(need.pairs)} more pairs"
    return HEADLINES[verdict.decision]


def need_line(verdict: ShipVerdict) -> str | None:
    """What more pairs would do, with the assumption; None where the question does not stand."""
    need = verdict.need
    if need is None:
        return None
    if need.pairs is None:
        return "no number of pairs can be named: the excess seen is at the margin, or too close to it"
    when = "rate not known yet" if need.hours is None else f"{length(need.hours)} at the rate seen"
    return f"about {about(need.pairs)} more pairs to {need.towards}, {when}, if {need.assumption}"


def bound_line(verdict: ShipVerdict) -> str:
    """The excess with its interval and counts."""
    if verdict.excess is None:
        return "no pair was counted"
    terms = verdict.terms
    return (
        f"excess of candidate-only faults {signed(verdict.excess)}, {percent(terms.confidence)} interval"
        f" {signed(verdict.low)} to {signed(verdict.high)} at all times, margin {percent(terms.margin)}"
    )


def counts_line(verdict: ShipVerdict) -> str:
    """The numbers that the bound is made from."""
    return (
        f"{whole(verdict.pairs)} pairs counted: only the candidate faulty in {whole(verdict.candidate_only)},"
        f" only the reference in {whole(verdict.reference_only)}; {whole(verdict.repeats)} repeats of a"
        " request within an hour count with the first"
    )


def coverage_line(verdict: ShipVerdict) -> str:
    """The share of traffic that the comparison speaks for."""
    coverage = verdict.coverage
    if coverage.share is None:
        return "nothing was consumed"
    records = f"{whole(coverage.covered)} of {whole(coverage.consumed)} records"
    return f"{percent(coverage.share)} of the traffic: {records}"


def range_line(verdict: ShipVerdict) -> str:
    """The time that the counted pairs span."""
    return f"{moment(verdict.first_at)} to {moment(verdict.last_at)} UTC"


def support_cells(support: Support) -> tuple[str, str, str, str, str, str]:
    """Under `SUPPORT_HEADS`."""
    unit = "" if support.unit in ("", "ratio") else f" {support.unit}"
    floor, excess = _floor_cells(support.floor, is_turned=support.direction == "higher is better")
    return (
        support.metric,
        whole(support.pairs),
        number(support.mean) + unit,
        number(support.worst_1_percent) + unit,
        floor,
        excess,
    )


def _floor_cells(floor: Excess | None, *, is_turned: bool) -> tuple[str, str]:
    if floor is None:
        return "not measured", "-"
    within = (
        "no interval"
        if floor.low is None or floor.high is None
        else f"{number(floor.low)} to {number(floor.high)}"
    )
    # A distance of a score where more is better is its negative; as a floor it is shown as the score is. The
    # candidate's mean stands beside it: that of all pairs is of others, and less the floor is no excess.
    own, candidate = (0.0 - value if is_turned else value for value in (floor.floor, floor.candidate))
    return (
        f"{number(own)}, candidate {number(candidate)} in the same {whole(floor.requests)} asked twice",
        f"{number(floor.excess)} ({within})",
    )


def slice_cells(one: SliceBound) -> tuple[str, str, str, str, str, str, str]:
    """Under `SLICE_HEADS`."""
    return (
        f"{one.dimension.replace('_', ' ')} {one.value}",
        whole(one.pairs),
        whole(one.candidate_only),
        whole(one.reference_only),
        signed(one.excess),
        f"{signed(one.low)} to {signed(one.high)}",
        "on hold" if one.is_dissenting else "",
    )


def worst_cells(pair: WorstPair) -> tuple[str, str, str, str, str, str]:
    """Under `WORST_HEADS`."""
    return (
        pair.request_id,
        ", ".join(pair.families),
        f"{pair.severity:.2f}",
        pair.probable_cause,
        pair.route,
        moment(pair.mirrored_at),
    )


def left_out_line(one: LeftOut) -> str:
    """Records that no rate counts, with the reason."""
    return f"{one.kind.replace('_', ' ')}: {one.reason.replace('_', ' ') or 'no reason stored'}"


def alert_lines(verdict: ShipVerdict) -> list[str]:
    """The alerts that are firing, a line for each metric; none where no pair was counted.

    One cause raises the alerts of a metric in many slices, with nearly the same words: here is where and
    since when, and the command that shows the rest.
    """
    if verdict.decision == "no_data":
        return []
    by_metric: dict[str, list[OpenAlert]] = {}
    for alert in verdict.alerts:
        by_metric.setdefault(alert.metric, []).append(alert)
    return [_alert_line(metric, alerts) for metric, alerts in by_metric.items()]


def _alert_line(metric: str, alerts: list[OpenAlert]) -> str:
    # The whole experiment's first, which stands for the rest.
    alerts = sorted(alerts, key=lambda one: (one.dimension != "experiment", one.severity != "critical"))
    severity = "critical" if any(one.severity == "critical" for one in alerts) else alerts[0].severity
    places = ["the whole"] if alerts[0].dimension == "experiment" else []
    places += [
        f"{one.dimension.replace('_', ' ')} {one.slice}" for one in alerts if one.dimension != "experiment"
    ]
    more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    since = moment(min(one.fired_at for one in alerts))
    return (
        f"{metric}, {severity}, since {since} UTC: {', '.join(places[:MOST_PLACES])}{more};"
        f" gnomon alerts show {alerts[0].alert_id[:12]}"
    )


def validity_line(validity: Validity) -> str:
    """Answers that do not fit, by side, beside the reference against itself."""
    name = "fit a schema" if validity.kind == "schema" else "be JSON"
    noise = "no noise pair has such answers"
    if validity.noise_pairs:
        flips = f"{whole(validity.noise_flips)} of {whole(validity.noise_pairs)}"
        noise = f"the reference against itself differs in {flips}"
    return (
        f"of {whole(validity.pairs)} pairs whose answers should {name}, only the candidate's does"
        f" not in {whole(validity.candidate_only_invalid)}, only the reference's in"
        f" {whole(validity.reference_only_invalid)}; {noise}"
    )


def served_line(served: ServedNow) -> str:
    """What one endpoint said that it serves."""
    told = [
        served.model,
        served.quantization,
        " ".join(part for part in (served.engine, served.engine_version) if part) or None,
        f"weights sha256 {served.weights_sha256[:16]}" if served.weights_sha256 else None,
        f"file {served.model_file}" if served.model_file else None,
        f"{whole(served.weights_bytes)} bytes" if served.weights_bytes is not None else None,
        f"config {served.config_hash[:16]}" if served.config_hash else None,
        f"chat template {served.chat_template_sha256[:16]}" if served.chat_template_sha256 else None,
        f"context {whole(served.context_tokens)} tokens" if served.context_tokens is not None else None,
    ]
    until = "" if served.until_at is None else f" until {moment(served.until_at)}"
    return (
        f"{served.role} {served.endpoint_name}: {', '.join(part for part in told if part) or 'nothing told'};"
        f" since {moment(served.seen_at)}{until}"
    )
