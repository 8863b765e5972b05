"""`gnomon dlq`: from a broken record to a mended program, and its request in the views once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from compare.cli.main import cli
from compare.letters import LetterFilter, find_letters, mark_replayed, records_to_send
from compare.run import run_service
from compare.store import open_store
from ingest.errors import FatalError
from ingest.settings import RedactionRule, RedactionSettings, Settings
from tests.fixtures.stores import MigratedAt
from tests.integration.conftest import Bench, envelope

BARE = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'


def run(bench: Bench, outcomes: int, settings: Settings | None = None) -> None:
    run_service(settings or bench.settings, stop_when=lambda counters: counters.outcomes >= outcomes)


def config_file(bench: Bench, folder: Path) -> Path:
    """The settings as a person has them."""
    file = folder / "gnomon.toml"
    kafka, store = bench.settings.kafka, bench.settings.store
    file.write_text(
        f"""
[experiment]
name = "e"
reference = "ref"
candidates = ["cand"]
models = {{"*" = {{ref = "m", cand = "m"}}}}
[endpoints.ref]
url = "http://127.0.0.1:1"
[endpoints.cand]
url = "http://127.0.0.1:1"
[kafka]
bootstrap_servers = {json.dumps(kafka.bootstrap_servers)}
topic = "{kafka.topic}"
dead_letter_topic = "{kafka.dead_letter_topic}"
[store]
url = "{store.url}"
"""
    )
    return file


def dlq(bench: Bench, tmp_path: Path, *arguments: str) -> Result:
    """The command, in this process."""
    command, *rest = arguments
    return CliRunner().invoke(cli, ["dlq", command, "--config", str(config_file(bench, tmp_path)), *rest])


def test_a_letter_is_listed_shown_and_after_the_fix_compared_once(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = b'{"model": "m", "messages": [{"role": "user", "content": "\x1b[31m\xff"}'
    bench.produce([envelope("good"), BARE, broken])
    with monkeypatch.context() as fault:
        # The program that is to be mended knows no bare bodies.
        fault.setattr("ingest.decode.is_bare", lambda tree: False)
        run(bench, 3)
    assert bench.rows("SELECT count() FROM pairs_v1") == [(1,)]
    guesses = [headers["gnomon.schema_guess"] for _, headers in bench.dead_letters(2)]
    assert guesses == [b"openai", b"openai"]

    listed = dlq(bench, tmp_path, "list")
    assert listed.exit_code == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith(("missing", "invalid"))] == [
        ["invalid_utf8", "openai", "1", "1"],
        ["missing_field", "openai", "1", "1"],
    ]
    assert sorted(line.split()[0] for line in lines if line.startswith("0/")) == ["0/1", "0/2"]

    shown = dlq(bench, tmp_path, "show", "0/2")
    assert r"\x1b[31m\xff" in shown.stdout and "\x1b" not in shown.stdout
    assert "why      invalid_utf8: " in shown.stdout
    raw = dlq(bench, tmp_path, "show", "0/1", "--raw")
    assert raw.stdout_bytes == BARE
    assert dlq(bench, tmp_path, "show", "0/0").stderr == "Error: there is no dead letter at 0/0\n"
    wrong = dlq(bench, tmp_path, "show", "x").exception
    assert str(wrong) == "'x' is no position: write partition/offset, or topic_id/partition/offset"
    assert "say which" in dlq(bench, tmp_path, "replay").stderr

    dry = dlq(bench, tmp_path, "replay", "--all", "--dry-run")
    assert dry.stdout == f"2 records would be sent to {bench.topic}\n"
    sent = dlq(bench, tmp_path, "replay", "0/1", "--yes")
    assert (sent.exit_code, sent.stdout) == (0, f"1 records sent to {bench.topic}, 0 not\n")
    assert "nothing to send" in dlq(bench, tmp_path, "replay", "0/1", "--yes").stdout
    again = dlq(bench, tmp_path, "replay", "0/1", "--yes", "--again")
    assert again.stdout == f"1 records sent to {bench.topic}, 0 not\n"
    run(bench, 2)

    assert bench.rows("SELECT `offset` FROM pairs_v1 ORDER BY `offset`") == [(0,), (3,)]
    assert bench.rows("SELECT kind, reason, `offset` FROM outcomes_v1 WHERE `offset` > 2") == [
        ("skipped", "duplicate", 4)
    ]
    assert bench.rows("SELECT `offset`, isNull(replayed_at) FROM dead_letters_v1 ORDER BY `offset`") == [
        (1, False),
        (2, True),
    ]
    assert bench.rows("SELECT unaccounted FROM accounting_v1") == [(0,)]
    waiting = dlq(bench, tmp_path, "list", "--waiting", "--format", "json")
    assert [letter["position"] for letter in json.loads(waiting.stdout)] == ["0/2"]


def test_a_redacted_letter_is_read_again_from_kafka_and_else_refused(bench: Bench, tmp_path: Path) -> None:
    secret = b'{"event": "login", "password": "hunter2"}'
    bench.produce([secret])
    rule = RedactionRule(action="mask", field="password")
    redaction = RedactionSettings(rules=[rule], key="k" * 32)
    run(bench, 1, msgspec.structs.replace(bench.settings, redaction=redaction))

    kafka = bench.settings.kafka
    with open_store(bench.settings.store, role="any") as store:
        [letter] = find_letters(store, LetterFilter())
        assert (letter.is_whole, letter.schema_guess) == (False, "json")
        assert b"hunter2" not in (letter.record.value or b"")
        [record], refused = records_to_send([letter], kafka, allow_redacted=False)
        assert (record.value, refused) == (secret, [])

        position = msgspec.structs.replace(letter.record.position, offset=40)
        lost = msgspec.structs.replace(
            letter, record=msgspec.structs.replace(letter.record, position=position)
        )
        records, refused = records_to_send([lost], kafka, allow_redacted=False)
        assert records == []
        assert refused[0].why.startswith("it was redacted and Kafka no longer has the record")
        records, refused = records_to_send([lost], kafka, allow_redacted=True)
        assert (records, refused) == ([lost.record], [])
        row = msgspec.structs.replace(lost, source="pairs:cand")
        records, refused = records_to_send([row], kafka, allow_redacted=True)
        assert refused[0].why == "only its row is stored, and Kafka no longer has the record"


def test_filters_and_marks_name_the_letters_they_mean(tmp_path: Path, migrated_at: MigratedAt) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    with open_store(migrated_at(tmp_path / "store"), role="owner") as store:
        columns = ("experiment", "topic", "topic_id", "partition", "offset", "source", "reason", "value")
        columns += ("mirrored_at", "ingested_at", "version")  # type: ignore[assignment]
        rows = [
            ("a", "t", "id1", 0, 1, "record", "invalid_json", b"\x00\xff", now, now, 1),
            ("a", "t", "id2", 0, 1, "record", "empty_value", None, now, now - timedelta(days=2), 1),
            ("b", "t", "id1", 1, 2**40, "record", "invalid_json", b"", now, now, 1),
        ]
        store.insert("dead_letters", columns, rows)

        def found(**wanted: object) -> list[tuple[str, int]]:
            letters = find_letters(store, LetterFilter(**wanted))  # type: ignore[arg-type]
            return [(letter.record.position.topic_id, letter.record.position.offset) for letter in letters]

        assert found() == [("id1", 1), ("id1", 2**40), ("id2", 1)]
        assert found(experiment="b") == [("id1", 2**40)]
        assert found(reason="empty_value") == [("id2", 1)]
        assert found(since=now - timedelta(hours=1)) == [("id1", 1), ("id1", 2**40)]
        assert found(positions=("0/1",)) == [("id1", 1), ("id2", 1)]
        assert found(positions=("id2/0/1", "1/1099511627776")) == [("id1", 2**40), ("id2", 1)]
        for wrong in ("1", "a/b", "1/2/3/4", "-1/2", "1/99999999999999999999", "٣/1"):
            with pytest.raises(FatalError, match="is no position"):
                found(positions=(wrong,))
        values = [letter.record.value for letter in find_letters(store, LetterFilter())]
        assert values == [b"\x00\xff", b"", None]

        [first, *_] = find_letters(store, LetterFilter())
        mark_replayed(store, [first.record.position], now)
        assert found(is_waiting=True) == [("id1", 2**40), ("id2", 1)]
        [marked] = find_letters(store, LetterFilter(positions=("id1/0/1",)))
        assert (marked.replayed_at, marked.record, marked.reason) == (now, first.record, "invalid_json")
        mark_replayed(store, [], now)
        assert len(found(is_waiting=True)) == 2
