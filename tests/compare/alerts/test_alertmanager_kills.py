"""A real Alertmanager under runners that are killed: it holds one alert, and tells its people once each."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from compare.store.client import Store
from ingest.settings_notify import AlertmanagerSink, NotifySettings
from tests.compare.alerts.conftest import Writer
from tests.compare.alerts.sinks.alertmanagers import Running, alertmanager, until
from tests.compare.alerts.test_two_runners import (
    PATIENCE_S,
    child,
    runner,
    said,
    store_pairs,
    until_it_leads,
)

Away = Literal["never", "after the kill", "since before it fired"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager")) as one:
        yield one


def delivered(store: Store, experiment: str) -> list[tuple[Any, ...]]:
    """(state, sink, received) of each notice, in order."""
    return store.query(
        "SELECT state, sink, is_delivered FROM alert_notices_v1"
        " WHERE experiment = {e:String} ORDER BY number",
        {"e": experiment},
    ).rows


@pytest.mark.parametrize("away", ["never", "after the kill", "since before it fired"])
def test_one_alert_and_one_notification_each_through_a_kill_before_the_note(
    writer: Writer, store: Store, running: Running, away: Away
) -> None:
    notify = NotifySettings(alertmanager={"main": AlertmanagerSink(url=running.url)})
    store_pairs(writer, 0, 26)
    if away == "since before it fired":
        running.stop()
    holder = child(writer, notify, "notice_deliveries", "before", "KILL")
    try:
        assert said(holder) == "started"
        assert said(holder) == "reached"
        # It has sent, or could not, and will never note which.
        assert holder.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    finally:
        holder.kill()
        holder.communicate()
    assert delivered(store, writer.experiment) == [("firing", "", False)]
    first: list[dict[str, Any]] = []
    if away != "since before it fired":
        first = running.alerts(experiment=writer.experiment)
        assert len(first) == 1
        group = first[0]["labels"]["group"]
        until(lambda: len(running.told(group)) == 1, lambda: running.told(group))
    if away == "after the kill":
        running.stop()

    heir = runner(writer, notify)
    until_it_leads(heir)
    if away != "never":
        assert delivered(store, writer.experiment) == [("firing", "alertmanager:main", False)]
        running.start()
        assert running.alerts(experiment=writer.experiment) == []
        heir.run_once()
    assert delivered(store, writer.experiment) == [("firing", "alertmanager:main", True)]
    (held,) = running.alerts(experiment=writer.experiment)
    assert held["labels"]["category"] == "drift"
    for one in first:
        assert (held["fingerprint"], held["labels"]) == (one["fingerprint"], one["labels"])
    group, severity = held["labels"]["group"], held["labels"]["severity"]
    until(lambda: len(running.told(group)) == 1, lambda: running.told(group))

    store_pairs(writer, 26, 900, worse="")
    heir.run_once()
    heir.run_once()
    told = [("firing", severity), ("resolved", severity)]
    until(lambda: len(running.told(group)) >= 2, lambda: running.told(group))
    assert running.told(group) == told
    assert running.alerts(experiment=writer.experiment) == []
    assert delivered(store, writer.experiment) == [
        ("firing", "alertmanager:main", True),
        ("resolved", "alertmanager:main", True),
    ]
