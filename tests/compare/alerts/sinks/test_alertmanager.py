"""Alertmanager: a real one, which tells a real receiver what fires and what is over."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from compare.alerts.notify import make_notice
from compare.alerts.sinks.alertmanager import Alertmanager
from ingest.settings_notify import AlertmanagerSink
from tests.compare.alerts import made
from tests.compare.alerts.sinks.alertmanagers import Running, alertmanager, until
from tests.compare.alerts.sinks.receivers import receiver


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager")) as one:
        yield one


def sink(running: Running, **settings: Any) -> Alertmanager:
    return Alertmanager("alertmanager:main", AlertmanagerSink(url=running.url, **settings))


def test_firing_and_resolved_are_each_told_once(running: Running) -> None:
    group = "firing-and-resolved"
    alert = made.alert(group_key=group)
    fired = made.notice(one=alert)
    now = made.now()
    one = sink(running, labels={"team": "inference"})
    assert one.send(fired, now).error == ""
    until(lambda: running.told(group) == [("firing", "warning")], lambda: running.told(group))
    (seen,) = running.alerts(group=group)
    assert seen["labels"] == {
        "alertname": "GnomonDrift",
        "experiment": "e",
        "candidate": "q4",
        "category": "drift",
        "severity": "warning",
        "group": group,
        "team": "inference",
    }
    assert seen["annotations"]["summary"] == "FIRING warning: e: q4: regression_rate"
    assert seen["generatorURL"] == "http://explorer:8501/alerts?experiment=e&candidate=q4"
    # Sent again and again while it fires: Alertmanager knows it and tells nobody.
    for second in (61, 122, 183):
        delivery = one.keep_alive([fired], now + timedelta(seconds=second))
        assert delivery is not None and delivery.error == ""
    later = running.alerts(group=group)[0]
    assert later["endsAt"] > seen["endsAt"]
    over = made.notice("resolved", one=alert)
    assert one.send(over, made.now()).error == ""
    expected = [("firing", "warning"), ("resolved", "warning")]
    until(lambda: running.told(group) == expected, lambda: running.told(group))
    assert running.alerts(group=group) == []


def test_what_is_not_sent_again_ends_by_itself(running: Running) -> None:
    group = "ends-by-itself"
    # Four times `resend_s` later it is over.
    assert (
        sink(running, resend_s=0.5).send(made.notice(one=made.alert(group_key=group)), made.now()).error == ""
    )
    expected = [("firing", "warning"), ("resolved", "warning")]
    until(lambda: running.told(group) == expected, lambda: running.told(group))


def test_a_rise_of_severity_ends_the_lesser_alert(running: Running) -> None:
    group = "rises"
    alert = made.alert(group_key=group)
    fired = made.notice(one=alert)
    one = sink(running)
    one.send(fired, made.now())
    until(lambda: running.told(group) == [("firing", "warning")], lambda: running.told(group))
    worse = msgspec.structs.replace(alert, severity="critical")
    risen = make_notice(made.group(worse, notices=(fired,)), "severity", made.NOTIFY, made.now())
    one.send(risen, made.now())
    until(
        lambda: (
            ("firing", "critical") in running.told(group) and ("resolved", "warning") in running.told(group)
        ),
        lambda: running.told(group),
    )
    assert [seen["labels"]["severity"] for seen in running.alerts(group=group)] == ["critical"]


def test_a_wrong_label_is_refused_in_words_and_kept_off_the_others(running: Running) -> None:
    # The experiment's name is a value, which may be anything; Alertmanager refuses what is no UTF-8 only.
    hostile = made.alert(group_key="hostile", experiment='"} == 1 or {x="\n', slice="é")
    assert sink(running).send(made.notice(one=hostile), made.now()).error == ""
    (seen,) = running.alerts(group="hostile")
    assert seen["labels"]["experiment"] == '"} == 1 or {x="\n'


def test_sent_again_only_when_it_is_time() -> None:
    with receiver() as server:
        one = Alertmanager(
            "a:m", AlertmanagerSink(url=f"http://127.0.0.1:{server.server_port}/", resend_s=60)
        )
        start = made.now()
        notices = [made.notice(), made.notice(one=made.alert(group_key="other"))]
        sent = [one.keep_alive(notices, start + timedelta(seconds=second)) for second in (0, 59, 60, 61)]
        assert [delivery is not None for delivery in sent] == [True, False, True, False]
        assert one.keep_alive([], start + timedelta(seconds=200)) is None
    assert [got.path for got in server.received] == ["/api/v2/alerts"] * 2
    assert [alert["labels"]["group"] for alert in server.received[0].document] == ["g" * 32, "other"]
    assert "Authorization" not in server.received[0].headers


def test_basic_authentication_is_sent_and_never_shown() -> None:
    with receiver() as server:
        url = f"http://127.0.0.1:{server.server_port}"
        one = Alertmanager("a:m", AlertmanagerSink(url=url, username="u", password="hush"))
        one.send(made.notice(), made.now())
        assert "hush" not in one.preview(made.notice(), made.now())
    assert server.received[0].headers["Authorization"] == "Basic " + base64.b64encode(b"u:hush").decode()
