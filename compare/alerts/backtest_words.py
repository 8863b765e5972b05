"""A backtest as a person reads it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from compare.alerts.backtest import Backtest, BaselineEnd, Found, SeriesEnd
from compare.visible import visible_line

CLOSEST = 5
"""Quiet series that are named."""


def told(run: Backtest) -> str:
    """The whole report, several lines."""
    rate = run.records / run.seconds if run.seconds else 0.0
    lines = [
        f"experiment {run.experiment}, candidate {run.candidate}: {time_text(run.since)} to"
        f" {time_text(run.until)} UTC, {run.records:,} records folded ({rate:,.0f} a second)",
        "",
        *_alerts(run),
        "",
        *_quiet(run.series),
        "",
        "baselines:",
        *(f"  {baseline_text(one)}" for one in run.baselines),
    ]
    if not run.baselines:
        lines.append("  none complete: metrics are tested against a declared tolerance, or lack pairs")
    if run.refused:
        named = ", ".join(f"{dimension} {count:,}" for dimension, count in sorted(run.refused.items()))
        lines += ["", f"pairs of slices beyond alerts.max_slices, in no detector of their own: {named}"]
    return "\n".join(lines)


def _alerts(run: Backtest) -> list[str]:
    if not run.found:
        return ["nothing would have fired"]
    groups = len({one.alert.group_key for one in run.found})
    count = len(run.found)
    lines = [f"{count} alert{'s' * (count != 1)} would have fired, in {groups} group{'s' * (groups != 1)}:"]
    for one in run.found:
        alert = one.alert
        ended = (
            f"resolved after {span_text(one.lasted_s(run.until))}"
            if one.resolved_at is not None
            else f"still firing {span_text(one.lasted_s(run.until))} later, at the end"
        )
        lines.append(
            f"  {time_text(alert.fired_at)}  {alert.severity:<8} {series_text(one)}, {ended}\n"
            f"    change seen from {time_text(alert.started_at)},"
            f" told after {alert.pairs_since_start:,} pairs\n"
            f"    {visible_line(alert.summary)}"
        )
    return lines


def series_text(found: Found) -> str:
    """The metric and its slice."""
    alert = found.alert
    inside = f" {alert.dimension} {alert.slice}" if alert.slice else ""
    return visible_line(f"{alert.metric}{inside}")


def _quiet(series: list[SeriesEnd]) -> list[str]:
    if not series:
        return ["no series moved: no settled pairs in that time"]
    counts = Counter(one.status for one in series)
    named = ", ".join(f"{counts[status]} {status.replace('_', ' ')}" for status in sorted(counts))
    lines = [f"{len(series)} series at the end: {named}"]
    quiet = [one for one in series if one.closest < 1 and one.status in ("running", "pending")]
    closest = sorted(quiet, key=lambda one: (-one.closest, one.key))[:CLOSEST]
    if closest and closest[0].closest > 0:
        lines.append("quiet ones that came closest to their threshold:")
        for one in closest:
            inside = f" {one.key.dimension} {one.key.value}" if one.key.value else ""
            level = "" if one.tolerated is None else f", tolerated {one.tolerated:.4g}"
            lines.append(
                visible_line(
                    f"  {one.key.metric}{inside}: {one.closest:.2%} of it, {one.pairs:,} pairs{level}"
                )
            )
    return lines


def baseline_text(one: BaselineEnd) -> str:
    """One line: whose, of which pairs, and what it allows."""
    if not one.is_complete:
        return f"{one.metric}: not complete at the end of the period"
    who = "learned" if one.chosen_by == "program" else "chosen"
    times = ""
    if one.from_at is not None and one.to_at is not None:
        times = f" of {time_text(one.from_at)} to {time_text(one.to_at)}"
    mean = "" if one.mean is None else f"mean {one.mean:.4g}, "
    bound = "" if one.bound is None else f"bound {one.bound:.4g}, "
    return (
        f"{one.metric}: {who} from {one.pairs:,} pairs{times} (version {one.version}): {mean}{bound}"
        f"swing {one.swing:.4g}, {one.own_slices} slices with their own"
    )


def time_text(time: datetime) -> str:
    """To the second, in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def span_text(seconds: float) -> str:
    """Two units at most: `3 d 4 h`, `5 min`, `12 s`."""
    left = int(seconds)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        count, left = divmod(left, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:2])
