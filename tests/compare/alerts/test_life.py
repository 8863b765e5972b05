"""From stored pairs to evidence, notices and what the commands show, on the real embedded engine."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from scipy.stats import beta

from compare.alerts import words
from compare.alerts.actions import (
    Matcher,
    acknowledge,
    find_silences,
    find_target,
    read_actions,
    silence,
    unsilence,
)
from compare.alerts.alert import Alert
from compare.alerts.alert_log import write_alerts
from compare.alerts.evidence import Evidence
from compare.alerts.evidence_read import pairs_per_hour
from compare.alerts.evidence_store import read_evidence
from compare.alerts.gather import gather
from compare.alerts.life import run_life
from compare.alerts.show import show_target
from compare.alerts.sinks.alertmanager import Alertmanager
from compare.store.client import Store
from ingest.errors import SettingsError
from ingest.settings_notify import AlertmanagerSink, NotifySettings
from tests.compare.alerts import made
from tests.compare.alerts.conftest import START, Writer
from tests.compare.alerts.sinks.receivers import receiver

SETTINGS = NotifySettings(evidence_interval_s=900.0)
CHANGE, END = 600, 800


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


class Story:
    """600 good pairs, then 200 of which two fifths are worse, mostly in one route; an alert of them."""

    def __init__(self, store: Store) -> None:
        self.writer = Writer(store)
        self.store = store
        chance = random.Random(11)
        self.worse = {n for n in range(CHANGE, END) if chance.random() < 0.4}
        for offset in range(END):
            self.writer.pair(
                offset,
                worse="candidate" if offset in self.worse else "reference" if offset % 100 == 7 else "",
                route="chat" if offset % 2 else "extract",
                kl=0.02 if offset >= CHANGE else 0.01,
            )
        self.writer.flush()
        self.alert = made.alert(
            f"{self.writer.experiment[2:]:0<32}",
            at(CHANGE + 20),
            experiment=self.writer.experiment,
            group_key=f"{self.writer.experiment[2:]:0<32}",
            started_at=at(CHANGE + 2),
        )
        write_alerts(store, [self.alert])

    def served(self, quantization: str, second: float) -> None:
        row = {
            "experiment": self.writer.experiment,
            "settings_hash": "h",
            "role": "candidate",
            "endpoint_name": "q4",
            "seen_at": at(second),
            "served_hash": quantization,
            "model": "m",
            "quantization": quantization,
            "version": int(second) + 10**9,
        }
        self.store.insert("served", list(row), [list(row.values())])

    def gathered(self, alert: Alert | None = None) -> Evidence:
        return gather(self.store, alert or self.alert, datetime.now(UTC))


@pytest.fixture(scope="module")
def story(store: Store) -> Story:
    one = Story(store)
    one.served("q8_0", 0)
    one.served("q4_0", CHANGE + 120)
    return one


def test_the_evidence_of_a_regression(story: Story) -> None:
    found = story.gathered()
    first, n = min(story.worse), END - min(story.worse)
    k = len(story.worse)
    assert found.change_at is not None
    assert found.change_earliest_at is not None
    assert found.change_latest_at is not None
    assert found.change_earliest_at <= at(CHANGE) <= found.change_latest_at
    assert found.change_at == at(first)
    assert (found.pairs_since, found.pairs_before, found.value_before) == (n, first, 0.0)
    assert found.value_since == pytest.approx(k / n)
    # Clopper and Pearson by scipy's quantiles.
    assert found.value_low == pytest.approx(beta.ppf(0.025, k, n - k + 1))
    assert found.value_high == pytest.approx(beta.ppf(0.975, k + 1, n - k))
    # By hand: the reference alone is faulty in 8 of 800, but those that the candidate's fault covers.
    mirror = sum(1 for offset in range(7, END, 100) if offset not in story.worse)
    assert found.noise_floor == pytest.approx(mirror / END)
    said = words.floor("regression_rate", found)
    assert said.startswith("not measured: second answers are not searched for faults; in its place, ")
    assert said.endswith(f"the reference alone is faulty in {mirror / END:.2%} of {END} pairs")
    assert [one.family for one in found.families] == ["repetition"]
    assert found.families[0].pairs == k
    assert len(found.worst_pairs) == 10
    assert {pair.offset for pair in found.worst_pairs} <= story.worse
    assert [one.name for one in found.tests] == ["fisher_exact"]
    assert {(one.dimension, one.slice) for one in found.slices} == {("route", "chat"), ("route", "extract")}
    assert [(one.role, one.before, one.after) for one in found.served_changes] == [
        ("candidate", "quantization q8_0", "quantization q4_0")
    ]
    assert found.severity == "critical"
    assert "candidate q4 changed: quantization q4_0" in found.summary


def test_the_evidence_of_one_route_is_of_its_pairs(story: Story) -> None:
    found = story.gathered(msgspec.structs.replace(story.alert, dimension="route", slice="chat"))
    assert all(pair.offset % 2 for pair in found.worst_pairs)
    assert found.pairs_before + found.pairs_since == END / 2


def test_the_evidence_of_a_score(story: Story) -> None:
    changed = msgspec.structs.replace(story.alert, metric="kl_forced", kind="rank", tolerated=0.52)
    found = story.gathered(changed)
    assert (found.change_at, found.change_pairs) == (at(CHANGE), 1)
    assert found.value_before == pytest.approx(0.01)
    assert found.effect == pytest.approx(0.01)
    assert [one.name for one in found.tests] == [
        "mann_whitney_u",
        "kolmogorov_smirnov",
        "wasserstein_distance",
    ]
    assert found.tests[2].statistic == pytest.approx(0.01)
    assert found.tests[1].statistic == 1.0


def test_a_resolved_alert_is_described_by_what_raised_it(story: Story) -> None:
    over = made.resolved(story.alert, at(END))
    found = story.gathered(over)
    assert found.pairs_before + found.pairs_since == CHANGE + 21
    assert found.summary.startswith("resolved ")


def test_an_alert_without_pairs_is_told_all_the_same(store: Store) -> None:
    bare = made.alert(experiment="nothing-there")
    found = gather(store, bare, made.now())
    assert (found.summary, found.change_at, found.worst_pairs) == (bare.summary, None, ())


def test_what_an_accounting_alert_says(store: Store) -> None:
    writer = Writer(store)
    for offset in range(5):
        writer.failed(offset)
    alert = made.alert(
        experiment=writer.experiment,
        metric="failed_rate",
        kind="accounting_rate",
        category="accounting",
        started_at=START,
    )
    found = gather(store, alert, made.now())
    assert [(one.family, one.pairs) for one in found.families] == [("endpoint_away", 5)]
    assert "reasons: endpoint_away 5" in found.summary


def test_reasons_are_those_that_the_rate_counts(store: Store) -> None:
    writer = Writer(store)
    for offset, reason in enumerate(["sampled_out"] * 3 + ["duplicate"] * 2 + ["purged"]):
        writer.failed(offset, kind="skipped", reason=reason)
    alert = made.alert(
        experiment=writer.experiment,
        metric="skipped_rate",
        kind="accounting_rate",
        category="accounting",
        started_at=START,
    )
    found = gather(store, alert, made.now())
    assert [(one.family, one.pairs) for one in found.families] == [("duplicate", 2)]
    assert words.change(found) == f"{words.at(START)}, by the detector's own estimate"


def test_the_rate_of_pairs_is_over_the_time_in_which_they_were_compared(story: Story) -> None:
    """800 pairs in 799 seconds, half of them on each route; looked at hours later."""
    later = at(6 * 3600)
    found = pairs_per_hour(story.store, story.alert, later, 24.0)
    assert found == pytest.approx(800 * 3600 / 799)
    route = msgspec.structs.replace(story.alert, dimension="route", slice="chat")
    assert pairs_per_hour(story.store, route, later, 24.0) == pytest.approx(400 * 3600 / 799)
    # The last 30 pairs came within half a minute: no rate.
    assert pairs_per_hour(story.store, story.alert, at(END - 30) + timedelta(hours=24), 24.0) is None


def test_a_whole_life(store: Store) -> None:
    story = Story(store)
    experiment, alert = story.writer.experiment, story.alert
    now = made.now()

    def live(minutes: float) -> list[str]:
        notices = run_life(store, SETTINGS, (), experiment, now + timedelta(minutes=minutes))
        return [notice.reason for notice in notices]

    assert live(0) == ["fired"]
    gathered = read_evidence(store, experiment, [alert.alert_id])[alert.alert_id].gathered_at
    assert live(1) == []
    # Gathered anew while it fires, and at its end.
    assert read_evidence(store, experiment, [alert.alert_id])[alert.alert_id].gathered_at == gathered
    assert live(16) == []
    assert read_evidence(store, experiment, [alert.alert_id])[alert.alert_id].gathered_at > gathered
    assert live(241) == ["reminder"]
    acknowledge(store, find_target(store, alert.alert_id[:12]), by="me@host", note="on  it\n")
    assert live(500) == []
    by = "me@host"
    matcher, until = Matcher(experiment=experiment, alert_id=alert.alert_id), now + timedelta(minutes=500)
    silence(store, matcher, ends_at=until, now=now, by=by)
    assert live(499) == []
    assert live(500) == ["unsilenced"]
    assert live(501) == []
    shown = show_target(store, find_target(store, alert.alert_id[:12]), made.NOTIFY)
    for text in (
        "FIRING critical: regression_rate",
        "acknowledged:  by me@host at ",
        ": on it",
        "since when:    ",
        "http://explorer:8501/pair?experiment=",
        "look at them: gnomon sql ",
        "what to do:    docs/runbooks.md#regression_rate",
        "notified: notice 2: reminder",
    ):
        assert text in shown, shown
    write_alerts(store, [made.resolved(alert, at(END))])
    assert live(501) == ["resolved"]
    assert live(900) == []
    row = store.query("SELECT * FROM alerts_v1 WHERE experiment = {e:String}", {"e": experiment}).dicts()[0]
    assert (row["state"], row["severity"], row["acknowledged_by"], row["acknowledged_note"]) == (
        "resolved",
        "critical",
        "me@host",
        "on it",
    )
    events = store.query(
        "SELECT event FROM alert_history_v1 WHERE experiment = {e:String} ORDER BY happened_at, event",
        {"e": experiment},
    ).rows
    assert sorted(event for (event,) in events) == [
        "acknowledged", "fired", "notified", "notified", "notified", "notified", "resolved", "silenced",
    ]  # fmt: skip


def test_one_run_reads_the_alerts_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, asked = "e-read-once", []
    write_alerts(store, [made.alert(experiment=experiment, group_key="once")])
    query = Store.query

    def counted(self: Store, sql: str, *arguments: Any, **more: Any) -> Any:
        asked.append("FROM alerts FINAL" in sql)
        return query(self, sql, *arguments, **more)

    monkeypatch.setattr(Store, "query", counted)
    with receiver() as server:
        sink = Alertmanager("a:m", AlertmanagerSink(url=f"http://127.0.0.1:{server.server_port}"))
        assert len(run_life(store, SETTINGS, [sink], experiment, made.now())) == 1
    # Told, and kept alive.
    assert len(server.received) == 2
    assert sum(asked) == 1


def test_silences_are_found_ended_and_shown(store: Store) -> None:
    story = Story(store)
    experiment, now = story.writer.experiment, made.now()
    matcher = Matcher(experiment=experiment, metric="regression_rate", dimension="experiment")
    first = silence(store, matcher, ends_at=now + timedelta(hours=1), now=now, by="me", note="deploy")
    assert run_life(store, SETTINGS, (), experiment, now) == []

    def seen() -> tuple[bool, datetime | None]:
        rows = store.query(
            "SELECT is_silenced, silenced_until FROM alerts_v1 WHERE experiment = {e:String}",
            {"e": experiment},
        ).rows
        return bool(rows[0][0]), rows[0][1]

    assert seen() == (True, now + timedelta(hours=1))
    (held,) = find_silences(store, first, made.now())
    assert held.matcher == matcher
    unsilence(store, held, by="me")
    assert seen() == (False, None)
    assert [one.holds(made.now()) for one in read_actions(store, experiment).silences] == [False]
    assert [one.reason for one in run_life(store, SETTINGS, (), experiment, made.now())] == ["fired"]
    with pytest.raises(SettingsError, match="no silence in force"):
        find_silences(store, first, made.now())


@pytest.mark.parametrize(
    ("ends", "matcher", "message"),
    [
        (timedelta(hours=-1), Matcher(metric="m"), "in the past"),
        (timedelta(days=91), Matcher(metric="m"), "90 days at most"),
        (timedelta(hours=1), Matcher(), "a silence of everything is refused"),
    ],
)
def test_silences_that_are_refused(store: Store, ends: timedelta, matcher: Matcher, message: str) -> None:
    now = made.now()
    with pytest.raises(SettingsError, match=message):
        silence(store, matcher, ends_at=now + ends, now=now, by="me")


def test_ids_that_are_short_or_unknown(store: Store) -> None:
    with pytest.raises(SettingsError, match="'abc' is too short: give 4"):
        find_target(store, "abc")
    with pytest.raises(SettingsError, match="no group has an id that begins with 'zzzz'"):
        find_target(store, "group:zzzz")
