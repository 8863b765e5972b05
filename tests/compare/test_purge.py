"""Purge on the real engine, directly and over the port that stands for a server."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from compare import purge as purge_module
from compare.alerts.notice_log import read_notices
from compare.cli.main import main
from compare.intake import Intake
from compare.outcomes import OtherOutcome
from compare.purge import Selection, find, purge
from compare.purged import read_purged
from compare.rollups.rebuild import Rollups
from compare.store import Store, open_store
from compare.store.lockfile import read_owner
from compare.writer import Writer
from ingest.errors import FatalError
from ingest.records import RawRecord
from ingest.settings import ExperimentSettings, StoreSettings
from tests.compare import batches
from tests.compare.batches import NOON
from tests.compare.purge_rows import OFFSETS, fill, request
from tests.fixtures.stores import MigratedAt


@pytest.fixture
def settings(tmp_path: Path, migrated_at: MigratedAt) -> StoreSettings:
    return migrated_at(tmp_path / "store")


@pytest.fixture
def store(settings: StoreSettings) -> Iterator[Store]:
    """A filled store on the engine."""
    with open_store(settings, role="owner") as owner:
        fill(owner)
        yield owner


@pytest.fixture
def server(store: Store, settings: StoreSettings) -> Iterator[Store]:
    """The same through clickhouse-connect's HTTP client, as a server is."""
    published = read_owner(Path(settings.url.removeprefix("chdb://")))
    assert published is not None
    with open_store(
        StoreSettings(url=published.url, password=published.writer_token), role="any"
    ) as over_http:
        yield over_http


def columns_with(store: Store, needle: str) -> set[str]:
    """Columns with text, of every table, where the needle is found."""
    found = set()
    rows = store.query(
        "SELECT table, groupArray(name) FROM system.columns WHERE type LIKE '%String%'"
        " AND database = {database:String} AND NOT endsWith(table, '_v1') GROUP BY table",
        {"database": store.database},
    ).rows
    for table, names in rows:
        counts = ", ".join(f"countIf(position(toString(`{name}`), {{needle:String}}) > 0)" for name in names)
        (row,) = store.query(f"SELECT {counts} FROM `{table}`", {"needle": needle}).rows
        found |= {f"{table}.{name}" for name, count in zip(names, row, strict=True) if count}
    return found


def accounting(store: Store) -> tuple[Any, ...]:
    sql = "SELECT consumed, compared, skipped, failed, dead_lettered, unaccounted FROM accounting_v1"
    (row,) = store.query(sql).rows
    return tuple(row)


def test_a_request_leaves_every_table_and_others_stay(store: Store) -> None:
    assert accounting(store) == (9, 6, 1, 1, 1, 0)
    assert {
        "requests.body",
        "requests.request_id",
        "pairs.request_id",
        "alert_evidence.worst_pairs",
        "alert_notices.content",
    } <= (columns_with(store, "content-of-2-end") | columns_with(store, "r-2"))
    others = {table.table: table.rows_before for table in find(store, Selection(request_id="r-3")).tables}
    report = purge(store, Selection(request_id="r-2"))

    assert report.is_clean
    before = {table.table: table.rows_before for table in report.tables if table.rows_before}
    # By hand: two candidates and once more on the next day, each time with three observations. The second
    # candidate's batch holds the very same block of requests, which is stored once.
    assert before == {
        "tokens": 9, "observations": 9, "positions": 3, "findings": 3, "noise_pairs": 3, "forced_pairs": 3,
        "pairs": 3, "requests": 2,
    }  # fmt: skip
    assert columns_with(store, "content-of-2-end") == columns_with(store, "r-2") == set()
    assert others == {
        table.table: table.rows_before for table in find(store, Selection(request_id="r-3")).tables
    }
    assert store.query("SELECT arrayMap(p -> p.request_id, worst_pairs) FROM alerts_v1").rows == [(["r-1"],)]
    ((notice,),) = read_notices(store, "e", ["g"]).values()
    assert notice.evidence is not None
    assert [pair.request_id for pair in notice.evidence.worst_pairs] == ["r-1", ""]
    assert report.alerts == 1
    assert report.days == (NOON.date(), (NOON + timedelta(days=1)).date())
    # No mutation is left undone, and each touched table has one for each day.
    assert {table.table: len(table.mutations) for table in report.tables if table.mutations} == dict.fromkeys(
        before, 2
    )
    assert store.query("SELECT count() FROM system.mutations WHERE NOT is_done").rows == [(0,)]
    # What is named as old is read by no query.
    active = set(store.query("SELECT table, name FROM system.parts WHERE active AND rows > 0").rows)
    assert not active.intersection((table.table, part) for table in report.tables for part in table.old_parts)


def test_the_accounting_stays_whole_and_says_purged(store: Store) -> None:
    purge(store, Selection(request_id="r-2"))
    assert accounting(store) == (9, 5, 2, 1, 1, 0)
    rows = store.query(
        "SELECT `offset`, kind, reason, detail, request_id FROM outcomes_v1 WHERE `offset` = 2"
    ).rows
    assert rows == [(2, "skipped", "purged", "", "")]
    for offset in (6, 7, 8):
        purge(store, Selection(request_id=f"r-{offset}"))
    assert accounting(store) == (9, 5, 4, 0, 0, 0)
    assert columns_with(store, "broken") == set()


def test_a_tenant_leaves_every_table_of_a_server(server: Store) -> None:
    store = server
    report = purge(store, Selection(tenant="odd"))
    assert (report.positions, report.is_clean) == (3, True)
    for offset in OFFSETS:
        assert bool(columns_with(store, f"content-of-{offset}-end")) is (offset % 2 == 0)
    assert columns_with(store, "odd") == set()
    assert accounting(store) == (9, 3, 4, 1, 1, 0)


def test_a_second_purge_and_a_dry_run_change_nothing(store: Store) -> None:
    selection = Selection(request_id="r-2")
    assert [t.rows_before for t in find(store, selection).tables] == [
        t.rows_before for t in find(store, selection).tables
    ]
    assert columns_with(store, "content-of-2-end")
    purge(store, selection)
    again = purge(store, selection)
    assert (again.positions, again.days, again.is_clean) == (0, (), True)
    assert not any(table.mutations for table in again.tables)
    assert accounting(store)[-1] == 0


@pytest.mark.parametrize("deletions", [0, 7])
def test_a_purge_that_is_killed_is_finished_by_the_next(
    settings: StoreSettings, monkeypatch: pytest.MonkeyPatch, deletions: int
) -> None:
    with open_store(settings, role="owner") as store:
        fill(store)
        whole = purge_module._delete
        left = [deletions]

        def dies(*arguments: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            whole(*arguments)

        monkeypatch.setattr(purge_module, "_delete", dies)
        with pytest.raises(KeyboardInterrupt):
            purge(store, Selection(request_id="r-2"))
        # Not yet gone, not yet counted twice.
        assert accounting(store)[-1] == 0
        monkeypatch.setattr(purge_module, "_delete", whole)
        assert purge(store, Selection(request_id="r-2")).is_clean
        assert columns_with(store, "content-of-2-end") == columns_with(store, "r-2") == set()
        # Positions, tokens and findings have no id of their own: nothing is left of the position.
        for table in ("tokens", "positions", "findings"):
            assert store.query(f"SELECT count() FROM {table} WHERE `offset` = 2").rows == [(0,)]
        assert accounting(store) == (9, 5, 2, 1, 1, 0)


def test_a_purge_while_the_pipeline_writes(settings: StoreSettings) -> None:
    with open_store(settings, role="owner") as store:
        fill(store)
        stop, errors = threading.Event(), []
        written = [9]

        def write() -> None:
            try:
                with open_store(settings, role="any") as own:
                    writer = Writer(own, threading.Event())
                    while not stop.is_set():
                        offset = written[0]
                        pair = batches.compared(offset, request=request(offset, tenant="new"))
                        writer.write(batches.batch(pair, ranges=(batches.delivered(offset, offset + 1, 1),)))
                        written[0] += 1
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            reports = [purge(store, Selection(request_id=f"r-{offset}")) for offset in (1, 2)]
        finally:
            stop.set()
            thread.join(60)
        assert errors == []
        assert all(report.is_clean for report in reports)
        assert written[0] > 10
        consumed, compared, skipped, failed, dead, unaccounted = accounting(store)
        assert (consumed, compared, skipped, failed, dead, unaccounted) == (
            written[0],
            written[0] - 5,
            3,
            1,
            1,
            0,
        )


def test_a_purged_position_is_not_replayed_when_it_is_delivered_again(store: Store) -> None:
    assert batches.position(2) not in read_purged(store)
    purge(store, Selection(request_id="r-2"))
    purged = read_purged(store)
    assert [offset for offset in range(12) if batches.position(offset) in purged] == [2]
    assert batches.position(2, partition=1) not in purged
    assert batches.position(2, topic_id="made-anew") not in purged
    experiment = ExperimentSettings(
        name="e", reference="r", candidates=["c"], models={"m": {"r": "m", "c": "m"}}
    )
    record = RawRecord(batches.position(2), 1, None, b'{"schema": "gnomon.mirror/1", "request_id": "r-2"')
    outcome = Intake(experiment, purged=purged).take(record, NOON + timedelta(days=2))
    assert isinstance(outcome, OtherOutcome)
    assert (outcome.kind, outcome.reason, outcome.request_id, outcome.detail, outcome.raw) == (
        "skipped", "purged", "", "", None,
    )  # fmt: skip
    Writer(store, threading.Event()).write(batches.batch(others=(outcome,)))
    assert accounting(store) == (9, 5, 2, 1, 1, 0)
    assert columns_with(store, "r-2") == set()


def test_the_wait_is_for_all_tables_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant's rows leave eight tables, whose old parts stay for minutes."""
    clock = [0.0]

    class Time:
        monotonic = staticmethod(lambda: clock[0])

        @staticmethod
        def sleep(seconds: float) -> None:
            clock[0] += seconds

    monkeypatch.setattr(purge_module, "time", Time)
    report = purge(store, Selection(tenant="odd"), wait_s=1.5)
    assert len([table.table for table in report.tables if table.old_parts]) == 8
    assert clock[0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("n\n", "Error: answered no, nothing was done\n"),
        ("", "Error: nobody answered, nothing was done; --yes"),
    ],
)
def test_who_says_no_is_told_that_nothing_was_done(
    store: Store, settings: StoreSettings, run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, said: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    code, out, err = run("purge", "--dir", settings.url.removeprefix("chdb://"), "--request-id", "r-2")
    assert (code, out) == (1, "")
    assert said in err
    assert columns_with(store, "content-of-2-end")


def test_rollups_are_rebuilt_for_the_days_that_lost_rows(store: Store, settings: StoreSettings) -> None:
    rollups = Rollups(store, settings)
    rollups.rebuild_touched()
    counted = "SELECT sum(pairs) FROM rollup_hourly_v1 WHERE dimension = 'all'"
    ((before,),) = store.query(counted).rows

    def rebuild(days: Sequence[date]) -> None:
        for day in days:
            rollups.rebuild_day(day)

    report = purge(store, Selection(request_id="r-2"), rebuild_days=rebuild)
    assert report.stale_rollups == ()
    # Two candidates' pairs are gone.
    assert store.query(counted).rows == [(before - 2,)]
    assert "rollup_hourly" in purge(store, Selection(request_id="r-1")).stale_rollups


@pytest.mark.parametrize("selection", [Selection(), Selection(request_id=""), Selection("a", "b")])
def test_nothing_or_two_things_are_no_selection(selection: Selection) -> None:
    with pytest.raises(FatalError, match="either a request id or a tenant"):
        assert selection.value


def test_an_id_is_bound_and_never_part_of_the_statement(server: Store) -> None:
    store = server
    odd = "r' OR 1 = 1 -- \\"
    pair = batches.compared(9, request=request(9, request_id=odd))
    Writer(store, threading.Event()).write(batches.batch(pair))
    report = purge(store, Selection(request_id=odd))
    assert (report.positions, report.is_clean) == (1, True)
    assert accounting(store)[1] == 6
    assert columns_with(store, odd) == set()


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = 0
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_the_command_says_what_went_and_what_it_cannot_reach(settings: StoreSettings, run: Run) -> None:
    folder = settings.url.removeprefix("chdb://")
    with open_store(settings, role="owner") as store:
        fill(store)
        code, out, _ = run("purge", "--dir", folder, "--request-id", "r-2", "--dry-run")
        assert (code, "1 positions; nothing was changed" in out) == (0, True)
        assert columns_with(store, "content-of-2-end")
        code, out, _ = run("purge", "--dir", folder, "--request-id", "r-2", "--yes")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines() if line.startswith("pairs ")] == [
        ["pairs", "3", "0"]
    ]
    assert "mutation_" in out
    assert "on disk" in out
    for words in ("mirror topic", "dead-letter topic", "backups"):
        assert words in out
    # With nobody owning the folder it opens it itself.
    code, out, _ = run("purge", "--dir", folder, "--request-id", "r-2", "--yes")
    assert (code, out) == (3, "")
    code, _, err = run("purge", "--dir", folder, "--request-id", "mistyped", "--dry-run")
    assert (code, err) == (
        3, "nothing is stored of request_id 'mistyped': a wrong one, or it was purged before\n"
    )  # fmt: skip
    code, _, err = run("purge", "--dir", folder)
    assert (code, "give --request-id or --tenant" in err) == (2, True)
