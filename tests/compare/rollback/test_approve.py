"""Snapshots and approvals on the real engine, and the command with a real process."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from compare.rollback.approve import Approval, approve, find_call, read_approvals
from compare.rollback.command import run_command
from compare.rollback.condition import Condition, Conditions
from compare.rollback.decisions import Decision, decided, write_decision
from compare.rollback.hysteresis import Standing
from compare.rollback.snapshots import Snapshot, add, find, from_file, from_serving, read_snapshots
from ingest.errors import FatalError
from ingest.served import Served
from ingest.settings_rollback import RollbackSettings
from tests.compare.rollback.conftest import BUILD, Planter

CONDITIONS = Conditions(Condition("off", "a"), Condition("off", "b"), Condition("firing", "c", {"n": 1}))


def decide(planter: Planter, before: Decision | None = None, *, is_called: bool = True) -> Decision:
    at = datetime.now(UTC)
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    found = decided(
        before, CONDITIONS, Standing(is_called), experiment=planter.experiment, candidate="q4", at=at,
        settings_hash="s", served_hash="v",
    )  # fmt: skip
    assert found is not None
    write_decision(planter.store, found, found.number)
    return found


def serving(planter: Planter, name: str = "good", **values: str) -> Snapshot:
    return from_serving(
        planter.store, experiment=planter.experiment, endpoint_name="q4", name=name, added_by="me", **values
    )


def good(planter: Planter, name: str = "good") -> Snapshot:
    planter.serving()
    planter.golden(0.95, status="passed")
    add(planter.store, serving(planter, name))
    return find(planter.store, planter.experiment, name)


def command(tmp_path: Path, body: str) -> RollbackSettings:
    script = tmp_path / "roll-back.py"
    script.write_text(f"import json, os, sys, time\nargument = sys.argv[1]\n{body}")
    return RollbackSettings(
        approve_command=[sys.executable, str(script), "a b; $HOME"], approve_timeout_s=20.0
    )


def test_a_snapshot_of_what_serves_and_its_last_golden_run(planter: Planter) -> None:
    with pytest.raises(FatalError, match="serves is not known"):
        serving(planter)
    planter.serving()
    assert serving(planter).why_no_target() == (
        "snapshot good has no golden run; only one whose golden run passed can be a target"
    )
    planter.golden(0.99, ago_s=10, status="passed", served=Served(model="another"))
    low = planter.golden(0.7, ago_s=60)
    planter.golden(0.9, ago_s=120, status="passed")
    failed = serving(planter)
    assert failed.golden_run_id == low
    assert failed.why_no_target() == (
        f"snapshot good: golden run {low} failed (score 0.700); "
        "only one whose golden run passed can be a target"
    )
    lax = planter.golden(0.79, ago_s=8, status="passed")
    assert serving(planter).why_no_target() == (
        f"snapshot good: golden run {lax} passed by the terms of its command with score 0.790; "
        "under 0.8 a run speaks for a rollback itself"
    )
    passed = planter.golden(0.95, ago_s=5, status="passed")
    made = serving(planter, image="registry/vllm@sha256:1", weights_sha256="ab12")
    assert made.why_no_target() is None
    assert (made.model, made.engine, made.image, made.weights_sha256) == (
        "m-q4", "vllm", "registry/vllm@sha256:1", "ab12",
    )  # fmt: skip
    add(planter.store, made)
    kept = find(planter.store, planter.experiment, "good")
    assert msgspec.structs.replace(kept, added_at=made.added_at) == made
    assert (kept.golden_run_id, kept.golden_status, kept.golden_mean_score) == (passed, "passed", 0.95)
    with pytest.raises(FatalError, match="snapshot good of experiment .* never changes; choose another name"):
        add(planter.store, made)
    with pytest.raises(FatalError, match="named 'goood'; did you mean good?"):
        find(planter.store, planter.experiment, "goood")


def test_a_golden_run_of_something_else_is_refused(planter: Planter) -> None:
    planter.serving()
    other = planter.golden(0.95, status="passed", served=Served(model="another"))
    with pytest.raises(FatalError, match="was of something else than what endpoint q4 serves now"):
        serving(planter, golden_run=other)
    with pytest.raises(
        FatalError, match="golden run nope of endpoint q4 in experiment .* is not in the store"
    ):
        serving(planter, golden_run="nope")


def test_a_snapshot_of_a_file(planter: Planter, tmp_path: Path) -> None:
    run = planter.golden(0.95, status="passed")

    def read(text: str) -> Snapshot:
        file = tmp_path / "s.toml"
        file.write_text(text)
        return from_file(
            planter.store, file, experiment=planter.experiment, endpoint_name="q4", name="f", added_by="me"
        )

    made = read(f'model = "m-q4"\nimage = "i"\nweights_sha256 = "cd"\ngolden_run = "{run}"\n')
    assert made.why_no_target() is None
    assert (made.model, made.image, made.weights_sha256, made.settings_hash) == ("m-q4", "i", "cd", "s")
    assert read(json.dumps({"model": "m-q4", "golden_run": run})).golden_run_id == run
    assert read('model = "m"\n').why_no_target() is not None
    for text, problem in (
        (f'model = "m-q5"\ngolden_run = "{run}"', f"model is 'm-q5', and golden run {run} was of 'm-q4'"),
        ("modle = 1", "is no snapshot: Object contains unknown field `modle`"),
        ("model = ", "is no snapshot"),
        ("{", "is no snapshot"),
    ):
        with pytest.raises(FatalError) as raised:
            read(text)
        assert problem in str(raised.value) and "\n" not in str(raised.value)


def test_approving_runs_the_command_once_with_all_it_must_know(
    planter: Planter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNOMON_STORE_PASSWORD", "hidden")
    settings = command(
        tmp_path,
        f"open({str(tmp_path / 'got')!r}, 'a').write(json.dumps([argument, sorted(os.environ),"
        " os.environ['GNOMON_IDEMPOTENCY_KEY'], json.load(sys.stdin)]) + '\\n')\nprint('rolled back')\n",
    )
    snapshot, call = good(planter), decide(planter)
    done = approve(planter.store, settings, call, snapshot, approved_by="ada", note="bad\nnight")
    assert (done.status, done.exit_code, done.output, done.note) == ("done", 0, "rolled back\n", "bad night")
    ((argument, names, key, told),) = [
        json.loads(line) for line in (tmp_path / "got").read_text().splitlines()
    ]
    assert argument == "a b; $HOME"
    assert "PATH" in names and "GNOMON_STORE_PASSWORD" not in names
    assert key == told["key"] == f"{call.decision_id}:approved"
    assert (told["snapshot"]["name"], told["snapshot"]["model"]) == ("good", "m-q4")
    assert told["conditions"]["C"] == {"state": "firing", "summary": "c", "evidence": {"n": 1}}
    (kept,) = read_approvals(planter.store, call.decision_id)
    assert kept.status == "done" and kept.output == done.output
    for again in (False, True):
        with pytest.raises(FatalError, match=r"was approved at .* by ada, to snapshot good$"):
            approve(planter.store, settings, call, snapshot, approved_by="bob", again=again)
    assert len((tmp_path / "got").read_text().splitlines()) == 1


def test_a_command_that_fails_can_be_run_again_on_purpose(planter: Planter, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    settings = command(
        tmp_path,
        f"if not os.path.exists({str(flag)!r}):\n    open({str(flag)!r}, 'w')\n    sys.exit('no rights')\n",
    )
    snapshot, call = good(planter), decide(planter)
    failed = approve(planter.store, settings, call, snapshot, approved_by="ada")
    assert (failed.status, failed.exit_code) == ("failed", 1)
    assert failed.output == f"{sys.executable} ended with 1\nno rights\n"
    with pytest.raises(FatalError, match="and its command did not succeed; --again runs it once more"):
        approve(planter.store, settings, call, snapshot, approved_by="ada")
    done = approve(planter.store, settings, call, snapshot, approved_by="ada", again=True)
    assert (done.status, done.attempt) == ("done", 2)
    assert [one.status for one in read_approvals(planter.store, call.decision_id)] == ["failed", "done"]


def test_an_approval_that_was_interrupted_is_not_taken_for_none(
    planter: Planter, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = RollbackSettings(approve_command=["x"])
    snapshot, call = good(planter), decide(planter)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("compare.rollback.approve.run_command", killed)
    with pytest.raises(KeyboardInterrupt):
        approve(planter.store, settings, call, snapshot, approved_by="ada")
    assert [one.status for one in read_approvals(planter.store, call.decision_id)] == ["started"]
    with pytest.raises(FatalError, match="and its command runs, or was interrupted; --again"):
        approve(planter.store, settings, call, snapshot, approved_by="ada")


def test_what_may_not_be_approved(planter: Planter) -> None:
    settings = RollbackSettings()
    call = decide(planter)
    planter.serving()
    planter.golden(0.7)
    bad = serving(planter, "bad")
    with pytest.raises(FatalError, match="only one whose golden run passed can be a target"):
        approve(planter.store, settings, call, bad, approved_by="ada")
    other = msgspec.structs.replace(bad, experiment="other")
    with pytest.raises(FatalError, match="snapshot bad is of experiment other, call rb-"):
        approve(planter.store, settings, call, other, approved_by="ada")
    snapshot = good(planter)
    decide(planter, call, is_called=False)
    with pytest.raises(FatalError, match="has ended, at .* there is nothing to approve"):
        approve(
            planter.store, settings, find_call(planter.store, call.decision_id), snapshot, approved_by="ada"
        )
    with pytest.raises(FatalError, match="no call for rollback has the id 'rb-nope'; the last call is rb-"):
        find_call(planter.store, "rb-nope")
    assert read_approvals(planter.store, call.decision_id) == []


def test_without_a_command_the_approval_is_recorded(planter: Planter) -> None:
    snapshot, call = good(planter), decide(planter)
    done = approve(planter.store, RollbackSettings(), call, snapshot, approved_by="ada")
    assert done == Approval(
        experiment=planter.experiment, candidate="q4", decision_id=call.decision_id, attempt=1,
        snapshot="good", approved_by="ada", note="", approved_at=done.approved_at, status="recorded",
    )  # fmt: skip


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    child = f"import time\nwhile True:\n    open({str(beat)!r}, 'a').write('x')\n    time.sleep(0.02)\n"
    code = (
        f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(60)\n"
    )
    ran = run_command([sys.executable, "-c", code], b"", timeout_s=3.0)
    assert ran.exit_code is None and "did not end within 3 s and was killed" in ran.problem
    time.sleep(0.2)
    size = beat.stat().st_size
    assert size > 0
    time.sleep(0.2)
    assert beat.stat().st_size == size


def test_a_command_that_cannot_start_or_dies() -> None:
    missing = run_command(["/nowhere/at-all"], b"", timeout_s=5.0)
    assert missing.problem == "/nowhere/at-all cannot be started: No such file or directory"
    died = run_command([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], b"", timeout_s=20.0)
    assert (died.exit_code, died.problem) == (-9, f"{sys.executable} was killed by signal 9")
    long = run_command([sys.executable, "-c", "print('x' * 10_000, 'end')"], b"", timeout_s=20.0)
    assert len(long.output) == 4096 and long.output.endswith("end\n")


def test_snapshots_are_listed_newest_first(planter: Planter) -> None:
    good(planter, "one")
    good(planter, "two")
    assert [one.name for one in read_snapshots(planter.store, planter.experiment)] == ["two", "one"]
    assert BUILD.model == "m-q4"
