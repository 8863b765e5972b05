"""`gnomon golden` as a person and a CI use it, over stub endpoints."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from compare.cli.main import main
from compare.store import Store
from compare.writer import Writer
from ingest.observation import Observation
from ingest.settings import StoreSettings
from tests.compare import batches
from tests.fixtures.stub_endpoint import StubEndpoint

SETTINGS = """
[experiment]
name = "e"
reference = "ref"
candidates = ["cand"]
models = {{"*" = {{ref = "m1", cand = "m2"}}}}

[endpoints.ref]
url = "{ref}"

[endpoints.cand]
url = "{cand}"
max_attempts = 1

[store]
url = "{url}"

[compare]
embedding_model = ""

[[redaction.rules]]
action = "mask"
pattern = "card-[0-9]+"
"""

LINE = (
    '{"id": "%s", "request": {"model": "m", "messages": [{"role": "user", "content": "%s"}]},'
    ' "expected": {"text": "%s"}}\n'
)
TABLES = ("golden_cases", "golden_runs", "golden_results", "golden_baselines", "pairs", "requests")

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    migrated_store: Store,
    store_settings: StoreSettings,
    tmp_path: Path,
    stub: StubEndpoint,
    faulty_stub: StubEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Command]:
    """Runs `gnomon golden ...` in a folder with settings; gives exit code, stdout and stderr."""
    for table in TABLES:
        migrated_store.command(f"TRUNCATE TABLE {table}")
    # Owned by this process, so that the commands go through its port, as beside a service.
    text = SETTINGS.format(ref=stub.url, cand=faulty_stub.url, url=store_settings.url)
    (tmp_path / "gnomon.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GNOMON_REDACTION_KEY", "k" * 32)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["golden", *arguments])
        out, err = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else int(bool(code))), out, err

    yield run


def test_a_set_from_a_file_runs_in_ci(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(LINE % ("a", "one", "fine answer") + LINE % ("b", "two", "fine answer"))
    assert command("import", "s.jsonl", "--set", "s") == (0, "2 cases added to golden set s\n", "")

    code, out, _ = command("run", "--set", "s", "--endpoint", "ref", "--junit", "good.xml")
    assert code == 0
    assert out.startswith("s against ref: PASSED: 2 of 2 cases passed, mean score 1.000, exact 100.0 %")
    (suite,) = ElementTree.parse(tmp_path / "good.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("3", "0", "0")

    code, out, _ = command("runs")
    run_id = out.splitlines()[1].split()[0]
    code, out, _ = command("promote", run_id)
    assert (code, out.endswith("is the baseline of golden set s\n")) == (0, True)

    code, out, _ = command("run", "--set", "s", "--candidate", "--junit", "bad.xml")
    assert code == 1
    assert "s against cand: FAILED: 0 of 2 cases passed" in out
    assert "newly failing (2): a, b" in out
    (suite,) = ElementTree.parse(tmp_path / "bad.xml").getroot()
    assert suite.attrib["failures"] == "3"

    code, out, _ = command("run", "--set", "s", "--json", "--min-score", "0", "--allow-failed", "2")
    (told,) = json.loads(out)
    assert (code, told["status"], told["is_passed"]) == (0, "passed", True)
    assert [one["status"] for one in told["results"]] == ["failed", "failed"]
    assert told["changes"]["newly_failing"] == ["a", "b"]

    code, out, _ = command("runs", "--endpoint", "ref")
    assert f"{run_id}*" in out
    code, out, err = command("promote", told["run_id"][:6])
    assert code == 0


def test_a_run_that_failed_is_not_promoted_unasked(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(LINE % ("a", "one", "fine answer"))
    assert command("import", "s.jsonl", "--set", "s") == (0, "1 case added to golden set s\n", "")
    _, out, _ = command("run", "--set", "s", "--json")
    run_id = json.loads(out)[0]["run_id"]
    code, _, err = command("promote", run_id)
    assert (code, err) == (
        2, f"gnomon: golden run {run_id} is failed; say --even-failed to promote it all the same\n"
    )  # fmt: skip
    assert command("promote", run_id, "--even-failed")[0] == 0
    assert command("promote", "nothing")[0] == 2


def test_an_endpoint_that_is_away_is_told_apart(command: Command, tmp_path: Path) -> None:
    text = (tmp_path / "gnomon.toml").read_text()
    ref = text.split('[endpoints.cand]\nurl = "')[1].split('"')[0]
    (tmp_path / "gnomon.toml").write_text(text.replace(ref, "http://127.0.0.1:1"))
    (tmp_path / "s.jsonl").write_text(LINE % ("a", "one", "fine answer"))
    command("import", "s.jsonl", "--set", "s")
    code, out, _ = command("run", "--set", "s", "--junit", "x.xml")
    assert (code, "s against cand: INCOMPLETE" in out) == (3, True)
    (suite,) = ElementTree.parse(tmp_path / "x.xml").getroot()
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "2")


def test_a_junit_file_that_cannot_be_written_is_told_before_the_run(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(LINE % ("a", "one", "fine answer"))
    command("import", "s.jsonl", "--set", "s")
    assert command("run", "--set", "s", "--junit", "no/such/x.xml") == (
        2, "", "gnomon: report no/such/x.xml cannot be written: No such file or directory\n"
    )  # fmt: skip
    assert len(command("runs")[1].splitlines()) == 1
    # A set that cannot be run leaves no file behind.
    assert command("run", "--set", "none", "--junit", "x.xml")[0] == 2
    assert not (tmp_path / "x.xml").exists()


def test_a_full_disk_loses_the_junit_file_and_not_the_result(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(LINE % ("a", "one", "fine answer"))
    command("import", "s.jsonl", "--set", "s")
    code, out, err = command("run", "--set", "s", "--endpoint", "ref", "--junit", "/dev/full")
    assert (code, err.strip()) == (2, "gnomon: report /dev/full cannot be written: No space left on device")
    assert out.startswith("s against ref: PASSED: 1 of 1 cases passed")


def test_what_is_exported_can_be_imported(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(LINE % ("a", "one", "fine answer") + LINE % ("b", "two", "x"))
    command("import", "s.jsonl", "--set", "s")
    _, first, _ = command("export", "--set", "s")
    (tmp_path / "t.jsonl").write_text(first)
    command("import", "t.jsonl", "--set", "t")
    assert command("export", "--set", "t") == (0, first, "")
    _, out, _ = command("list")
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["s", "2"], ["t", "2"]]
    _, out, _ = command("show", "a", "--set", "s")
    assert "expected (given):\nfine answer" in out
    assert command("remove", "a", "--set", "s", "--yes")[:2] == (0, "1 cases removed from golden set s\n")
    assert command("show", "a", "--set", "s")[2] == "gnomon: golden set s has no case a\n"
    assert command("remove", "--all", "--set", "s", "--yes")[:2] == (0, "1 cases removed from golden set s\n")
    assert command("list", "--set", "s")[2] == "gnomon: golden set s has no cases; there are: t\n"


def test_redacted_cases_need_consent(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(LINE % ("a", "my card-1", "card-1") + LINE % ("b", "two", "x"))
    code, _, err = command("import", "s.jsonl", "--set", "s")
    assert (code, "take something out of 1 cases, first 'a'" in err) == (2, True)
    assert command("list")[1].splitlines()[1:] == []
    assert command("import", "s.jsonl", "--set", "s", "--redacted")[0] == 0
    assert "card-1" not in command("export", "--set", "s")[1]


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (["run"], 2, "say --set, or set golden.set"),
    (["run", "--set", "none"], 2, "golden set none has no cases; there are: no sets"),
    (["run", "--set", "s", "--endpoint", "x"], 2, 'endpoint "x" is not of experiment e'),
    (["run", "--set", "s", "--endpoint", "ref", "--candidate"], 2, "exclude each other"),
    (["add", "--set", "s"], 2, "say which requests"),
    (["add", "--set", "s", "--request-id", "a", "--from", "1h"], 2, "say which requests"),
    (["add", "--set", "s", "--request-id", "a", "--pattern", "(?=a)"], 2, "no look-around"),
    (["add", "--set", "s", "--request-id", "a", "--key", "$..a"], 2, "has a wildcard"),
    (["add", "--set", "a b", "--request-id", "a"], 2, "a set's name has letters"),
    (["add", "--set", "s", "--request-id", "a", "--schema", "none"], 2, "--schema none cannot be read"),
    (["add", "--set", "s", "--request-id", "a"], 2, "no experiment has pairs"),
    (["remove", "--set", "s"], 2, "name the cases, or say --all"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(
    command: Command, arguments: list[str], code: int, said: str
) -> None:
    found, _, err = command(*arguments)
    assert found == code
    assert said in err and "Traceback" not in err


def test_a_set_from_stored_traffic(command: Command, migrated_store: Store) -> None:
    answer = Observation(text='{"n": 1}', finish_reason="stop")
    pairs = []
    for offset in range(4):
        body = {"model": "m", "messages": [{"role": "user", "content": f"question {offset}"}]}
        request = batches.mirrored(offset, body=body, route="r" if offset % 2 else "other")
        pairs.append(batches.compared(offset, request=request, reference=answer, findings=()))
    Writer(migrated_store, threading.Event()).write(batches.batch(*pairs))
    code, out, err = command(
        "add", "--set", "s", "--request-id", "r-1", "--request-id", "r-2", "--key", "$.n", "--note", "why"
    )
    assert (code, out) == (0, "2 cases added to golden set s, which has 2 now\n"), err
    since = batches.NOON.replace(hour=0).isoformat()
    filters = ["--from", since, "--route", "r", "--where", "request_id != 'r-0'"]
    filters += ["--verdict", "candidate_worse"]
    _, out, _ = command("add", "--set", "t", *filters, "--dry-run")
    assert out == "2 cases would be added to golden set t\n"
    assert command("add", "--set", "t", *filters, "--limit", "1")[0] == 0
    _, out, _ = command("export", "--set", "t")
    (made,) = map(json.loads, out.splitlines())
    assert (made["id"], made["expected"], made["route"]) == (
        "r-1", {"text": '{"n": 1}', "finish_reason": "stop"}, "r"
    )  # fmt: skip
    code, out, _ = command("add", "--set", "t", "--from", since, "--key", "$.other")
    assert code == 1
    assert "4 left out: the expected answer lacks a field that --key names" in out
    code, _, err = command("add", "--set", "t", "--from", since, "--where", "nonsense(")
    assert (code, err.startswith("gnomon: --where 'nonsense('")) == (2, True)
