"""`gnomon alerts`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compare.alerts.alert import Alert
from compare.alerts.alert_log import write_alerts, write_missing
from compare.alerts.evidence_store import write_evidence
from compare.alerts.notify import notify_due
from compare.alerts.sinks.text import fields
from compare.cli.main import cli
from compare.store.client import Store, open_store
from ingest.errors import SettingsError
from ingest.settings import StoreSettings
from ingest.settings_notify import NotifySettings
from tests.compare.alerts import made
from tests.compare.alerts.sinks.receivers import free_port, receiver
from tests.fixtures.stores import MigratedAt
from tests.ingest.test_load_settings import MINIMAL


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    made = tmp_path_factory.mktemp("alerts-cli")
    migrated_at(made)
    return made


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Store]:
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner") as opened:
        yield opened


@pytest.fixture
def alert(store: Store) -> Alert:
    """An alert that fires, with evidence, in an experiment of its own."""
    key = uuid.uuid4().hex
    one = made.alert(key, experiment=f"e-{key[:8]}", group_key=key, summary="s \x1b[31m")
    write_alerts(store, [one])
    write_evidence(store, made.evidence(one))
    return one


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["alerts", *arguments, "--dir", str(folder)])


def test_from_firing_to_acknowledged_and_silenced(folder: Path, alert: Alert) -> None:
    listed = run(folder, "list", "--experiment", alert.experiment).output
    assert alert.alert_id[:8] in listed
    assert "firing" in listed
    acked = run(folder, "ack", alert.alert_id[:10], "--note", "on it")
    assert acked.output == f"acknowledged: alert {alert.alert_id} of experiment {alert.experiment}\n"
    silenced = run(folder, "silence", f"group:{alert.group_key[:10]}", "--for", "2h", "--note", "deploy")
    assert silenced.output.startswith("silence ")
    silence_id = silenced.output.split()[1]
    listed = run(folder, "list", "--experiment", alert.experiment).output
    assert "acknowledged, silenced" in listed
    assert f"silence {silence_id} of experiment {alert.experiment}" in listed
    assert listed.endswith(": deploy\n")
    assert run(folder, "unsilence", silence_id).output.startswith(f"ended: silence {silence_id}")
    (row,) = json.loads(run(folder, "list", "--experiment", alert.experiment, "--json").output)
    assert (row["is_acknowledged"], row["is_silenced"], row["severity"]) == (True, False, "warning")


def test_fired_is_by_the_clock_and_the_pairs_time_stands_beside_it(folder: Path, store: Store) -> None:
    key, before = uuid.uuid4().hex, datetime.now(UTC)
    old = made.alert(key, at=made.now() - timedelta(hours=3), experiment=f"e-{key[:8]}", group_key=key)
    write_alerts(store, [old])
    after = datetime.now(UTC)
    # What a process does that takes over: the time at which it was raised stays.
    write_missing(store, old.experiment, [old])
    write_alerts(store, [made.resolved(old, before - timedelta(hours=2))])
    (row,) = json.loads(
        run(folder, "list", "--experiment", old.experiment, "--state", "all", "--json").output
    )
    raised_at = datetime.fromisoformat(row["raised_at"])
    assert before - timedelta(milliseconds=1) <= raised_at.replace(tzinfo=UTC) <= after
    shown = run(folder, "show", key[:10]).output
    raised, mirrored = f"{raised_at:%Y-%m-%d %H:%M:%S} UTC", f"{old.fired_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"fired:         {raised} (the pair that raised it was mirrored {mirrored})" in shown
    assert f"{raised}  fired" in shown.partition("What happened:")[2]
    assert f"{old.fired_at:%H:%M:%S}" not in shown.partition("What happened:")[2]
    notices = notify_due(store, NotifySettings(), old.experiment, datetime.now(UTC))
    assert [notice.fired_at for notice in notices] == [raised_at.replace(tzinfo=UTC)]
    assert (notices[0].resolved_at or before) >= raised_at.replace(tzinfo=UTC)
    assert [member.fired_pair_at for member in notices[0].members] == [old.fired_at]
    assert f"fired {raised} (the pair" in fields(notices[0])["members"]


def test_show_is_readable_and_hostile_text_does_nothing(folder: Path, alert: Alert) -> None:
    shown = run(folder, "show", alert.alert_id[:10], "--explorer", "http://x:1").output
    assert "\x1b" not in shown
    assert "s \\x1b[31m" in shown
    assert (
        f"http://x:1/pair?experiment={alert.experiment}&candidate=q4&topic_id=t-1&partition=0&offset=7"
        in shown
    )
    assert "faults:        repetition 12" in shown
    (row,) = json.loads(run(folder, "show", f"group:{alert.group_key[:10]}", "--json").output)
    assert row["families"] == [{"family": "repetition", "pairs": 12}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["silence", "--metric", "kl_forced"], "a silence has an end: give --for DURATION or --until TIME"),
        (["silence", "--metric", "m", "--for", "soon"], "'soon' is no duration: write 90m, 8h or 2d"),
        (["silence", "--slice", "chat", "--for", "1h"], "--slice is DIMENSION=VALUE"),
        (["silence", "abcd", "--metric", "m", "--for", "1h"], "give an ID or a matcher, not both"),
    ],
)
def test_wrong_use_is_refused(folder: Path, store: Store, arguments: list[str], message: str) -> None:
    result = run(folder, *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_silence_that_matches_all_is_refused(folder: Path, store: Store) -> None:
    result = run(folder, "silence", "--for", "1h")
    assert isinstance(result.exception, SettingsError)
    assert "a silence of everything is refused" in str(result.exception)


def config(tmp_path: Path, url: str, hook: str = "/bin/true") -> str:
    file = tmp_path / "gnomon.toml"
    sinks = f'[notify.webhook.pager]\nurl = "{url}"\n[notify.command.page]\nargv = ["{hook}"]\n'
    file.write_text(MINIMAL + sinks)
    return str(file)


def test_sinks_are_tried_and_a_dry_run_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_SINK_PAGER_SECRET", "hush")
    with receiver() as server:
        file = config(tmp_path, server.url)
        dry = CliRunner().invoke(cli, ["alerts", "test", "--dry-run", "--config", file])
        assert server.received == []
        sent = CliRunner().invoke(cli, ["alerts", "test", "--config", file])
    assert dry.exit_code == 0
    assert "=== webhook:pager, firing" in dry.output
    assert "=== command:page, resolved" in dry.output
    assert not any(secret in dry.output for secret in ("hush", "t0ken"))
    assert sent.output.splitlines() == [
        "webhook:pager, firing: received", "webhook:pager, resolved: received",
        "command:page, firing: received", "command:page, resolved: received",
    ]  # fmt: skip
    assert [got.document["title"][:12] for got in server.received] == ["TEST FIRING ", "TEST RESOLVE"]


def test_a_sink_that_is_away_ends_with_one(tmp_path: Path) -> None:
    file = config(tmp_path, f"http://127.0.0.1:{free_port()}/", "/bin/false")
    result = CliRunner().invoke(cli, ["alerts", "test", "--sink", "page", "--config", file])
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == "command:page, firing: /bin/false: ended with 1"
    unknown = CliRunner().invoke(cli, ["alerts", "test", "--sink", "pag", "--config", file])
    assert "sinks of " in unknown.output
    assert "webhook:pager, command:page" in unknown.output


def test_pending_lists_series(folder: Path, store: Store) -> None:
    row = {
        "experiment": "pending-one", "candidate": "q4", "kind": "series", "metric": "kl_forced",
        "dimension": "route", "slice": "a", "status": "pending", "statistic": 50.0, "threshold": 100.0,
        "state": "{}", "outbox": "[]", "updated_at": made.now(), "version": 1,
        "folded_until": made.now() - timedelta(hours=1),
    }  # fmt: skip
    store.insert("detector_state", list(row), [list(row.values())])
    assert "kl_forced" in run(folder, "list", "--state", "pending", "--experiment", "pending-one").output
    assert "no alert is pending" in run(folder, "list", "--state", "pending", "--experiment", "x").output
