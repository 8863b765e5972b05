"""`gnomon replay` over the real broker and engine: what is stored runs again as another experiment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from compare.reprocess.replay import ReplayOptions, ReplayReport, plan_replay, run_replay
from compare.reprocess.selection import Wanted
from compare.rows import SCORE_COLUMNS
from compare.run import run_service
from compare.store.client import open_store
from ingest.settings import Settings
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

RECORDS = 30


def renamed(settings: Settings, name: str, **keys: object) -> Settings:
    """The settings of another experiment on the same endpoints."""
    return msgspec.structs.replace(
        settings, experiment=msgspec.structs.replace(settings.experiment, name=name, **keys)
    )


def last_hour(**keys: object) -> Wanted:
    now = datetime.now(UTC)
    return Wanted(start=now - timedelta(hours=1), end=now + timedelta(minutes=1), **keys)  # type: ignore[arg-type]


def replayed(
    settings: Settings, wanted: Wanted | None = None, source: str | None = None, **options: bool
) -> ReplayReport:
    with open_store(settings.store, role="any") as store:
        with open_store(settings.store, role="reader") as reader:
            plan = plan_replay(store, reader, settings, wanted or last_hour(), source)
        return run_replay(settings, store, plan, ReplayOptions(**options))


def run_first(bench: Bench, settings: Settings, records: list[bytes]) -> None:
    bench.produce(records)
    report = run_service(settings, stop_when=lambda c: c.outcomes >= len(records))
    assert report.compared == len(records)


def accounts(bench: Bench, experiment: str) -> list[tuple[object, ...]]:
    return bench.rows(
        "SELECT consumer_group, consumed, compared, skipped, failed, dead_lettered, unaccounted"
        f" FROM accounting_v1 WHERE experiment = '{experiment}'"
    )


def test_the_same_candidate_gets_the_same_scores_and_the_reference_is_not_asked(
    bench: Bench, stubs: tuple[StubEndpoint, StubEndpoint]
) -> None:
    stubs[1].text = "another answer"
    settings = renamed(bench.settings, "a", noise_fraction=0.5)
    records = [envelope(f"r{n}", f"say {n}", user=f"u{n}") for n in range(RECORDS)]
    run_first(bench, settings, records)
    asked_reference, asked_candidate = len(stubs[0].calls), len(stubs[1].calls)
    report = replayed(renamed(settings, "b"))
    assert (report.compared, report.is_whole) == (RECORDS, True)
    assert report.came_from == {"kafka": RECORDS}
    assert report.answers == {"reused": RECORDS}
    assert len(stubs[0].calls) == asked_reference
    assert len(stubs[1].calls) == 2 * asked_candidate
    # Every score, and what it rests on, but what the candidate's own clock says.
    measured = {
        name for name in SCORE_COLUMNS if name.startswith("candidate_") and name.endswith(("_ms", "_per_s"))
    } | {"latency_ratio"}
    same = [*(set(SCORE_COLUMNS) - measured), "verdict", "reasons", "mirrored_at", "request_hash", "unscored"]
    same += ["changes", "mode", "tags", "reference_tokens", "divergence_position", "is_near_tie", "route"]
    for table, more in (("pairs_v1", []), ("noise_pairs_v1", ["side"])):
        names = same if table == "pairs_v1" else [name for name in SCORE_COLUMNS if name not in measured]
        where = "" if table == "pairs_v1" else " AND side = 'reference'"
        listed = ", ".join(f"`{name}`" for name in ["offset", *more, *names])
        one, other = (
            bench.rows(f"SELECT {listed} FROM {table} WHERE experiment = '{name}'{where} ORDER BY offset")
            for name in ("a", "b")
        )
        assert one == other
        assert one
    assert bench.rows(
        "SELECT role, countIf(is_reused), count() FROM observations_v1 WHERE experiment = 'b'"
        " AND role LIKE 'reference%' GROUP BY role ORDER BY role"
    ) == bench.rows(
        "SELECT role, count(), count() FROM observations_v1 WHERE experiment = 'a'"
        " AND role LIKE 'reference%' GROUP BY role ORDER BY role"
    )
    # Answers and requests are shared: not one more of them.
    assert bench.rows("SELECT uniqExact(experiment), any(experiment) FROM reference_answers") == [(1, "a")]
    assert bench.rows("SELECT count() FROM requests") == [(RECORDS,)]
    assert accounts(bench, "b") == [("replay/b", RECORDS, RECORDS, 0, 0, 0, 0)]
    # Once more there is nothing to do.
    again = replayed(renamed(settings, "b"), source="a")
    assert (again.compared, again.already_stored, len(stubs[1].calls)) == (0, 0, 2 * asked_candidate)
