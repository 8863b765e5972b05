"""Two runners of one experiment, as real processes on the real engine, killed and stopped anywhere."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest

from compare.alerts.fenced import generation_of
from compare.alerts.runner import AlertRunner
from compare.alerts.state import load_state
from compare.store.client import Store
from compare.store.table_lease import lease_name, leases_of
from ingest.settings_alerts import AlertSettings
from ingest.settings_notify import NotifySettings, WebhookSink
from tests.compare.alerts.conftest import Writer

LEASE_S = 6.0
SETTINGS = AlertSettings(
    tolerated_regression_rate=0.02,
    mean_pairs_between_false_alarms=77,
    interval_s=0.2,
    lease_s=LEASE_S,
    no_data_after_s=0,
)
HEIRS = msgspec.structs.replace(SETTINGS, lease_s=120.0)
"""Of the runners in this process, which nobody kills: however slow the machine is, they keep the lease."""
PATIENCE_S = 180.0


class Receiver:
    """A webhook that notes the idempotency key of all it gets."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        keys = self.keys

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                keys.append(self.headers["Idempotency-Key"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.notify = NotifySettings(
            webhook={"test": WebhookSink(url=f"http://127.0.0.1:{self.server.server_port}/")}
        )


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    thread = threading.Thread(target=one.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()
    thread.join()


def child(
    writer: Writer, notify: NotifySettings, table: str, when: str, action: str
) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-m", "tests.compare.alerts.runner_child"),
        *(writer.store.where, writer.experiment, writer.candidate),
        msgspec.json.encode(SETTINGS).decode(),
        msgspec.json.encode(notify).decode(),
        *(table, when, action),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def store_pairs(writer: Writer, start: int, end: int, *, worse: str = "candidate") -> None:
    for offset in range(start, end):
        writer.pair(offset, worse=worse)
    writer.settled(start, end)


def runner(writer: Writer, notify: NotifySettings) -> AlertRunner:
    return AlertRunner(writer.store, HEIRS, writer.experiment, [writer.candidate], notify=notify)


def until_it_leads(one: AlertRunner) -> None:
    """Run until the lease was had for a run."""

    def has_run() -> bool:
        one.run_once()
        return one.watched_by is None

    wait_for(has_run)


def detectors(writer: Writer) -> dict[str, Any]:
    """Every series with its whole memory, but for what names the experiment."""
    state, _ = load_state(writer.store, writer.experiment, writer.candidate)
    encoded = json.loads(msgspec.json.encode(list(state.series.values())))
    for series in encoded:
        series.pop("alert")
    return {json.dumps(one["key"]): one for one in encoded}


def alert_states(store: Store, writer: Writer) -> Counter[tuple[str, str, str, str]]:
    rows = store.query(
        "SELECT metric, dimension, slice, state FROM alerts FINAL WHERE experiment = {e:String}",
        {"e": writer.experiment},
    ).rows
    return Counter((metric, dimension, value, state) for metric, dimension, value, state in rows)


@pytest.mark.parametrize(
    ("table", "when", "is_sent_again"),
    [
        ("detector_state", "after", False),
        ("alerts", "after", False),
        ("alert_notices", "after", False),
        ("notice_deliveries", "before", True),
        ("notice_deliveries", "after", False),
    ],
)
def test_killed_at_any_step_the_next_one_takes_over_and_nothing_is_missed_or_doubled(
    writer: Writer, store: Store, receiver: Receiver, table: str, when: str, is_sent_again: bool
) -> None:
    undisturbed = Writer(store)
    for one in (writer, undisturbed):
        store_pairs(one, 0, 26)
    holder = child(writer, receiver.notify, table, when, "KILL")
    try:
        assert said(holder) == "started"
        assert said(holder) == "reached"
        assert holder.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    finally:
        holder.kill()
        holder.communicate()
    (dead,) = leases_of(store, lease_name("alert", writer.experiment))[0].values()
    heir = runner(writer, receiver.notify)
    until_it_leads(heir)
    (taken,) = leases_of(store, lease_name("alert", writer.experiment))[0].values()
    # Not before the dead one's lease ran out, which it did in its time: nobody renews it.
    assert dead.since + timedelta(seconds=LEASE_S) <= dead.until <= taken.since
    # A notice that was not yet due in the run of the heir's takeover comes with the next one.
    heir.run_once()
    store_pairs(writer, 26, 30)
    heir.run_once()

    store_pairs(undisturbed, 26, 30)
    runner(undisturbed, NotifySettings()).run_once()
    assert writer.folded() == 30
    assert detectors(writer) == detectors(undisturbed)
    assert alert_states(store, writer) == alert_states(store, undisturbed)
    keys = Counter(receiver.keys)
    assert keys
    assert all(count == 1 for key, count in keys.items()) or is_sent_again
    assert max(keys.values()) == (2 if is_sent_again else 1)


@pytest.mark.parametrize("table", ["detector_state", "notice_deliveries"])
def test_a_holder_that_slept_past_its_lease_changes_nothing(
    writer: Writer, store: Store, receiver: Receiver, table: str
) -> None:
    undisturbed = Writer(store)
    store_pairs(writer, 0, 20)
    sleeper = child(writer, receiver.notify, table, "before", "STOP")
    try:
        assert said(sleeper) == "started"
        assert said(sleeper) == "reached"
        # What it has read is old by the time it writes.
        store_pairs(writer, 20, 40, worse="")
        heir = runner(writer, receiver.notify)
        heir.start()
        wait_for(lambda: writer.folded() == 40)
        leader = leases_of(store, lease_name("alert", writer.experiment))[0]
        sleeper.send_signal(signal.SIGCONT)
        time.sleep(4 * SETTINGS.interval_s)
        store_pairs(writer, 40, 44)
        wait_for(lambda: writer.folded() == 44)
        assert leases_of(store, lease_name("alert", writer.experiment))[0].keys() == leader.keys()
        assert heir.read_status().is_leader
        heir.stop()
        # It is alive, and takes its turn once the lease is given back.
        store_pairs(writer, 44, 46)
        wait_for(lambda: writer.folded() == 46)
    finally:
        sleeper.kill()
        sleeper.communicate()

    store_pairs(undisturbed, 0, 20)
    store_pairs(undisturbed, 20, 40, worse="")
    store_pairs(undisturbed, 40, 46)
    runner(undisturbed, NotifySettings()).run_once()
    assert detectors(writer) == detectors(undisturbed)
    assert alert_states(store, writer) == alert_states(store, undisturbed)
    keys = Counter(receiver.keys)
    # What it was about to note had been sent: the same key may come twice, and no other one.
    assert max(keys.values()) <= (2 if table == "notice_deliveries" else 1)


def wait_for(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_of_two_threads_with_a_runner_each_one_acts(writer: Writer) -> None:
    store_pairs(writer, 0, 26)
    both = [runner(writer, NotifySettings()) for _ in range(2)]
    for one in both:
        one.start()
    wait_for(lambda: writer.folded() == 26)
    assert sorted(one.read_status().is_leader for one in both) == [False, True]
    leader = next(one for one in both if one.read_status().is_leader)
    other = next(one for one in both if one is not leader)
    leader.stop()
    wait_for(lambda: other.read_status().is_leader)
    other.stop()
    assert leader.read_status().is_leader is other.read_status().is_leader is False


def test_a_row_of_a_generation_that_was_over_is_not_read(writer: Writer, store: Store) -> None:
    store_pairs(writer, 0, 4)
    runner(writer, NotifySettings()).run_once()
    runner(writer, NotifySettings()).run_once()
    state, _ = load_state(store, writer.experiment, writer.candidate)
    assert generation_of(state.version) >= 1
    text = msgspec.json.encode(next(iter(state.series.values()))).decode()
    # A series that only the late writer met; its version is of the generation before.
    store.insert(
        "detector_state",
        ("experiment", "candidate", "kind", "metric", "dimension", "slice", "state", "version"),
        [
            (writer.experiment, writer.candidate, "series", "regression_rate", "route", "late", text, 7),
        ],
    )
    assert load_state(store, writer.experiment, writer.candidate)[0] == state


def test_the_generation_grows_even_if_the_leases_tables_were_dropped(writer: Writer, store: Store) -> None:
    store_pairs(writer, 0, 2)
    for _ in range(3):
        runner(writer, NotifySettings()).run_once()
        store_pairs(writer, 2, 3)
    before = load_state(store, writer.experiment, writer.candidate)[0].version
    for generation in leases_of(store, lease_name("alert", writer.experiment))[0]:
        store.command(f"DROP TABLE {lease_name('alert', writer.experiment)}_{generation} SYNC")
    store_pairs(writer, 3, 5)
    runner(writer, NotifySettings()).run_once()
    after = load_state(store, writer.experiment, writer.candidate)[0].version
    assert generation_of(after) > generation_of(before)
    assert writer.folded() == 5
