"""When a group is told: decided by hand-made groups, minute by minute."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import msgspec
import pytest

from compare.alerts import words
from compare.alerts.actions import Acknowledgement, Actions, Matcher, Silence, Target
from compare.alerts.alert import Alert, Category
from compare.alerts.groups import Group
from compare.alerts.life_group import WINDOW_MS, choose_group
from compare.alerts.metrics import BY_NAME
from compare.alerts.notice import Notice, Reason
from compare.alerts.notify import make_notice, reason_now
from compare.alerts.sinks.text import default_body, fields
from compare.row_values import milliseconds
from ingest.settings_notify import NotifySettings
from tests.compare.alerts.made import alert, evidence, group, now, resolved
from tests.docs.pages import ROOT, anchors

SETTINGS = NotifySettings(renotify_s=3600.0, update_interval_s=300.0)
T = now()


def at(minutes: float) -> datetime:
    return T + timedelta(minutes=minutes)


FIRST, SECOND = alert("a" * 32, T), alert("b" * 32, at(1), dimension="route", slice="chat")


def told(one: Group, reason: Reason, minutes: float) -> Group:
    notice = make_notice(one, reason, SETTINGS, at(minutes))
    return msgspec.structs.replace(one, notices=(*one.notices, notice))


def silence(matcher: Matcher, minutes: float) -> Silence:
    return Silence("s", matcher, T, at(minutes), "me@host", "")


def acknowledged(one: Alert, by: str = "me@host", note: str = "") -> Actions:
    return Actions((Acknowledgement(Target(one.experiment, one.group_key, one.alert_id), T, by, note),))


def reasons(one: Group, until: int) -> list[tuple[int, Reason]]:
    """What is told minute by minute, each remembered."""
    found: list[tuple[int, Reason]] = []
    for minute in range(until):
        reason = reason_now(one, SETTINGS, at(minute))
        if reason is not None:
            found.append((minute, reason))
            one = told(one, reason, minute)
    return found


def test_told_once_then_reminded_each_hour() -> None:
    assert reasons(group(FIRST), 130) == [(0, "fired"), (60, "reminder"), (120, "reminder")]


def test_members_that_join_are_told_together_and_not_too_often() -> None:
    one = told(group(FIRST), "fired", 0)
    three = msgspec.structs.replace(one, alerts=(FIRST, SECOND, alert("c" * 32, at(2))))
    assert reasons(three, 20) == [(5, "members")]


def test_a_rise_of_severity_is_told_at_once_and_once() -> None:
    one = told(group(FIRST), "fired", 0)
    worse = msgspec.structs.replace(one, evidence={FIRST.alert_id: evidence(FIRST, severity="critical")})
    assert reasons(worse, 30) == [(0, "severity")]
    notice = make_notice(worse, "severity", SETTINGS, T)
    assert (notice.severity, notice.told_severities, notice.number) == ("critical", ("warning",), 2)


def test_resolved_when_all_members_are() -> None:
    one = told(group(FIRST, SECOND), "fired", 0)
    half = msgspec.structs.replace(one, alerts=(resolved(FIRST, at(3)), SECOND))
    assert reasons(half, 30) == []
    over = msgspec.structs.replace(one, alerts=(resolved(FIRST, at(3)), resolved(SECOND, at(9))))
    assert reasons(over, 200) == [(0, "resolved")]
    notice = make_notice(over, "resolved", SETTINGS, at(9))
    assert (notice.state, notice.resolved_at, notice.severity) == ("resolved", at(9), "warning")


def test_a_group_that_was_over_before_anybody_was_told_is_told_once() -> None:
    assert reasons(group(resolved(FIRST, at(1))), 200) == [(0, "resolved")]


def test_acknowledged_sends_no_reminder_but_tells_what_is_new() -> None:
    one = msgspec.structs.replace(told(group(FIRST), "fired", 0), actions=acknowledged(FIRST, note="on it"))
    assert reasons(one, 200) == []
    joined = msgspec.structs.replace(one, alerts=(FIRST, SECOND))
    # The one that joined is not acknowledged: it is told, and then reminded of.
    assert reasons(joined, 70) == [(5, "members"), (65, "reminder")]
    assert make_notice(one, "reminder", SETTINGS, T).acknowledged == "me@host: on it"


def test_a_group_acknowledged_as_a_whole_sends_no_reminder_for_new_members() -> None:
    actions = Actions((Acknowledgement(Target("e", FIRST.group_key), T, "me", ""),))
    one = msgspec.structs.replace(told(group(FIRST), "fired", 0), actions=actions, alerts=(FIRST, SECOND))
    assert reasons(one, 200) == [(5, "members")]


def test_silenced_is_told_when_the_silence_ends() -> None:
    actions = Actions(silences=(silence(Matcher(alert_id=FIRST.alert_id), 45),))
    assert reasons(group(FIRST, actions=actions), 50) == [(45, "fired")]


def test_silence_ends_early_by_unsilence() -> None:
    early = msgspec.structs.replace(silence(Matcher(experiment="e"), 45), ended_at=at(10))
    assert reasons(group(FIRST, actions=Actions(silences=(early,))), 30) == [(10, "fired")]


def test_a_silent_group_that_was_told_before_is_told_its_end() -> None:
    quiet = Actions(silences=(silence(Matcher(metric="regression_rate"), 600),))
    one = msgspec.structs.replace(told(group(FIRST), "fired", 0), actions=quiet)
    assert reasons(one, 130) == []
    over = msgspec.structs.replace(one, alerts=(resolved(FIRST, at(130)),))
    assert reasons(over, 10) == [(0, "resolved")]


@pytest.mark.parametrize(
    "matcher",
    [Matcher(alert_id=FIRST.alert_id), Matcher(group_key=FIRST.group_key), Matcher(metric=FIRST.metric)],
)
@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_a_told_alert_is_told_again_when_its_silence_ends(matcher: Matcher, is_acknowledged: bool) -> None:
    acks = acknowledged(FIRST).acknowledgements if is_acknowledged else ()
    one = told(group(FIRST, SECOND), "fired", 0)
    one = msgspec.structs.replace(one, actions=Actions(acks, (silence(matcher, 10),)))
    # Once; and an hour after that as if it had just been told.
    assert reasons(one, 80) == [(10, "unsilenced"), (70, "reminder")]


def test_an_acknowledged_alert_comes_back_once() -> None:
    actions = Actions(acknowledged(FIRST).acknowledgements, (silence(Matcher(alert_id=FIRST.alert_id), 10),))
    one = msgspec.structs.replace(told(group(FIRST), "fired", 0), actions=actions)
    assert reasons(one, 200) == [(10, "unsilenced")]


def test_the_end_of_one_silence_under_another_is_not_told() -> None:
    both = (silence(Matcher(alert_id=FIRST.alert_id), 10), silence(Matcher(metric=FIRST.metric), 30))
    one = msgspec.structs.replace(told(group(FIRST), "fired", 0), actions=Actions(silences=both))
    assert reasons(one, 50) == [(30, "unsilenced")]


def test_the_end_of_a_silence_that_another_notice_told_meanwhile_is_not_told_again() -> None:
    early = msgspec.structs.replace(silence(Matcher(metric=FIRST.metric), 45), ended_at=at(3))
    one = told(group(FIRST, SECOND), "fired", 0)
    one = msgspec.structs.replace(told(one, "members", 4), actions=Actions(silences=(early,)))
    assert reasons(one, 50) == []


def test_a_group_silent_from_beginning_to_end_is_never_told() -> None:
    quiet = Actions(silences=(silence(Matcher(candidate="q4"), 5),))
    assert reasons(group(resolved(FIRST, at(3)), actions=quiet), 200) == []


def test_one_silent_member_does_not_silence_the_others() -> None:
    quiet = Actions(silences=(silence(Matcher(dimension="route", slice="chat"), 600),))
    one = group(FIRST, SECOND, actions=quiet)
    assert reasons(one, 30) == [(0, "fired")]
    notice = make_notice(one, "fired", SETTINGS, T)
    assert [member.is_silenced for member in notice.members] == [False, True]


@pytest.mark.parametrize(
    ("matcher", "covers"),
    [
        (Matcher(metric="regression_rate"), True),
        (Matcher(metric="kl_forced"), False),
        (Matcher(dimension="route", slice="chat"), True),
        (Matcher(dimension="route", slice="extract"), False),
        (Matcher(experiment="e", candidate="q8"), False),
        (Matcher(group_key="g" * 32), True),
        (Matcher(group_key="g" * 32, alert_id="z"), False),
    ],
)
def test_what_a_matcher_covers(matcher: Matcher, covers: bool) -> None:
    assert matcher.covers(SECOND) == covers


def test_a_notice_survives_json() -> None:
    notice = make_notice(group(FIRST, SECOND), "fired", SETTINGS, T)
    assert msgspec.json.decode(msgspec.json.encode(notice), type=Notice) == notice


def test_alerts_of_one_time_and_category_are_one_group() -> None:
    start = milliseconds(FIRST.started_at)
    joined = choose_group("new", "drift", start + 60_000, [FIRST])
    assert joined == FIRST.group_key
    assert choose_group("new", "drift", start + WINDOW_MS + 1, [FIRST]) == "new"
    assert choose_group("new", "accounting", start, [FIRST]) == "new"
    later = alert("d" * 32, at(50), group_key="h" * 32)
    # Both are near: the nearer start decides.
    assert choose_group("new", "drift", milliseconds(later.started_at), [FIRST, later]) == "h" * 32


@pytest.mark.parametrize("metric", [*BY_NAME, "no_data", "golden_mean_score", "rollback"])
def test_each_notice_names_its_runbook(metric: str) -> None:
    category: Category = "drift"
    if metric in ("no_data", "rollback"):
        category = cast("Category", metric)
    elif metric == "golden_mean_score":
        category = "golden"
    notice = make_notice(group(alert(metric=metric, category=category)), "fired", SETTINGS, T)
    page, _, section = notice.runbook.partition("#")
    assert section in anchors(ROOT / page)
    assert f"What to do: {notice.runbook}" in default_body(fields(notice))
    own = NotifySettings(runbook_url="https://wiki.example/gnomon")
    assert make_notice(group(alert(metric=metric)), "fired", own, T).runbook.startswith(
        "https://wiki.example/gnomon#"
    )


@pytest.mark.parametrize(("before", "is_shown"), [(30, True), (29, False), (1, False)])
def test_of_few_pairs_from_before_nothing_is_said(before: int, is_shown: bool) -> None:
    seen = evidence(FIRST, pairs_before=before, effect=0.298, effect_low=-0.007, effect_high=0.4)
    text = words.effect("regression_rate", seen)
    assert ("before 0.20% in 30; change +29.80%" in text) is is_shown
    assert (f"before not shown: {before} pair" in text) is not is_shown
    assert ("0.70%" in text) is is_shown
