"""A rule on a page's history: pure, and the same whatever was asked before.

`increase` and `rate` allow for a counter that began anew, as Prometheus does, but state what was seen and no
more: nothing is added for the edges of the window.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from compare.rollback.looks import Look, Series
from ingest.settings_rollback import WINDOWED, RollbackRule

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_GROWS = (">", ">=")
"""What a window has shown cannot be taken back by what it has not shown yet."""
_SHOWN_SERIES = 5

PageState = Literal["firing", "unknown", "quiet", "absent"]


class Finding(msgspec.Struct, frozen=True):
    """What a rule makes of one page. `series`: those that fire, else some of those that fit."""

    state: PageState
    summary: str
    series: tuple[dict[str, Any], ...] = ()


def judge(rule: RollbackRule, looks: Sequence[Look], *, interval_s: float) -> Finding:
    """Judge a page by its looks, oldest first; at least one. `interval_s` is the usual time between two.

    `absent`: the page was read and never held such a series. `unknown`: it cannot be read now, no longer
    holds what it held, or has not been watched for long enough.
    """
    last = looks[-1]
    known: set[Series] = {key for look in looks for key in look.values or () if _fits(rule, key)}
    if last.values is None:
        if known or all(look.values is None for look in looks):
            return Finding("unknown", last.problem)
        return Finding("absent", last.problem)
    if not known:
        return Finding("absent", "the page holds no such metric")
    present = sorted(key for key in known if key in last.values)
    judged = [(_of_series(rule, looks, key, interval_s), key) for key in present]
    firing = [one for one, _ in judged if one.state == "firing"]
    if firing:
        more = f" (and {len(firing) - 1} more)" if len(firing) > 1 else ""
        return Finding("firing", firing[0].summary + more, _series_of(firing))
    gone = sorted(known.difference(present))
    if gone:
        return Finding("unknown", f"{_shown(gone[0])} is no longer on the page")
    unknown = [one for one, _ in judged if one.state == "unknown"]
    first = (unknown or [one for one, _ in judged])[0]
    return Finding(first.state, first.summary, _series_of([one for one, _ in judged]))


def _series_of(findings: Sequence[Finding]) -> tuple[dict[str, Any], ...]:
    return tuple(one for finding in findings[:_SHOWN_SERIES] for one in finding.series)


def _fits(rule: RollbackRule, key: Series) -> bool:
    name, labels = key
    return name in rule.metrics and rule.labels.items() <= dict(labels).items()


def _of_series(rule: RollbackRule, looks: Sequence[Look], key: Series, interval_s: float) -> Finding:
    """Judge one series that the last look holds."""
    reading = read(rule, looks, key, interval_s)
    name = _shown(key)
    unit = f" in {rule.over_s:g} s" if rule.of in WINDOWED else ""
    if reading is None:
        return Finding("unknown", f"{name}: not watched long enough for its {rule.of}{unit}")
    evidence = {"series": name, "of": rule.of, "reading": reading, "at_s": looks[-1].at_s}
    what = f"{name}: {'' if rule.of == 'value' else rule.of + unit + ' '}{reading:g}"
    if not _COMPARE[rule.when](reading, rule.threshold):
        return Finding("quiet", f"{what}, not {rule.when} {rule.threshold:g}", (evidence,))
    held_s = _held_s(rule, looks, key, interval_s)
    evidence["held_s"] = held_s
    what += f" {rule.when} {rule.threshold:g}"
    if held_s < rule.for_s:
        return Finding("quiet", f"{what} for {held_s:.0f} s, {rule.for_s:g} s are needed", (evidence,))
    lasting = f" for {held_s:.0f} s" if rule.for_s else ""
    return Finding("firing", what + lasting, (evidence,))


def _held_s(rule: RollbackRule, looks: Sequence[Look], key: Series, interval_s: float) -> float:
    """Return for how long the rule has been true at every look that could be taken, without a long gap."""
    end = since = looks[-1].at_s
    for count in range(len(looks) - 1, 0, -1):
        look = looks[count - 1]
        if since - look.at_s > 3 * interval_s or end - since >= rule.for_s:
            break
        if look.values is None:
            continue
        reading = read(rule, looks[:count], key, interval_s)
        if reading is None or not _COMPARE[rule.when](reading, rule.threshold):
            break
        since = look.at_s
    return end - since


def read(rule: RollbackRule, looks: Sequence[Look], key: Series, interval_s: float) -> float | None:
    """Return what the rule reads of one series at the last look; None while that cannot be said."""
    last = looks[-1]
    value = None if last.values is None else last.values.get(key)
    if value is None:
        return None
    if rule.of == "value":
        return value
    if rule.of == "age":
        return last.at_s - value
    start_s = last.at_s - rule.over_s
    seen = [look for look in looks if look.at_s >= start_s and look.values is not None]
    points = [(look.at_s, look.values[key]) for look in seen if look.values and key in look.values]
    if rule.of != "changes" and len(points) < len(seen) and seen[0].at_s < points[0][0]:
        # The page was read and did not hold it: a counter that appears has counted from nothing.
        before = max(look.at_s for look in seen if look.at_s < points[0][0])
        points.insert(0, (before, 0.0))
    if len(points) < 2:
        return None
    steps = [(points[i][1], points[i + 1][1]) for i in range(len(points) - 1)]
    if rule.of != "rate" and rule.when not in _GROWS and points[0][0] - start_s > 1.5 * interval_s:
        return None
    if rule.of == "changes":
        return float(sum(old != new for old, new in steps))
    increase = sum(new - old if new >= old else new for old, new in steps)
    return increase if rule.of == "increase" else increase / (points[-1][0] - points[0][0])


def _shown(key: Series) -> str:
    name, labels = key
    inside = ",".join(f'{label}="{value}"' for label, value in labels)
    text = f"{name}{{{inside}}}" if inside else name
    return text if len(text) <= 200 else text[:200] + "..."
