"""`gnomon rollback` as it is typed, on the real engine."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compare.alerts.notice import Delivery, Notice
from compare.cli.main import cli
from compare.rollback.decisions import read_decisions
from compare.rollback.runner import RollbackRunner
from compare.rollback.show import read_status, status_text
from compare.rollback.sinks import SinkTeller
from compare.rollback.tell import tell
from ingest.errors import FatalError
from ingest.settings_notify import NotifySettings
from tests.compare.rollback.conftest import Planter, settings_file


class Down:
    """A sink that is down."""

    name = "webhook:pager"

    def send(self, notice: Notice, now: datetime) -> Delivery:
        return Delivery(3, "refused", is_down=True)

    def preview(self, notice: Notice, now: datetime) -> str:
        return notice.key


@pytest.fixture
def called(planter: Planter) -> Planter:
    """A candidate that a rollback is called for."""
    planter.golden(0.7, ago_s=120)
    planter.golden(0.7)
    planter.pairs(100, verdict="candidate_worse")
    run = RollbackRunner(planter.store, planter.settings()).run_once
    now = datetime.now(UTC)
    run(lambda: now - timedelta(seconds=20))
    run(lambda: now)
    return planter


def gnomon(folder: Path, *arguments: str) -> Result:
    """The result of a command that ended as it should."""
    result = CliRunner().invoke(cli, ["rollback", *arguments, "--dir", str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def refused(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(cli, ["rollback", *arguments, "--dir", str(folder)])
    assert isinstance(result.exception, FatalError)
    return str(result.exception)


def parsed(result: Result) -> Any:
    return json.loads(result.stdout)


def test_from_the_call_to_the_approval(called: Planter, folder: Path) -> None:
    name = called.experiment
    call = read_decisions(called.store, name)[0].decision_id
    status = gnomon(folder, "status", "--experiment", name)
    assert status.exit_code == 1
    lines = status.stdout.splitlines()
    assert re.fullmatch(
        rf"ROLLBACK CALLED FOR: candidate q4 of experiment {name} since .* UTC \({call}\)", lines[0]
    )
    assert lines[1].startswith("  why: A firing: golden set core")
    assert [line[2:14] for line in lines[2:5]] == ["A  firing   ", "B  firing   ", "C  off      "]
    assert lines[-4:] == [
        "  told: nobody so far; the settings say who is to be (--config)",
        "  approved: by nobody yet",
        "  targets: none: no snapshot has a golden run that passed",
        f"  next: gnomon rollback approve {call} --snapshot NAME",
    ]
    assert "no snapshot of experiment" in refused(folder, "approve", call, "--snapshot", "good")
    which = ("--experiment", name, "--endpoint", "q4")
    called.serving()
    bad = gnomon(folder, "snapshot", "add", "bad", *which)
    assert bad.exit_code == 0 and "only one whose golden run passed" in bad.stdout
    assert "golden run passed" in refused(folder, "approve", call, "--snapshot", "bad")
    called.golden(0.95, ago_s=1, status="passed")
    gnomon(folder, "snapshot", "add", "good", *which, "--image", "i@sha256:1", "--by", "ada", "--note", "v1")
    assert gnomon(folder, "status", "--experiment", name).stdout.splitlines()[-1].endswith("--snapshot good")
    done = gnomon(folder, "approve", call[:8], "--snapshot", "good", "--by", "ada", "--note", "as agreed")
    assert done.exit_code == 0
    assert done.stdout == (
        f"approved: {call}, to snapshot good, by ada\nnothing was run: rollback.approve_command is not set\n"
    )
    assert "was approved at" in refused(folder, "approve", call, "--snapshot", "good")
    after = gnomon(folder, "status", "--experiment", name).stdout
    assert "to snapshot good (as agreed): no command is configured" in after and "next:" not in after
    explained = gnomon(folder, "explain", call).stdout
    for part in (f"call {call}", "lower_bound: 0.97", "runs_in_a_row", "approved:\n  by ada at "):
        assert part in explained
    told = parsed(gnomon(folder, "explain", call, "--json"))
    assert told["call"]["decision_id"] == call
    assert told["call"]["evidence"]["B"]["evidence"]["faulty"] == 100
    assert [one["snapshot"] for one in told["approvals"]] == ["good"]
    shown = parsed(gnomon(folder, "snapshot", "show", "good", "--experiment", name, "--json"))
    assert (shown["image"], shown["golden_status"], shown["note"]) == ("i@sha256:1", "passed", "v1")
    listed = gnomon(folder, "snapshot", "list", "--experiment", name).stdout
    assert re.search(r"good .* passed .* yes", listed) and re.search(r"bad .* failed .* no", listed)
    (json_status,) = parsed(gnomon(folder, "status", "--experiment", name, "--json"))
    assert (json_status["answer"], json_status["exit_code"]) == ("called", 1)
    assert [one["name"] for one in json_status["targets"]] == ["good"]
    history = gnomon(folder, "history", "--experiment", name).stdout
    assert call in history and "conditions" not in history
    assert len(parsed(gnomon(folder, "history", "--experiment", name, "--all", "--json"))) == 2


def test_what_cannot_be_said_is_not_said_to_be_fine(planter: Planter, folder: Path) -> None:
    name = planter.experiment
    nothing = gnomon(folder, "status", "--experiment", name)
    assert nothing.exit_code == 3 and "nothing was ever evaluated here" in nothing.stdout
    assert gnomon(folder, "history", "--experiment", name).stdout == "no rollback was ever called for\n"
    planter.golden(0.9)
    planter.pairs(100)
    RollbackRunner(planter.store, planter.settings()).run_once()
    quiet = gnomon(folder, "status", "--experiment", name)
    assert quiet.exit_code == 0
    assert quiet.stdout.startswith(f"no rollback called for: candidate q4 of experiment {name}\n")
    later = datetime.now(UTC) + timedelta(hours=3)
    (status,) = read_status(planter.store, name, "", later)
    assert status.exit_code == 3
    text = status_text(status, later)
    assert text.startswith("UNKNOWN whether a rollback is called for: candidate q4")
    assert "nobody has looked for 3 h 0 min: is gnomon run or gnomon watch up?" in text
    assert "NOT WATCHED NOW" in text


def test_a_call_holds_when_nobody_looks_any_more(called: Planter) -> None:
    later = datetime.now(UTC) + timedelta(hours=3)
    (status,) = read_status(called.store, called.experiment, "", later)
    assert status.exit_code == 1
    assert "NOT WATCHED NOW" in status_text(status, later)


PAGER = '[notify.webhook.pager]\nurl = "http://127.0.0.1:9/"\n'


def test_who_is_told_is_not_said_before_it_was_tried(called: Planter, folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "gnomon.toml"
    call = read_decisions(called.store, called.experiment)[0].decision_id

    def told(settings: str) -> tuple[list[str], list[str]]:
        config.write_text(settings_file(called.experiment, folder) + settings)
        which = ("--config", str(config))
        status = CliRunner().invoke(cli, ["rollback", "status", "--experiment", called.experiment, *which])
        explained = CliRunner().invoke(cli, ["rollback", "explain", call, *which]).stdout.splitlines()
        of_status = [line for line in status.stdout.splitlines() if line.startswith("  told: ")]
        return of_status, explained[explained.index("told:") + 1 : explained.index("approved:") - 1]

    assert told("") == (
        ["  told: nobody: the settings name no sink for it"],
        ["  nobody: the settings name no sink for it"],
    )
    untried = "webhook:pager of called: NOT YET TRIED; the next evaluation does"
    assert told(PAGER) == ([f"  told: {untried}"], [f"  {untried}"])
    # The settings of another experiment say nothing of this one's sinks.
    config.write_text(settings_file("other", folder) + PAGER)
    status = CliRunner().invoke(cli, ["rollback", "explain", call, "--config", str(config), "--json"])
    assert (json.loads(status.stdout)["sinks"], json.loads(status.stdout)["untried"]) == (None, [])
    tell(called.store, called.experiment, [SinkTeller(Down(), NotifySettings())])
    of_status, _ = told(PAGER)
    assert len(of_status) == 1 and of_status[0].endswith("UTC: NOT received: refused")


def test_what_a_page_says_cannot_act_on_the_terminal(called: Planter) -> None:
    now = datetime.now(UTC)
    (status,) = read_status(called.store, called.experiment, "", now)
    (call,) = [one for one in read_decisions(called.store, called.experiment) if one.event == "called"]
    hostile = type(status)(
        **{name: getattr(status, name) for name in status.__struct_fields__} | {"why": "a\x1b[2J\nb"}
    )
    assert "a\\x1b[2J\\nb" in status_text(hostile, now)
    assert call.is_called


def test_options_that_do_not_go_together(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('model = "m"\n')
    which = ("--experiment", "e", "--endpoint", "q4")
    both = gnomon(folder, "snapshot", "add", "x", "--file", str(file), "--image", "i", *which)
    assert both.exit_code == 2 and "stand in the file" in both.stderr
    assert gnomon(folder, "snapshot", "add", "x").exit_code == 2
    added = gnomon(folder, "snapshot", "add", "from-file", "--file", str(file), *which, "--json")
    assert parsed(added)["source"] == "file"


def test_a_snapshot_that_two_experiments_have_is_not_guessed(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('model = "m"\n')
    for name in ("twice-b", "twice-a"):
        gnomon(
            folder, "snapshot", "add", "twice", "--file", str(file), "--experiment", name, "--endpoint", "q4"
        )
    assert refused(folder, "snapshot", "show", "twice") == (
        "snapshot 'twice' is in 2 experiments: twice-a, twice-b; say --experiment"
    )
    shown = parsed(gnomon(folder, "snapshot", "show", "twice", "--experiment", "twice-b", "--json"))
    assert shown["experiment"] == "twice-b"


def test_gnomon_watch_evaluates_with_a_settings_file(planter: Planter, folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "gnomon.toml"
    config.write_text(settings_file(planter.experiment, folder))
    for _ in range(2):
        assert CliRunner().invoke(cli, ["watch", "--once", "--config", str(config)]).exit_code == 0
    status = CliRunner().invoke(cli, ["rollback", "status", "--config", str(config), "--json"])
    (mine,) = [
        one for one in json.loads(status.stdout) if one["evaluation"]["experiment"] == planter.experiment
    ]
    # Nobody listens there: the health path is down, and has not been for long.
    assert (mine["evaluation"]["condition_c"], mine["evaluation"]["clear"]) == ("quiet", 2)
    by_hand = CliRunner().invoke(cli, ["rollback", "snapshot", "add", "x", "--config", str(config)])
    assert f"what endpoint q4 of experiment {planter.experiment} serves is not known" in str(
        by_hand.exception
    )
