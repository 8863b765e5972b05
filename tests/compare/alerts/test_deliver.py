"""Notices reach each sink once: receivers that are down, that refuse, and processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from datetime import datetime, timedelta

import msgspec
import pytest

from compare.alerts.alert_log import write_alerts
from compare.alerts.deliver import FIRST_WAIT_S, deliver_due
from compare.alerts.groups import KEPT
from compare.alerts.notice import Delivery, Notice, Reason
from compare.alerts.notice_log import write_notice
from compare.alerts.sinks.alertmanager import Alertmanager
from compare.alerts.sinks.webhook import Webhook
from compare.store.client import Store
from ingest.errors import RetryError
from ingest.settings_notify import AlertmanagerSink, WebhookSink
from tests.compare.alerts import made
from tests.compare.alerts.sinks.receivers import Received, free_port, receiver

T = made.now()


class Recording:
    """A sink that answers as told; the last answer stays."""

    def __init__(self, *answers: Delivery, name: str = "webhook:test") -> None:
        self.name = name
        self.answers = list(answers)
        self.got: list[str] = []

    def send(self, notice: Notice, now: datetime) -> Delivery:
        self.got.append(notice.key)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def preview(self, notice: Notice, now: datetime) -> str:
        return notice.key


TAKEN, REFUSED, DOWN = Delivery(1), Delivery(1, "status 400"), Delivery(3, "refused", True)


@pytest.fixture
def experiment() -> str:
    return f"e-{uuid.uuid4().hex[:12]}"


def tell(store: Store, experiment: str, group: str, *reasons: Reason, at: datetime = T) -> None:
    """Store the notices of a group, a second apart."""
    for number, reason in enumerate(reasons, start=1):
        notice = made.notice(reason, at + timedelta(seconds=number))
        changes = {"experiment": experiment, "group_key": group, "number": number}
        write_notice(store, msgspec.structs.replace(notice, **changes))


def run(store: Store, experiment: str, *sinks: Recording, seconds: float = 60.0) -> None:
    deliver_due(store, sinks, experiment, T + timedelta(seconds=seconds))


def test_each_sink_gets_each_notice_once_and_in_order(store: Store, experiment: str) -> None:
    tell(store, experiment, "g1", "fired", "resolved")
    tell(store, experiment, "g2", "fired", at=T + timedelta(milliseconds=500))
    one, two = Recording(TAKEN), Recording(TAKEN, name="slack:test")
    for seconds in (60, 61, 62):
        run(store, experiment, one, two, seconds=seconds)
    assert one.got == two.got == ["g1:1", "g2:1", "g1:2"]


def test_a_sink_that_was_down_gets_all_when_it_is_back_and_others_do_not_wait(
    store: Store, experiment: str
) -> None:
    tell(store, experiment, "g1", "fired", "resolved")
    down, up = Recording(DOWN, DOWN, TAKEN), Recording(TAKEN, name="slack:test")
    for seconds in (60, 61, 62, 63):
        run(store, experiment, down, up, seconds=seconds)
    # One try a run while it is down, then both, the first first.
    assert down.got == ["g1:1", "g1:1", "g1:1", "g1:2"]
    assert up.got == ["g1:1", "g1:2"]
    rows = store.query(
        "SELECT sink, number, is_delivered, attempts FROM alert_notices_v1"
        " WHERE experiment = {e:String} ORDER BY sink, number",
        {"e": experiment},
    ).rows
    assert rows == [
        ("slack:test", 1, True, 1), ("slack:test", 2, True, 1),
        ("webhook:test", 1, True, 7), ("webhook:test", 2, True, 1),
    ]  # fmt: skip


def test_a_refused_notice_holds_back_its_group_and_no_other(store: Store, experiment: str) -> None:
    tell(store, experiment, "g1", "fired", "resolved")
    tell(store, experiment, "g2", "fired", at=T + timedelta(milliseconds=500))
    one = Recording(REFUSED, TAKEN)
    run(store, experiment, one)
    assert one.got == ["g1:1", "g2:1"]
    # It is tried again later, after longer and longer waits.
    run(store, experiment, one, seconds=60 + FIRST_WAIT_S - 1)
    assert len(one.got) == 2
    run(store, experiment, one, seconds=60 + FIRST_WAIT_S)
    assert one.got == ["g1:1", "g2:1", "g1:1", "g1:2"]


def test_outdated_reminders_are_not_sent(store: Store, experiment: str) -> None:
    tell(store, experiment, "g1", "fired", "members", "reminder", "severity", "resolved")
    one = Recording(TAKEN)
    run(store, experiment, one)
    run(store, experiment, one, seconds=61)
    assert one.got == ["g1:1", "g1:5"]


def test_a_notice_of_last_week_is_history(store: Store, experiment: str) -> None:
    tell(store, experiment, "g1", "fired", at=T - KEPT - timedelta(hours=1))
    one = Recording(TAKEN)
    run(store, experiment, one)
    assert one.got == []


def test_nothing_is_sent_where_another_process_took_over(store: Store, experiment: str) -> None:
    tell(store, experiment, "g1", "fired")
    one = Recording(TAKEN)

    def lost() -> None:
        raise RetryError("the lease is lost")

    with pytest.raises(RetryError):
        deliver_due(store, [one], experiment, T, check=lost)
    assert one.got == []


def test_nothing_is_sent_again_where_another_process_took_over(store: Store, experiment: str) -> None:
    write_alerts(store, [made.alert(experiment=experiment, group_key="g1", at=T)])
    tell(store, experiment, "g1", "fired")

    def lost() -> None:
        raise RetryError("the lease is lost")

    with receiver() as server:
        one = Alertmanager("a:m", AlertmanagerSink(url=f"http://127.0.0.1:{server.server_port}"))
        deliver_due(store, [one], experiment, T + timedelta(seconds=60))
        assert len(server.received) == 2
        with pytest.raises(RetryError):
            deliver_due(store, [one], experiment, T + timedelta(seconds=121), check=lost)
        assert len(server.received) == 2


def test_killed_between_the_answer_and_the_note_it_is_sent_again_with_the_same_key(
    store: Store, experiment: str
) -> None:
    tell(store, experiment, "g1", "fired")
    children: list[subprocess.Popen[bytes]] = []

    def kill(_: Received) -> None:
        # The receiver has it; the sender will never know.
        if len(server.received) == 1:
            os.kill(children[0].pid, signal.SIGKILL)

    with receiver(on_request=kill) as server:
        command = [sys.executable, "-m", "tests.compare.alerts.deliver_child"]
        command += [store.where, experiment, server.url]
        children.append(subprocess.Popen(command))
        assert children[0].wait(120) == -signal.SIGKILL
        assert len(server.received) == 1
        sink = Webhook("webhook:pager", WebhookSink(url=server.url))
        for _ in range(3):
            deliver_due(store, [sink], experiment, made.now())
    first, second = server.received
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] == "g1:1"
    assert first.body == second.body


def test_a_real_receiver_that_comes_back(store: Store, experiment: str) -> None:
    tell(store, experiment, "g1", "fired", "resolved")
    port = free_port()
    sink = Webhook("webhook:pager", WebhookSink(url=f"http://127.0.0.1:{port}/"), sleep=lambda _: None)
    deliver_due(store, [sink], experiment, T)
    with receiver(port=port) as server:
        for seconds in range(3):
            deliver_due(store, [sink], experiment, T + timedelta(seconds=seconds))
    assert [got.headers["Idempotency-Key"] for got in server.received] == ["g1:1", "g1:2"]
